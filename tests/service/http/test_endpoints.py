import re

import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.similarity import match_html
from bertscore_onnx_service.http.bodies import MatchAnswer, ModelList, ScoreAnswer
from bertscore_onnx_service.http.limits import Limits
from tests.support.http_server import IDF_SENTENCES, error_of, refusal, serving, serving_bundles

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house"]

REFERENCES = [
    ["a cat sits on a mat.", "the cat sat"],
    ["the dog runs"],
    ["the tree is blue!", "a house", "red house"],
]

PAIRS = [
    {"candidate": one, "references": many} for one, many in zip(CANDIDATES, REFERENCES, strict=True)
]


def post(client, **body):
    return client.post("/v1/score", json={"pairs": PAIRS, **body})


def assert_equal(response, scorer):
    """Check an answer against the scores of a scorer, field by field."""
    answer = msgspec.json.decode(response.content, type=ScoreAnswer, strict=True)
    scores, signature = scorer.score(CANDIDATES, REFERENCES, return_hash=True)
    assert response.status_code == 200
    assert answer.signature == signature
    assert [score.best_reference for score in answer.scores] == scores.best_reference.tolist()
    for name, expected in zip(("precision", "recall", "f1"), scores, strict=True):
        assert [getattr(score, name) for score in answer.scores] == pytest.approx(
            expected.tolist(), abs=1e-5
        )


RESCALED = {"lang": "en", "rescale_with_baseline": True}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, {}),
        ({"model": None, "idf": None, "rescale": False}, {}),
        ({"rescale": "EN"}, RESCALED),
        ({"rescale": "en", "idf": "zoo"}, {"idf": True, "idf_sents": IDF_SENTENCES, **RESCALED}),
    ],
)
def test_the_scores_are_those_of_a_scorer(client, rescaled_bundle, options, settings):
    with BERTScorer(rescaled_bundle, device="cpu", **settings) as scorer:
        assert_equal(post(client, **options), scorer)


def test_a_request_of_many_tokens_is_scored_in_pieces(rescaled_bundle):
    with (
        serving_bundles(rescaled_bundle, limits=Limits(max_batch_tokens=30)) as client,
        BERTScorer(rescaled_bundle, device="cpu") as scorer,
    ):
        assert_equal(post(client), scorer)
        stats = client.models.select().batcher.stats()
    assert (stats.submitted, stats.completed) == (1, 1)
    assert stats.batches > 1


def test_models_lists_the_settings_of_a_request(client):
    [model] = msgspec.json.decode(client.get("/v1/models").content, type=ModelList).models
    assert (model.id, model.layer, model.precision) == ("tiny-bert", 2, "fp32")
    assert (model.rescale, model.idf, model.max_length) == (["en"], ["zoo"], 32)
    assert model.provider == "CPUExecutionProvider"
    assert model.signature == post(client, model=model.id).json()["signature"].replace(
        "references:1-3|", ""
    )


def test_several_models_are_told_apart_by_name(tiny_bundle, rescaled_bundle):
    with serving_bundles(f"one={tiny_bundle}", f"two={rescaled_bundle}") as client:
        assert post(client, model="two", rescale="en").status_code == 200
        assert error_of(post(client, model="one", rescale="en"))["code"] == "unknown_baseline"
        error = error_of(post(client))
        assert (error["code"], "one, two" in error["message"]) == ("model_missing", True)


@pytest.mark.filterwarnings("ignore:.*truncated:UserWarning")
@pytest.mark.parametrize(
    ("setting", "max_length"), [({"long_text": "window"}, 32), ({"max_length": 8}, 8)]
)
def test_settings_for_long_texts_are_those_of_the_scorer(tiny_bundle, setting, max_length):
    cand, ref = "the cat sat on the mat " * 20, "a dog ran " * 40
    with (
        serving_bundles(tiny_bundle, **setting) as client,
        BERTScorer(tiny_bundle, device="cpu", **setting) as scorer,
    ):
        answer = client.post(
            "/v1/score", json={"pairs": [{"candidate": cand, "reference": ref}]}
        ).json()
        [info] = client.get("/v1/models").json()["models"]
        assert answer["scores"][0]["f1"] == pytest.approx(
            scorer.score([cand], [ref]).F[0], abs=1e-6
        )
    assert answer["signature"] == info["signature"] == scorer.hash
    assert info["max_length"] == max_length


LONG = "the cat sat on the mat " * 20
CUT = [
    ("a cat", ["the cat"]),
    (LONG, ["the cat"]),
    ("a cat", ["the cat", LONG, "a"]),
    ("a", ["the", "cat"]),
]


def test_truncated_pairs_are_named_in_any_order_and_division(client, recwarn):
    pairs = [
        {"candidate": candidate, "references": references} for candidate, references in CUT * 3
    ]

    def truncated(some):
        return [
            score["truncated"]
            for score in client.post("/v1/score", json={"pairs": some}).json()["scores"]
        ]

    expected = [False, True, True, False] * 3
    assert truncated(pairs) == expected
    assert truncated(pairs[::-1]) == expected[::-1]
    assert [truncated([pair]) for pair in pairs] == [[one] for one in expected]
    matched = [client.post("/v1/match", json=pair).json() for pair in pairs[:4]]
    assert [answer["score"]["truncated"] for answer in matched] == expected[:4]
    assert not [warning for warning in recwarn if "truncated" in str(warning.message)]


def test_tokens_are_counted_before_similarities_are_computed(client, monkeypatch):
    monkeypatch.setattr("bertscore_onnx_service.http.endpoints.MAX_MATCH_TOKENS", 31)
    monkeypatch.setattr("bertscore_onnx_service.http.endpoints.pair_similarities", pytest.fail)
    for text, number in ((LONG, "more than 32 tokens"), ("cat " * 30, "32 tokens")):
        answer = client.post("/v1/match", json={"candidate": text, "reference": "a"}).json()
        assert (
            answer["too_long"] == f"The candidate has {number}; matches are shown for at most 31."
        )
        scored = client.post(
            "/v1/score", json={"pairs": [{"candidate": text, "reference": "a"}]}
        ).json()
        assert [answer["score"]] == scored["scores"]
        assert {answer[name] for name in [*answer][4:]} == {None}


@pytest.mark.parametrize(
    ("body", "code", "pair"),
    [
        ({"pairs": [*PAIRS, {"candidate": "a cat", "reference": 1}]}, "invalid", 3),
        ({"pairs": [{"candidate": "a", "reference": "b", "weight": 2}]}, "invalid", 0),
        ({"pairs": [{"candidate": "a", "references": ["b"] * 1025}]}, "too_many_pairs", 0),
        ({"pairs": PAIRS * 171}, "too_many_pairs", None),
        ({"pairs": PAIRS, "models": "tiny-bert"}, "invalid", None),
        ({"pairs": PAIRS, "model": "huge-bert"}, "unknown_model", None),
        ({"pairs": PAIRS, "rescale": "de"}, "unknown_baseline", None),
        ({"pairs": PAIRS, "idf": "sea"}, "unknown_idf", None),
    ],
)
def test_bad_requests_are_answered_422_with_the_pair(client, body, code, pair):
    response = client.post("/v1/score", json=body)
    assert refusal(response) == (422, code)
    assert error_of(response).get("pair") == pair


def test_a_candidate_with_too_many_reference_tokens_is_refused(models):
    with serving(models, Limits(max_batch_tokens=100)) as client:
        long = {"candidate": "a cat", "references": ["the red cat sat on a mat " * 4] * 4}
        response = client.post("/v1/score", json={"pairs": [*PAIRS, long]})
        assert (*refusal(response), error_of(response)["pair"]) == (422, "too_long", 3)
        assert client.post(
            "/v1/score", json={"pairs": [{**long, "references": long["references"][:2]}]}
        ).is_success


def test_json_bodies_have_their_settings_in_the_body(client):
    assert refusal(client.post("/v1/score?rescale=en", json={"pairs": PAIRS})) == (422, "invalid")


PAIR = {"candidate": "the cat sat", "reference": "a dog sat on it"}


def test_a_pair_is_answered_with_its_similarities_and_matches(client):
    response = client.post("/v1/match", json={**PAIR, "rescale": "en"})
    answer = msgspec.json.decode(response.content, type=MatchAnswer)
    [score] = client.post("/v1/score", json={"pairs": [PAIR], "rescale": "en"}).json()["scores"]
    assert msgspec.to_builtins(answer.score) == score
    assert np.shape(answer.similarity) == (len(answer.candidate), len(answer.reference)) == (5, 7)
    assert "|rescale:en|" in answer.signature
    assert np.abs(answer.similarity).max() <= 1
    assert answer.candidate_matches == np.argmax(answer.similarity, axis=1).tolist()
    assert answer.reference_matches == np.argmax(answer.similarity, axis=0).tolist()
    assert answer.candidate_special == [True, False, False, False, True]
    assert answer.reference_special == [True, *[False] * 5, True]


def test_matches_are_returned_as_html_on_request(client, models):
    model = models.select(None, "zoo")
    with model.scorer.with_rescaling("en") as scorer:
        expected = match_html(
            scorer.match(PAIR["candidate"], PAIR["reference"]).best, with_matrix=True
        )
    answer = client.post(
        "/v1/match", json={**PAIR, "rescale": "en", "idf": "zoo", "html": True}
    ).json()
    assert answer["html"] == expected
    assert f"precision {answer['score']['precision']:.3f}" in expected
    assert {answer[name] for name in [*answer][5:]} == {None}


def test_an_empty_context_changes_no_match(client):
    answer = client.post("/v1/match", json={**PAIR, "context": ""})
    assert answer.json()["similarity"] == client.post("/v1/match", json=PAIR).json()["similarity"]


def test_of_several_references_the_best_one_is_shown(client):
    pair = {"candidate": "the cat sat", "references": ["a dog", "the cat sat on it", "it"]}
    answer = client.post("/v1/match", json=pair).json()
    [score] = client.post("/v1/score", json={"pairs": [pair]}).json()["scores"]
    assert answer["score"] == score
    assert score["best_reference"] == 1
    assert answer["reference"] == ["[CLS]", "the", "cat", "sat", "on", "it", "[SEP]"]


def test_an_idf_table_weighs_the_tokens(client):
    answer = client.post("/v1/match", json={**PAIR, "idf": "zoo"}).json()
    [score] = client.post("/v1/score", json={"pairs": [PAIR], "idf": "zoo"}).json()["scores"]
    assert answer["score"] == score
    assert len({*answer["candidate_weights"]}) > 2
    best = np.max(answer["similarity"], axis=1)
    assert np.average(best, weights=answer["candidate_weights"]) == pytest.approx(
        score["precision"], abs=2e-4
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"candidate": "a"}, "invalid"),
        ({**PAIR, "idf": "none"}, "unknown_idf"),
        ({**PAIR, "references": ["a"]}, "invalid"),
        ({"candidate": "a", "references": []}, "invalid"),
        ({"candidate": "a", "references": ["a"] * 10_001}, "too_many_pairs"),
        ({"candidate": "a", "references": ["cat " * 100] * 1000}, "too_long"),
    ],
)
def test_references_that_cannot_be_shown_are_refused(client, body, code):
    assert refusal(client.post("/v1/match", json=body)) == (422, code)


def test_docs_is_a_page_of_every_endpoint_and_field(client):
    response = client.get("/docs")
    document = client.get("/openapi.json").json()
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"https?://|<script|\bNone\b|&#x27;type", response.text)
    for path, methods in document["paths"].items():
        assert all(f"<code>{method.upper()} {path}</code>" in response.text for method in methods)
    fields = {
        field
        for schema in document["components"]["schemas"].values()
        for field in schema.get("properties", {})
    }
    shown = {*re.findall(r"<th><code>(\w+)", response.text)}
    assert fields <= shown
    anchors = {*re.findall("<section id='(\\w+)'", response.text)}
    assert {*re.findall("href='#(\\w+)'", response.text)} <= anchors
