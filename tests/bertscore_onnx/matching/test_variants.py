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
from bertscore_onnx.serving import MicroBatcher
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


def by_hand(scorer, candidate, reference, is_matched=lambda ids: np.ones(len(ids), dtype=bool)):
    """Return P and R of the matched tokens in float64."""
    sides = []
    for text in (candidate, reference):
        table = scorer.encode([text]).embeddings
        ids, vectors = table.sequences[0], table.vectors_of(0, 0).astype(float)
        kept = is_matched(ids)
        sides.append((vectors[kept], (~np.isin(ids, scorer.manifest.special_ids))[kept]))
    (left, of_left), (right, of_right) = sides
    similarity = left @ right.T
    return similarity.max(axis=1)[of_left].mean(), similarity.max(axis=0)[of_right].mean()


@pytest.mark.parametrize("exclude", [("special",), ("punctuation",), ("subwords",), ("special", "subwords")])
def test_left_out_tokens_match_nothing_and_weigh_nothing(tiny_bundle, exclude):
    with BERTScorer(tiny_bundle) as plain, BERTScorer(tiny_bundle, matching=Matching(exclude=exclude)) as scorer:
        scores = scorer.score(CANDIDATES, REFERENCES)
        names = plain._token_names

        def is_matched(ids):
            texts, left_out = names(ids.tolist()), np.zeros(len(ids), dtype=bool)
            if "special" in exclude:
                left_out |= np.isin(ids, plain.manifest.special_ids)
            if "punctuation" in exclude:
                left_out |= np.array([text.strip() in [*".,!?"] for text in texts])
            if "subwords" in exclude:
                tokens = [plain._pipeline.tokenizer([f"{word}"])[0][0] for word in ("cats", "saying")]
                left_out |= np.isin(ids, [of_word[-2] for of_word in tokens if len(of_word) > 3])
            return ~left_out

        for place, pair in enumerate(zip(CANDIDATES, REFERENCES, strict=True)):
            expected = by_hand(plain, *pair, is_matched)
            assert (scores.P[place], scores.R[place]) == pytest.approx(expected, abs=1e-6)


def test_centring_subtracts_the_mean_vector(tiny_bundle):
    sentences = ("the cat sat on a mat", "a dog ran")
    with BERTScorer(tiny_bundle) as plain, BERTScorer(tiny_bundle, matching=Matching(center=sentences)) as scorer:
        tables = [plain.encode([text]).embeddings for text in sentences]
        words = [table.vectors_of(0, 0)[1:-1].astype(float) for table in tables]
        mean = np.concatenate(words).mean(axis=0)
        sides = []
        for text in (CANDIDATES[0], REFERENCES[0]):
            vectors = plain.encode([text]).embeddings.vectors_of(0, 0) - mean
            sides.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        similarity = sides[0] @ sides[1].T
        expected = similarity.max(axis=1)[1:-1].mean(), similarity.max(axis=0)[1:-1].mean()
        scores = scorer.score(CANDIDATES[:1], REFERENCES[:1])
        assert (scores.P[0], scores.R[0]) == pytest.approx(expected, abs=1e-6)
        of_references = Matching(center="references")
    with (
        BERTScorer(tiny_bundle, matching=of_references) as by_references,
        BERTScorer(tiny_bundle, matching=Matching(center=tuple(REFERENCES))) as by_sentences,
    ):
        np.testing.assert_allclose(
            stacked(by_references.score(CANDIDATES, REFERENCES)),
            stacked(by_sentences.score(CANDIDATES, REFERENCES)),
            atol=1e-6,
        )


@pytest.mark.parametrize("pool", ["mean", "p-means"])
def test_pooled_layers(all_layers_bundle, pool):
    with (
        BERTScorer(all_layers_bundle, all_layers=True) as every,
        BERTScorer(all_layers_bundle, matching=Matching(layers=(1, -1), pool=pool)) as scorer,
    ):
        sides = []
        for text in (CANDIDATES[0], REFERENCES[0]):
            layers = every.encode([text]).embeddings.vectors[[1, 3], :, :]
            length = len(every.encode([text]).embeddings.sequences[0])
            layers = layers[:, :length].astype(float)
            parts = [layers.mean(axis=0)] if pool == "mean" else [layers.min(0), layers.mean(0), layers.max(0)]
            vectors = np.concatenate(parts, axis=-1)
            sides.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        similarity = sides[0] @ sides[1].T
        expected = similarity.max(axis=1)[1:-1].mean(), similarity.max(axis=0)[1:-1].mean()
        scores = scorer.score(CANDIDATES[:1], REFERENCES[:1])
        assert (scores.P[0], scores.R[0]) == pytest.approx(expected, abs=1e-6)
        assert "layer:1+3" in str(scorer.signature)


def test_everything_excluded_scores_0_with_the_reason(tiny_bundle):
    with BERTScorer(tiny_bundle, matching=Matching(words=("the", "cat"))) as scorer:
        with pytest.warns(UserWarning, match="1 pair scores 0 because the matching excludes every token of a side"):
            scores = scorer.score(["the cat", "a dog"], ["a dog", "a dog"])
        assert stacked(scores)[:, 0].tolist() == [0, 0, 0]
        assert scores.F[1] > 0.99


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "best"}, InputError, "method is 'best'; expected \"greedy\""),
        ({"exclude": ("stopwords",)}, InputError, "exclude is 'stopwords'"),
        ({"exclude": "special"}, InputTypeError, "expected a list or a tuple"),
        ({"words": "the"}, InputTypeError, "expected a list or a tuple"),
        ({"beta": 0}, InputError, "beta is 0; expected a number above 0"),
        ({"beta": float("nan")}, InputError, "beta is nan"),
        ({"beta": float("inf")}, InputError, "beta is inf"),
        ({"ngram": 0, "method": "transport"}, InputError, "ngram is 0"),
        ({"ngram": 2}, InputError, "belong to transport"),
        ({"cost": "squared"}, InputError, "belong to transport"),
        ({"inverse": True, "method": "assignment"}, InputError, "belong to transport"),
        ({"pool": "p-means"}, InputError, "layers"),
        ({"center": ()}, InputError, "center has no sentence"),
        ({"center": "the cat"}, InputError, "center is 'the cat'"),
        ({"layers": (1, "last")}, InputTypeError, "layers has 'last'; expected integers"),
        ({"words": ("the", 3)}, InputTypeError, "words has 3; expected strings"),
        ({"exclude": ([],)}, InputTypeError, r"exclude has \[\]; expected strings"),
        ({"center": (None,)}, InputTypeError, "center has None; expected strings"),
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
        with pytest.raises(InputError, match="only the command line reads files"):
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
    with pytest.raises(AttributeError, match="parse"):
        Matching.named("code-bert-score", beta=3)


def test_pooling_needs_all_layers(tiny_bundle, all_layers_bundle):
    for bundle, layers in ((tiny_bundle, (1, 2)), (all_layers_bundle, (1, 9)), (all_layers_bundle, (-9,))):
        with pytest.raises(UnknownLayerError, match="--all-layers"):
            BERTScorer(bundle, matching=Matching(layers=layers))
    with pytest.raises(InputError, match="Leave one of them out"):
        BERTScorer(all_layers_bundle, 2, matching=Matching(layers=(1, 2)))


def test_centring_by_references_of_an_iterator_or_of_encoded_texts(tiny_bundle):
    with BERTScorer(tiny_bundle, matching=Matching(center="references")) as scorer:
        with pytest.raises(InputError, match="can be read only once"):
            scorer.stream(iter([("a cat", "the cat")]))
        with pytest.raises(InputError, match="cannot be encoded in advance"):
            scorer.encode(["a cat"])
        with pytest.raises(InputError, match="centres vectors by the references of each call"):
            MicroBatcher(scorer)
        assert scorer.score([], []).F.shape == (0,)
        with pytest.warns(UserWarning, match="a side is empty"):
            assert scorer.score(["a cat"], [""]).F == 0
    with pytest.raises(InputError, match="have no token"):
        BERTScorer(tiny_bundle, matching=Matching(center=("", " ")))


@pytest.mark.parametrize(
    ("contexts", "error", "message"),
    [
        (["red"], InputError, "There are 1 contexts for 3 candidates"),
        (["red"] * 4, InputError, "There are 4 contexts for 3 candidates"),
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
        with pytest.raises(InputError, match="encoded before have no context"):
            scorer.score(scorer.encode(CANDIDATES), REFERENCES, contexts=["red"] * 3)


@pytest.mark.parametrize("empty", ["", " \n", [], ["", " "]])
def test_an_empty_context_is_none(tiny_bundle, empty):
    with BERTScorer(tiny_bundle) as scorer:
        with pytest.warns(UserWarning, match="2 texts have an empty context"):
            scores = scorer.score(CANDIDATES, REFERENCES, contexts=["red house", empty, "blue"])
        expected = stacked(scorer.score(CANDIDATES[1:2], REFERENCES[1:2]))
    np.testing.assert_array_equal(stacked(scores)[:, 1], expected[:, 0])
