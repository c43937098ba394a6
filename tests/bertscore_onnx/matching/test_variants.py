"""`Matching`: its fields, its name, and scores that do not depend on anything beside the pair."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.matching.variants import PRESETS, ContextRole, Excluded, Matching
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL, WORDS

MATCHINGS = {
    "special": Matching(exclude=("special",)),
    "punctuation": Matching(exclude=("punctuation",)),
    "subwords": Matching(exclude=("subwords", "ascii-punctuation")),
    "words": Matching(words=("the", "a")),
    "code": PRESETS["code-bert-score"],
    "doc": PRESETS["doc-bert-score"],
    "beta": Matching(beta=3),
}


@pytest.fixture(params=MATCHINGS)
def matching(request):
    return MATCHINGS[request.param]


@pytest.fixture
def scorer(tiny_bundle, matching):
    with BERTScorer(tiny_bundle, matching=matching) as scorer:
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
def test_a_score_depends_on_nothing_but_its_pair(tiny_bundle, matching, scorer, small_chunks):
    candidates, references, contexts = many()
    expected = stacked(scorer.score(candidates, references, contexts=contexts))
    order = np.random.default_rng(1).permutation(len(candidates))
    shuffled = [[texts[place] for place in order] for texts in (candidates, references, contexts)]
    np.testing.assert_array_equal(
        stacked(scorer.score(*shuffled[:2], contexts=shuffled[2], batch_size=3)), expected[:, order]
    )
    twice = stacked(
        scorer.score(candidates * 2, references * 2, contexts=contexts * 2, batch_size=1)
    )
    np.testing.assert_array_equal(twice, np.concatenate([expected, expected], axis=1))
    with BERTScorer(tiny_bundle, matching=matching, nthreads=1) as of_one_thread:
        np.testing.assert_array_equal(
            stacked(of_one_thread.score(candidates, references, contexts=contexts)), expected
        )
    for place in (0, 17, 59):
        alone = stacked(
            scorer.score([candidates[place]], [references[place]], contexts=[contexts[place]])
        )
        np.testing.assert_array_equal(alone[:, 0], expected[:, place])


def test_streams_and_encoded_texts_score_the_same(scorer):
    expected = stacked(scorer.score(CANDIDATES, SEVERAL))
    streamed = np.array(
        [[*score[:3]] for score in scorer.stream(zip(CANDIDATES, SEVERAL, strict=True))]
    )
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


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"exclude": ("stopwords",)}, InputError, "exclude is 'stopwords'"),
        ({"exclude": "special"}, InputTypeError, "list or a tuple"),
        ({"words": "the"}, InputTypeError, "list or a tuple"),
        ({"beta": 0}, InputError, "beta is 0"),
        ({"beta": float("nan")}, InputError, "beta is nan"),
        ({"beta": float("inf")}, InputError, "beta is inf"),
        ({"words": ("the", 3)}, InputTypeError, "words"),
        ({"exclude": ([],)}, InputTypeError, "exclude"),
        ({"separator": 3}, InputTypeError, "separator is 3"),
    ],
)
def test_a_bad_field(arguments, error, message):
    with pytest.raises(error, match=message):
        Matching(**arguments)


fields = {
    "exclude": st.lists(st.sampled_from(get_args(Excluded))),
    "context": st.sampled_from(get_args(ContextRole)),
    "separator": st.text(st.characters(codec=None))
    | st.sampled_from([" \n", " {sep} ", "+context", "1.0"]),
    "beta": st.floats(0, 1000, exclude_min=True) | st.integers(1, 1000),
}
presets = st.sampled_from([*PRESETS.values()])


@given(st.builds(Matching, **fields) | st.builds(replace, presets, beta=fields["beta"]))
def test_the_spec_of_a_matching_is_parsed_to_it(matching):
    spec = str(matching)
    assert Matching.parse(spec) == matching
    assert spec.isprintable()
    assert {*" |"}.isdisjoint(spec)  # which a signature would replace


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ("bertscore , exclude=special+punctuation", {"exclude": ("special", "punctuation")}),
        ("bertscore,separator= \n", {"separator": " \n"}),
        ("separator=100%,beta=0.5", {"separator": "100%", "beta": 0.5}),
    ],
)
def test_other_spellings_of_a_spec(spec, fields):
    assert Matching.parse(spec) == Matching(**fields)


def test_the_shortest_spec_is_printed():
    assert [str(matching) for matching in PRESETS.values()] == [*PRESETS]
    assert (
        str(Matching(exclude=("code-punctuation",), separator=" \n", beta=3))
        == "code-bert-score,beta=3"
    )
    assert str(replace(PRESETS["code-bert-score"], exclude=())) == "separator=%20%0A"
    assert str(Matching(separator="; ", beta=2)) == "separator=%3B%20,beta=2"


def test_lists_are_digests_that_only_files_replace():
    matching = Matching(words=("cat", "House"))
    assert str(matching) == "words=6ed15685d661"
    assert Matching.parse("words=w", {"w": ["House", " cat ", ""]}.__getitem__) == matching
    for spec in (str(matching), "words=w"):
        with pytest.raises(InputError, match="reads files"):
            Matching.parse(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("moverscore-1", "'moverscore-1' is not a preset"),
        ("", "'' is not a preset"),
        ("exclude=special,punctuation", "FIELD=VALUE, with . between several values"),
        ("beta=3,code-bert-score", "these come first"),
        ("alpha=3", "The fields are exclude, words"),
        ("beta=2,beta=3", "beta twice"),
        ("doc-bert-score+context", "give the contexts with the texts"),
    ],
)
def test_a_bad_spec(spec, message):
    with pytest.raises(InputError, match=message):
        Matching.parse(spec)


@pytest.mark.parametrize(
    ("contexts", "error", "message"),
    [
        ([3, "red", "red"], InputTypeError, r"contexts\[0\] is"),
        ([["red", 3], "red", "red"], InputTypeError, r"contexts\[0\]\[1\] is int 3"),
    ],
)
def test_bad_contexts(tiny_bundle, contexts, error, message):
    with BERTScorer(tiny_bundle) as scorer, pytest.raises(error, match=message):
        scorer.score(CANDIDATES, REFERENCES, contexts=contexts)


def test_encoded_texts_take_no_contexts(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer, pytest.raises(InputError, match="encoded before"):
        scorer.score(scorer.encode(CANDIDATES), REFERENCES, contexts=["red"] * 3)


@pytest.mark.parametrize("empty", ["", " \n", [], ["", " "]])
def test_an_empty_context_is_none(tiny_bundle, empty):
    with BERTScorer(tiny_bundle) as scorer:
        with pytest.warns(UserWarning, match="2 texts have"):
            scores = scorer.score(CANDIDATES, REFERENCES, contexts=["red house", empty, "blue"])
        expected = stacked(scorer.score(CANDIDATES[1:2], REFERENCES[1:2]))
    np.testing.assert_array_equal(stacked(scores)[:, 1], expected[:, 0])
