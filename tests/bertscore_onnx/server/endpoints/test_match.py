import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models
from bertscore_onnx.server.schemas import MatchAnswer
from bertscore_onnx.similarity import TokenNames, token_similarity
from tests.support.http_server import CPU, error_of, serving

PAIR = {"candidate": "the cat sat", "reference": "a dog sat on it"}


def test_the_similarities_explain_the_score(rescaled_bundle):
    with BERTScorer(rescaled_bundle, device="cpu") as scorer:
        found = token_similarity(scorer, TokenNames(resolve_bundle(str(rescaled_bundle))), *PAIR.values())
        scores = scorer.score([PAIR["candidate"]], [PAIR["reference"]])
    assert found.candidate == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert found.reference == ["[CLS]", "a", "dog", "sat", "on", "it", "[SEP]"]
    assert found.candidate_weights.tolist() == [0, 1, 1, 1, 0]
    best = found.similarity.max(axis=1), found.similarity.max(axis=0)
    weights = found.candidate_weights, found.reference_weights
    means = [np.average(one, weights=other) for one, other in zip(best, weights, strict=True)]
    assert means == pytest.approx([float(scores.P[0]), float(scores.R[0])], abs=1e-6)


def test_a_pair_is_answered_with_its_similarities(client):
    response = client.post("/v1/match", json={**PAIR, "rescale": "en"})
    answer = msgspec.json.decode(response.content, type=MatchAnswer)
    [score] = client.post("/v1/score", json={"pairs": [PAIR], "rescale": "en"}).json()["scores"]
    assert msgspec.to_builtins(answer.score) == score
    assert np.shape(answer.similarity) == (len(answer.candidate), len(answer.reference)) == (5, 7)
    assert "|rescale:en|" in answer.signature
    assert np.abs(answer.similarity).max() <= 1


def test_matches_and_special_tokens_are_named(client):
    answer = client.post("/v1/match", json=PAIR).json()
    assert answer["candidate_matches"] == np.argmax(answer["similarity"], axis=1).tolist()
    assert answer["reference_matches"] == np.argmax(answer["similarity"], axis=0).tolist()
    assert answer["candidate_special"] == [True, False, False, False, True]
    assert answer["reference_special"] == [True, *[False] * 5, True]


def test_of_several_references_the_best_one_is_shown(client):
    texts = ["a dog", "the cat sat on it", "it"]
    answer = client.post("/v1/match", json={"candidate": "the cat sat", "references": texts}).json()
    [score] = client.post("/v1/score", json={"pairs": [{"candidate": "the cat sat", "references": texts}]}).json()[
        "scores"
    ]
    assert answer["score"] == score
    assert score["best_reference"] == 1
    assert answer["reference"] == ["[CLS]", "the", "cat", "sat", "on", "it", "[SEP]"]


def test_an_idf_table_weighs_the_tokens(client):
    answer = client.post("/v1/match", json={**PAIR, "idf": "zoo"}).json()
    [score] = client.post("/v1/score", json={"pairs": [PAIR], "idf": "zoo"}).json()["scores"]
    assert answer["score"] == score
    assert len({*answer["candidate_weights"]}) > 2
    best = np.max(answer["similarity"], axis=1)
    assert np.average(best, weights=answer["candidate_weights"]) == pytest.approx(score["precision"], abs=2e-4)
    response = client.post("/v1/match", json={**PAIR, "idf": "none"})
    assert (response.status_code, error_of(response)["code"]) == (422, "unknown_idf")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"candidate": "a"}, "invalid"),
        ({**PAIR, "references": ["a"]}, "invalid"),
        ({"candidate": "a", "references": []}, "invalid"),
        ({"candidate": "a", "references": ["a"] * 10_001}, "too_many_pairs"),
        ({"candidate": "a", "references": ["cat " * 100] * 1000}, "too_long"),
    ],
)
def test_references_that_cannot_be_shown_are_refused(client, body, code):
    response = client.post("/v1/match", json=body)
    assert (response.status_code, error_of(response)["code"]) == (422, code)


def test_equal_and_empty_texts_have_similarities_too(client):
    equal = client.post("/v1/match", json={"candidate": "a cat", "reference": "a cat"}).json()
    assert np.diag(equal["similarity"]) == pytest.approx(np.ones(4), abs=1e-4)
    empty = client.post("/v1/match", json={"candidate": "", "reference": "a cat"}).json()
    assert empty["candidate"] == ["[CLS]", "[SEP]"]
    assert empty["score"]["f1"] == 0


@pytest.mark.slow
def test_texts_of_many_tokens_are_refused(minilm_bundle):
    with Models.load([str(minilm_bundle)], {}, Limits(), CPU) as models, serving(models) as client:
        response = client.post("/v1/match", json={"candidate": "cat " * 126, "reference": "cat"})
        assert (response.status_code, len(response.json()["candidate"])) == (200, 128)
        response = client.post("/v1/match", json={"candidate": "cat", "reference": "cat " * 127})
        assert (response.status_code, error_of(response)["code"]) == (422, "too_long")
        pieces = client.post("/v1/match", json={"candidate": "unhappinesses 😀", "reference": "cat"}).json()[
            "candidate"
        ]
        assert pieces[0] == "[CLS]"
        assert "".join(pieces[1:-2]).replace("##", "") == "unhappinesses"
