import pytest

from bertscore_onnx import BERTScorer
from tests.support.http_server import refusal, serving_bundles

PAIRS = [
    {"candidate": "the cat sat.", "reference": "a cat sits.", "context": "it was red"},
    {
        "candidate": "a dog ran",
        "references": ["the dog", "a dog sat"],
        "context": ["a tree", "is it"],
    },
    {"candidate": "a dog ran", "reference": "the dog runs"},
    {"candidate": "red house", "reference": "a house", "context": ""},
]
CONTEXTS = [pair.get("context") for pair in PAIRS]


@pytest.fixture(scope="module")
def expected(rescaled_bundle):
    """The scores and the signature of a scorer, in contexts."""
    candidates = [pair["candidate"] for pair in PAIRS]
    references = [pair.get("references") or pair["reference"] for pair in PAIRS]
    with (
        BERTScorer(rescaled_bundle, device="cpu", matching="doc-bert-score") as scorer,
        pytest.warns(match="an empty context"),
    ):
        return scorer.score(candidates, references, contexts=CONTEXTS, return_hash=True)


@pytest.fixture(scope="module")
def contextual(rescaled_bundle):
    """A client of a server of Doc-BERTScore."""
    with serving_bundles(rescaled_bundle, matching="doc-bert-score") as client:
        yield client


def test_pairs_have_contexts_or_none(contextual, expected):
    answer = contextual.post("/v1/score", json={"pairs": PAIRS}).json()
    scores, signature = expected
    assert [score["f1"] for score in answer["scores"]] == pytest.approx(scores.F.tolist(), abs=1e-5)
    assert answer["signature"] == signature
    plain = contextual.post("/v1/score", json={"pairs": PAIRS[2:3]}).json()
    assert plain["scores"][0]["f1"] == pytest.approx(float(scores.F[2]), abs=1e-5)
    assert "|matching:doc-bert-score|" in plain["signature"]


def test_matches_are_refused_that_cannot_be_shown(contextual):
    assert refusal(contextual.post("/v1/match", json=PAIRS[0])) == (422, "invalid")
    assert contextual.post("/v1/match", json=PAIRS[2]).json()["candidate"] == [
        "[CLS]",
        "a",
        "dog",
        "ran",
        "[SEP]",
    ]
