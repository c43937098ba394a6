"""The metrics count requests, failures and time, and the work of the batchers."""

import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.http_server import BODY, JSON, serving


def samples(client):
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_count_requests_failures_and_time(models):
    runs = "bertscore_batcher_run_seconds_count", "", "tiny-bert"
    with serving(models) as client:
        before = samples(client)[runs]
        client.post("/v1/score", json={"pairs": BODY["pairs"] * 2})
        client.post("/v1/score", content=b"{", headers=JSON)
        client.get("/nothing")
        found = samples(client)
    assert found["bertscore_requests_total", "/v1/score", "200"] == 1
    assert found["bertscore_requests_total", "/v1/score", "400"] == 1
    assert found["bertscore_requests_total", "404", "other"] == 1
    assert found["bertscore_failures_total", "/v1/score", "malformed_json"] == 1
    assert found["bertscore_candidates_total", "tiny-bert"] == 2
    for stage, count in [("read", 2), ("score", 2), ("total", 2)]:
        assert found["bertscore_stage_seconds_count", "/v1/score", stage] == count
    assert found["bertscore_active_requests",] == 0
    assert found[runs] == before + 1


def test_metrics_count_truncated_texts(models):
    counter = "bertscore_batcher_truncated_total", "", "tiny-bert"
    long = "the cat sat on the mat " * 20
    with serving(models) as client:
        before = samples(client)[counter]
        client.post(
            "/v1/score",
            json={"pairs": [{"candidate": long, "references": [long, f"a {long}", "a cat"]}] * 3},
        )
        client.post("/v1/score", json=BODY)
        client.post("/v1/match", json={"candidate": long, "reference": "a cat"})
        assert samples(client)[counter] == before + 10


@pytest.mark.parametrize("idf", ["", "zoo"])
def test_metrics_of_every_batcher(client, idf):
    found = samples(client)
    labels = sorted([idf, "tiny-bert"])
    for name in ("queue_depth", "padding_ratio", "batcher_batch_tokens_total"):
        assert (f"bertscore_{name}", *labels) in found
    assert found["bertscore_ready", *labels] == 1
    for name in ("wait", "run"):
        count = found[f"bertscore_batcher_{name}_seconds_count", *labels]
        assert (
            count == found[f"bertscore_batcher_{name}_seconds_bucket", *sorted([*labels, "+Inf"])]
        )
        assert (
            count >= found[f"bertscore_batcher_{name}_seconds_bucket", *sorted([*labels, "0.001"])]
        )
        assert (f"bertscore_batcher_{name}_seconds_sum", *labels) in found
    [info] = [sample for sample in found if sample[0] == "bertscore_model_info" and idf in sample]
    assert "CPUExecutionProvider" in info


@pytest.mark.skipif(sys.platform != "linux", reason="the client library reads /proc")
def test_metrics_include_the_memory(client):
    assert samples(client)["process_resident_memory_bytes",] > 1e7
