"""Scores and matches over HTTP are those of a scorer."""

import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.server.answers import MatchAnswer, ModelList, ScoreAnswer
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models
from bertscore_onnx.similarity import TokenNames, token_similarity
from tests.support.http_server import CPU, IDF_SENTENCES, error_of, serving

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house"]

REFERENCES = [["a cat sits on a mat.", "the cat sat"], ["the dog runs"], ["the tree is blue!", "a house", "red house"]]

PAIRS = [{"candidate": one, "references": many} for one, many in zip(CANDIDATES, REFERENCES, strict=True)]


def post(client, **body):
    return client.post("/v1/score", json={"pairs": PAIRS, **body})


def assert_equal(response, scorer):
    """Check an answer against what a scorer says, field by field."""
    answer = msgspec.json.decode(response.content, type=ScoreAnswer, strict=True)
    scores, signature = scorer.score(CANDIDATES, REFERENCES, return_hash=True)
    assert response.status_code == 200
    assert answer.signature == signature
    assert [score.best_reference for score in answer.scores] == scores.best_reference.tolist()
    for name, expected in zip(("precision", "recall", "f1"), scores, strict=True):
        assert [getattr(score, name) for score in answer.scores] == pytest.approx(expected.tolist(), abs=1e-5)


def test_the_scores_are_those_of_a_scorer(client, rescaled_bundle):
    with BERTScorer(rescaled_bundle, device="cpu") as scorer:
        assert_equal(post(client), scorer)


def test_rescaled_scores_are_those_of_a_rescaling_scorer(client, rescaled_bundle):
    with BERTScorer(rescaled_bundle, lang="en", rescale_with_baseline=True, device="cpu") as scorer:
        assert_equal(post(client, rescale="EN"), scorer)


def test_weighted_scores_are_those_of_a_weighing_scorer(client, rescaled_bundle):
    with BERTScorer(
        rescaled_bundle, idf=True, idf_sents=IDF_SENTENCES, lang="en", rescale_with_baseline=True, device="cpu"
    ) as scorer:
        assert_equal(post(client, idf="zoo", rescale="en"), scorer)


def test_a_request_of_many_tokens_is_scored_in_pieces(rescaled_bundle):
    limits = Limits(max_batch_tokens=30)
    with (
        Models.load([str(rescaled_bundle)], {}, limits, CPU) as models,
        serving(models, limits) as client,
        BERTScorer(rescaled_bundle, device="cpu") as scorer,
    ):
        assert_equal(post(client), scorer)
        stats = models.select().batcher.stats()
    assert (stats.submitted, stats.completed) == (1, 1)
    assert stats.batches > 1


def test_a_single_reference_may_stand_alone(client):
    single = client.post("/v1/score", json={"pairs": [{"candidate": "a cat", "reference": "the cat"}]})
    several = client.post("/v1/score", json={"pairs": [{"candidate": "a cat", "references": ["the cat"]}]})
    assert single.json()["scores"] == several.json()["scores"]


def test_no_pairs_get_no_scores(client):
    assert client.post("/v1/score", json={"pairs": []}).json()["scores"] == []


def test_the_settings_may_be_null_and_false(client):
    assert post(client, model=None, idf=None, rescale=False).json() == post(client).json()


def test_models_lists_what_a_request_may_ask_for(client):
    [model] = msgspec.json.decode(client.get("/v1/models").content, type=ModelList).models
    assert (model.id, model.layer, model.precision) == ("tiny-bert", 2, "fp32")
    assert (model.rescale, model.idf, model.max_length) == (["en"], ["zoo"], 32)
    assert model.provider == "CPUExecutionProvider"
    assert model.signature == post(client, model=model.id).json()["signature"]


def test_several_models_are_told_apart_by_name(tiny_bundle, rescaled_bundle):
    with (
        Models.load([f"one={tiny_bundle}", f"two={rescaled_bundle}"], {}, Limits(), CPU) as models,
        serving(models) as client,
    ):
        assert post(client, model="two", rescale="en").status_code == 200
        assert error_of(post(client, model="one", rescale="en"))["code"] == "unknown_baseline"
        assert error_of(post(client)) == {
            "code": "model_missing",
            "message": "Name a `model`; the server has: one, two.",
        }


def test_long_texts_are_scored_as_a_whole_where_the_scorer_does(tiny_bundle):
    cand, ref = "the cat sat on the mat " * 20, "a dog ran " * 40  # the model takes 32 tokens
    with (
        Models.load([str(tiny_bundle)], {}, Limits(), {**CPU, "long_text": "window"}) as models,
        serving(models) as client,
        BERTScorer(tiny_bundle, device="cpu", long_text="window") as scorer,
    ):
        answer = client.post("/v1/score", json={"pairs": [{"candidate": cand, "reference": ref}]}).json()
        assert "|long_text:window|" in answer["signature"]
        assert answer["scores"][0]["f1"] == pytest.approx(scorer.score([cand], [ref]).F[0], abs=1e-6)


def test_a_maximum_length_is_that_of_the_scorer(tiny_bundle):
    cand, ref = "the cat sat on the mat and ran", "a dog ran on the red mat and sat"
    with (
        Models.load([str(tiny_bundle)], {}, Limits(), {**CPU, "max_length": 8}) as models,
        serving(models) as client,
        BERTScorer(tiny_bundle, device="cpu", max_length=8) as scorer,
    ):
        answer = client.post("/v1/score", json={"pairs": [{"candidate": cand, "reference": ref}]}).json()
        [info] = client.get("/v1/models").json()["models"]
        with pytest.warns(UserWarning, match="truncated"):
            expected = scorer.score([cand], [ref]).F[0]
    assert answer["signature"] == info["signature"] == scorer.hash
    assert answer["scores"][0]["f1"] == pytest.approx(expected, abs=1e-6)
    assert info["max_length"] == 8


@pytest.mark.parametrize(
    ("body", "code", "pair"),
    [
        ({"pairs": [*PAIRS, {"candidate": "a cat", "reference": 1}]}, "invalid", 3),
        ({"pairs": [*PAIRS, {"candidate": "a cat"}]}, "invalid", 3),
        ({"pairs": [{"candidate": "a", "reference": "b", "references": ["c"]}]}, "invalid", 0),
        ({"pairs": [{"candidate": "a", "references": []}]}, "invalid", 0),
        ({"pairs": [{"candidate": "a", "reference": "b", "weight": 2}]}, "invalid", 0),
        ({"pairs": [{"candidate": "a", "references": ["b"] * 1025}]}, "too_many_pairs", 0),
        ({"pairs": PAIRS * 171}, "too_many_pairs", None),
        ({"pairs": PAIRS, "models": "tiny-bert"}, "invalid", None),
        ({"pairs": PAIRS, "model": "huge-bert"}, "unknown_model", None),
        ({"pairs": PAIRS, "rescale": "de"}, "unknown_baseline", None),
        ({"pairs": PAIRS, "rescale": True}, "invalid", None),
        ({"pairs": PAIRS, "idf": "sea"}, "unknown_idf", None),
        ({}, "invalid", None),
        ([], "invalid", None),
    ],
)
def test_what_cannot_be_scored_is_answered_422_with_the_pair(client, body, code, pair):
    response = client.post("/v1/score", json=body)
    assert response.status_code == 422
    assert error_of(response)["code"] == code
    assert error_of(response).get("pair") == pair


def test_a_candidate_with_too_many_tokens_of_references_is_refused(models):
    with serving(models, Limits(max_batch_tokens=100)) as client:
        long = {"candidate": "a cat", "references": ["the red cat sat on a mat " * 4] * 4}
        response = client.post("/v1/score", json={"pairs": [*PAIRS, long]})
        assert (response.status_code, error_of(response)["code"], error_of(response)["pair"]) == (422, "too_long", 3)
        assert client.post("/v1/score", json={"pairs": [{**long, "references": long["references"][:2]}]}).is_success


def test_json_bodies_have_their_settings_in_the_body(client):
    response = client.post("/v1/score?rescale=en", json={"pairs": PAIRS})
    assert (response.status_code, error_of(response)["code"]) == (422, "invalid")


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


def test_tokens_are_counted_before_similarities_are_computed(client, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.server.endpoints.MAX_MATCH_TOKENS", 4)
    monkeypatch.setattr("bertscore_onnx.server.endpoints.token_similarity", pytest.fail)
    response = client.post("/v1/match", json={"candidate": "the cat sat on the mat", "reference": "a"})
    assert (response.status_code, error_of(response)["code"]) == (422, "too_long")


def test_true_tokens_are_counted(models):
    with serving(models, Limits(max_batch_tokens=40)) as client:
        response = client.post("/v1/score", json={"pairs": [{"candidate": "." * 30, "reference": "!" * 30}]})
        assert (response.status_code, error_of(response)["code"]) == (422, "too_long")
        response = client.post("/v1/score", json={"pairs": [{"candidate": "the cat sat", "reference": "cat " * 20}]})
        assert response.status_code == 200
