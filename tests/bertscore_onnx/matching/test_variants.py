"""`Matching`: its fields, its name, and scores that do not depend on anything beside the pair."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError, InputTypeError, UnknownLayerError
from bertscore_onnx.matching.variants import PRESETS, ContextRole, Cost, Excluded, Matching, Pool
from bertscore_onnx_service import MicroBatcher
from tests.support.parity import equations, unit
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL, WORDS

CONTEXTS = ["it was a tree.", ["the house is blue.", "a dog sat!"], "red"]

MATCHINGS = {
    "special": Matching(exclude=("special",)),
    "punctuation": Matching(exclude=("punctuation",)),
    "subwords": Matching(exclude=("subwords", "ascii-punctuation")),
    "words": Matching(words=("the", "a")),
    "code": PRESETS["code-bert-score"],
    "doc": PRESETS["doc-bert-score"],
    "assignment": Matching(method="assignment"),
    "transport": Matching(method="transport", ngram=2, cost="euclidean"),
    "beta": Matching(beta=3),
    "center": Matching(center=("the cat sat on a mat", "a dog ran")),
    "pooled": Matching(layers=(1, 2, 3)),
    "p-means": Matching(layers=(-2, -1), pool="p-means", method="transport"),
}


@pytest.fixture(params=MATCHINGS)
def matching(request):
    return MATCHINGS[request.param]


@pytest.fixture
def bundle(matching, tiny_bundle, all_layers_bundle):
    return all_layers_bundle if matching.layers else tiny_bundle


@pytest.fixture
def scorer(bundle, matching):
    with BERTScorer(bundle, matching=matching) as scorer:
        yield scorer


def stacked(scores):
    return np.stack([*scores])


def many(number=60):
    """Draw candidates, references and contexts."""
    rng, words = np.random.default_rng(0), [*WORDS.split(), ",", ".", "cats", "saying"]
    draw = lambda most: " ".join(rng.choice(words, size=int(rng.integers(1, most))))  # noqa: E731
    return [[draw(most) for _ in range(number)] for most in (20, 20, 8)]


@pytest.mark.filterwarnings("ignore:.* 0 because :UserWarning")
@pytest.mark.filterwarnings("ignore:.* longer than .* truncated:UserWarning")
def test_a_score_depends_on_nothing_but_its_pair(bundle, matching, scorer, small_chunks):
    candidates, references, contexts = many()
    expected = stacked(scorer.score(candidates, references, contexts=contexts))
    order = np.random.default_rng(1).permutation(len(candidates))
    shuffled = [[texts[place] for place in order] for texts in (candidates, references, contexts)]
    np.testing.assert_array_equal(
        stacked(scorer.score(*shuffled[:2], contexts=shuffled[2], batch_size=3)), expected[:, order]
    )
    twice = stacked(scorer.score(candidates * 2, references * 2, contexts=contexts * 2, batch_size=1))
    np.testing.assert_array_equal(twice, np.concatenate([expected, expected], axis=1))
    with BERTScorer(bundle, matching=matching, nthreads=1) as of_one_thread:
        np.testing.assert_array_equal(stacked(of_one_thread.score(candidates, references, contexts=contexts)), expected)
    for place in (0, 17, 59):
        alone = stacked(scorer.score([candidates[place]], [references[place]], contexts=[contexts[place]]))
        np.testing.assert_array_equal(alone[:, 0], expected[:, place])


def test_several_references_score_as_the_best_of_each(scorer):
    scores = scorer.score(CANDIDATES, SEVERAL, contexts=CONTEXTS)
    for place, references in enumerate(SEVERAL):
        number = len(references)
        each = scorer.score([CANDIDATES[place]] * number, references, contexts=[CONTEXTS[place]] * number)
        np.testing.assert_array_equal(stacked(scores)[:, place], stacked(each).max(axis=1))
        assert scores.best_reference[place] == np.argmax(each.F)


def test_streams_and_encoded_texts_score_the_same(scorer):
    expected = stacked(scorer.score(CANDIDATES, SEVERAL))
    streamed = np.array([[*score[:3]] for score in scorer.stream(zip(CANDIDATES, SEVERAL, strict=True))])
    np.testing.assert_array_equal(streamed.T.astype(np.float32), expected)
    encoded = scorer.score(scorer.encode(CANDIDATES), scorer.encode(SEVERAL))
    np.testing.assert_array_equal(stacked(encoded), expected)
    pairwise = stacked(scorer.pairwise(CANDIDATES, REFERENCES))
    of_pairs = stacked(scorer.score(CANDIDATES, REFERENCES))
    np.testing.assert_allclose(np.einsum("sii->si", pairwise), of_pairs, atol=1e-6)


def test_f_beta_weighs_recall(tiny_bundle):
    with BERTScorer(tiny_bundle, matching=Matching(beta=3)) as scorer:
        precision, recall, f3 = scorer.score(CANDIDATES, REFERENCES)
    np.testing.assert_allclose(f3, 10 * precision * recall / (9 * precision + recall), rtol=1e-6)


WORDS_ALONE = np.s_[1:-1]
"""All tokens of a text but the special ones around it."""


def tokens_of(scorer, text):
    """Return the ids of a text and their vectors in each layer, (layers, tokens, hidden), in float64."""
    table = scorer.encode([text]).embeddings
    return table.sequences[0], table.vectors[:, : len(table.sequences[0])].astype(float)


def assert_first_pair_scores(scorer, candidate, reference):
    """Compare the scores of the first pair with the equations, of vectors that are made unit vectors."""
    scores = scorer.score(CANDIDATES[:1], REFERENCES[:1])
    sides = [part for side in (candidate, reference) for part in (unit(side), WORDS_ALONE)]
    assert (scores.P[0], scores.R[0]) == pytest.approx(equations(*sides), abs=1e-6)


@pytest.mark.parametrize("exclude", [("special",), ("punctuation",), ("special", "punctuation")])
def test_left_out_tokens_match_nothing_and_weigh_nothing(tiny_bundle, exclude):
    with BERTScorer(tiny_bundle) as plain, BERTScorer(tiny_bundle, matching=Matching(exclude=exclude)) as scorer:
        special = plain.manifest.special_ids
        marks = [token for token in tokens_of(plain, ". , ! ?")[0] if token not in special]
        left_out = [*(special if "special" in exclude else ()), *(marks if "punctuation" in exclude else ())]
        scores = scorer.score(CANDIDATES, REFERENCES)
        for place, pair in enumerate(zip(CANDIDATES, REFERENCES, strict=True)):
            sides = []
            for ids, [vectors] in (tokens_of(plain, text) for text in pair):
                kept = ~np.isin(ids, left_out)
                sides += [vectors[kept], ~np.isin(ids, special)[kept]]
            assert (scores.P[place], scores.R[place]) == pytest.approx(equations(*sides), abs=1e-6)


def test_centring_subtracts_the_mean_vector(tiny_bundle):
    sentences = ("the cat sat on a mat", "a dog ran")
    with BERTScorer(tiny_bundle) as plain, BERTScorer(tiny_bundle, matching=Matching(center=sentences)) as scorer:
        mean = np.concatenate([tokens_of(plain, text)[1][0, WORDS_ALONE] for text in sentences]).mean(axis=0)
        sides = [tokens_of(plain, text)[1][0] - mean for text in (CANDIDATES[0], REFERENCES[0])]
        assert_first_pair_scores(scorer, *sides)
    with (
        BERTScorer(tiny_bundle, matching=Matching(center="references")) as by_references,
        BERTScorer(tiny_bundle, matching=Matching(center=tuple(REFERENCES))) as by_sentences,
    ):
        found, expected = (scorer.score(CANDIDATES, REFERENCES) for scorer in (by_references, by_sentences))
    np.testing.assert_allclose(stacked(found), stacked(expected), atol=1e-6)


@pytest.mark.parametrize("pool", ["mean", "p-means"])
def test_pooled_layers(all_layers_bundle, pool):
    with (
        BERTScorer(all_layers_bundle, all_layers=True) as every,
        BERTScorer(all_layers_bundle, matching=Matching(layers=(1, -1), pool=pool)) as scorer,
    ):
        sides = []
        for text in (CANDIDATES[0], REFERENCES[0]):
            layers = tokens_of(every, text)[1][[1, 3]]
            parts = [layers.mean(axis=0)] if pool == "mean" else [layers.min(0), layers.mean(0), layers.max(0)]
            sides.append(np.concatenate(parts, axis=-1))
        assert_first_pair_scores(scorer, *sides)
        assert "layer:1+3" in str(scorer.signature)


def test_everything_excluded_scores_0_with_the_reason(tiny_bundle):
    with BERTScorer(tiny_bundle, matching=Matching(words=("the", "cat"))) as scorer:
        with pytest.warns(UserWarning, match="the matching excludes"):
            scores = scorer.score(["the cat", "a dog"], ["a dog", "a dog"])
        assert stacked(scores)[:, 0].tolist() == [0, 0, 0]
        assert scores.F[1] > 0.99


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "best"}, InputError, "method"),
        ({"exclude": ("stopwords",)}, InputError, "exclude is 'stopwords'"),
        ({"exclude": "special"}, InputTypeError, "list or a tuple"),
        ({"words": "the"}, InputTypeError, "list or a tuple"),
        ({"beta": 0}, InputError, "beta is 0"),
        ({"beta": float("nan")}, InputError, "beta is nan"),
        ({"beta": float("inf")}, InputError, "beta is inf"),
        ({"ngram": 0, "method": "transport"}, InputError, "ngram is 0"),
        ({"ngram": 2}, InputError, "belong to transport"),
        ({"cost": "squared"}, InputError, "belong to transport"),
        ({"inverse": True, "method": "assignment"}, InputError, "belong to transport"),
        ({"pool": "p-means"}, InputError, "layers"),
        ({"center": ()}, InputError, "center has no sentence"),
        ({"center": "the cat"}, InputError, "center is 'the cat'"),
        ({"layers": (1, "last")}, InputTypeError, "layers"),
        ({"words": ("the", 3)}, InputTypeError, "words"),
        ({"exclude": ([],)}, InputTypeError, "exclude"),
        ({"center": (None,)}, InputTypeError, "center"),
        ({"pool": "max"}, InputError, "pool is 'max'"),
        ({"separator": 3}, InputTypeError, "separator is 3"),
    ],
)
def test_a_bad_field(arguments, error, message):
    with pytest.raises(error, match=message):
        Matching(**arguments)


fields = {
    "exclude": st.lists(st.sampled_from(get_args(Excluded))),
    "context": st.sampled_from(get_args(ContextRole)),
    "separator": st.text(st.characters(codec=None)) | st.sampled_from([" \n", " {sep} ", "+context", "1.0"]),
    "beta": st.floats(0, 1000, exclude_min=True) | st.integers(1, 1000),
    "center": st.sampled_from([None, "references"]),
    "weigh_special": st.booleans(),
}
layers = st.lists(st.integers(-30, 60), min_size=1)
of_layers = {"layers": layers, "pool": st.sampled_from(get_args(Pool))}
of_transport = {"cost": st.sampled_from(get_args(Cost)), "inverse": st.booleans(), "ngram": st.integers(1, 4)}
presets = st.sampled_from([*PRESETS.values()])


@given(
    st.builds(Matching, method=st.sampled_from(["greedy", "assignment"]), **fields)
    | st.builds(Matching, method=st.just("transport"), **fields, **of_transport, **of_layers)
    | st.builds(replace, presets, layers=layers, beta=fields["beta"], weigh_special=st.booleans())
)
def test_the_spec_of_a_matching_is_parsed_to_it(matching):
    spec = str(matching)
    assert Matching.parse(spec) == matching
    assert spec.isprintable()
    assert {*" |"}.isdisjoint(spec)  # which a signature would replace


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ("transport , exclude=special+punctuation", {"method": "transport", "exclude": ("special", "punctuation")}),
        ("layers=3+-5..-4+0..1+3", {"layers": (-5, -4, 0, 1, 3)}),
        ("method=transport,inverse=true,ngram=2", {"method": "transport", "inverse": True, "ngram": 2}),
        ("bertscore,separator= \n", {"separator": " \n"}),
        ("separator=100%,beta=0.5", {"separator": "100%", "beta": 0.5}),
    ],
)
def test_other_spellings_of_a_spec(spec, fields):
    assert Matching.parse(spec) == Matching(**fields)


def test_the_shortest_spec_is_printed():
    assert [str(matching) for matching in PRESETS.values()] == [*PRESETS]
    assert str(Matching(exclude=("code-punctuation",), separator=" \n", beta=3)) == "code-bert-score,beta=3"
    assert str(replace(PRESETS["moverscore-1"], layers=range(8, 13))) == "moverscore-1,layers=8..12"
    assert str(replace(PRESETS["moverscore-1"], exclude=())) == "moverscore-1,exclude=none"
    assert str(Matching(method="transport", ngram=2, separator="; ")) == "transport,separator=%3B%20,ngram=2"


def test_lists_are_digests_that_only_files_replace():
    matching = Matching(words=("cat", "House"), center=("a", " b"))
    assert str(matching) == "words=5e1699deb91f,center=e639da94ca60"
    files = {"w": ["House", " cat ", ""], "c": ["a", "\t", " b"]}
    assert Matching.parse("words=w,center=c", files.__getitem__) == matching
    for spec in (str(matching), "words=w", "center=c"):
        with pytest.raises(InputError, match="reads files"):
            Matching.parse(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("moverscore", "'moverscore' is not a preset"),
        ("", "'' is not a preset"),
        ("exclude=special,punctuation", "FIELD=VALUE, with . between several values"),
        ("beta=3,code-bert-score", "these come first"),
        ("alpha=3", "The fields are method, exclude"),
        ("beta=2,beta=3", "beta twice"),
        ("beta=x", "beta is 'x'"),
        ("inverse=yes", "inverse is 'yes'"),
        ("layers=4..2", "layers is '4..2'"),
        ("layers=0..99999", "layers is '0..99999'"),
        ("doc-bert-score+context", "give the contexts with the texts"),
    ],
)
def test_a_bad_spec(spec, message):
    with pytest.raises(InputError, match=message):
        Matching.parse(spec)


def test_a_matching_of_another_type(tiny_bundle):
    with pytest.raises(InputTypeError, match="matching is 3"):
        BERTScorer(tiny_bundle, matching=3)


def test_pooling_needs_all_layers(tiny_bundle, all_layers_bundle):
    for bundle, layers in ((tiny_bundle, (1, 2)), (all_layers_bundle, (1, 9)), (all_layers_bundle, (-9,))):
        with pytest.raises(UnknownLayerError, match="--all-layers"):
            BERTScorer(bundle, matching=Matching(layers=layers))
    with pytest.raises(InputError, match="Leave one of them out"):
        BERTScorer(all_layers_bundle, 2, matching=Matching(layers=(1, 2)))


def test_centring_by_references_needs_texts_that_can_be_reread(tiny_bundle):
    with BERTScorer(tiny_bundle, matching=Matching(center="references")) as scorer:
        with pytest.raises(InputError, match="can be read only once"):
            scorer.stream(iter([("a cat", "the cat")]))
        with pytest.raises(InputError, match="cannot be encoded in advance"):
            scorer.encode(["a cat"])
        with pytest.raises(InputError, match="references of each call"):
            MicroBatcher(scorer)
        assert scorer.score([], []).F.shape == (0,)
        with pytest.warns(UserWarning, match="a side is empty"):
            assert scorer.score(["a cat"], [""]).F == 0
    with pytest.raises(InputError, match="have no token"):
        BERTScorer(tiny_bundle, matching=Matching(center=("", " ")))


@pytest.mark.parametrize(
    ("contexts", "error", "message"),
    [
        (["red"], InputError, "1 contexts for 3"),
        (["red"] * 4, InputError, "4 contexts for 3"),
        ("red", InputTypeError, "contexts is str"),
        ([3, "red", "red"], InputTypeError, r"contexts\[0\] is"),
        ([["red", 3], "red", "red"], InputTypeError, r"contexts\[0\]\[1\] is int 3"),
    ],
)
def test_bad_contexts(tiny_bundle, contexts, error, message):
    with BERTScorer(tiny_bundle) as scorer, pytest.raises(error, match=message):
        scorer.score(CANDIDATES, REFERENCES, contexts=contexts)


def test_contexts_of_references_alone_and_of_encoded_texts(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        with pytest.raises(InputError, match="given without contexts"):
            scorer.score(CANDIDATES, REFERENCES, ref_contexts=["red"] * 3)
        with pytest.raises(InputError, match="encoded before"):
            scorer.score(scorer.encode(CANDIDATES), REFERENCES, contexts=["red"] * 3)


@pytest.mark.parametrize("empty", ["", " \n", [], ["", " "]])
def test_an_empty_context_is_none(tiny_bundle, empty):
    with BERTScorer(tiny_bundle) as scorer:
        with pytest.warns(UserWarning, match="2 texts have"):
            scores = scorer.score(CANDIDATES, REFERENCES, contexts=["red house", empty, "blue"])
        expected = stacked(scorer.score(CANDIDATES[1:2], REFERENCES[1:2]))
    np.testing.assert_array_equal(stacked(scores)[:, 1], expected[:, 0])
