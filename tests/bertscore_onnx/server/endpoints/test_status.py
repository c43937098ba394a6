"""What the server tells of itself."""

import json
import logging
import re
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bertscore_onnx.server.request_log import JsonLines
from tests.support.http_server import access_lines, serving

BODY = {"pairs": [{"candidate": "a cat", "reference": "the cat"}, {"candidate": "a", "reference": "b"}]}


def samples(client):
    """Return the metrics by name and labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_metrics_count_requests_failures_and_time(models):
    runs = "bertscore_batcher_run_seconds_count", "", "tiny-bert"
    with serving(models) as client:
        before = samples(client)[runs]
        client.post("/v1/score", json=BODY)
        client.post("/v1/score", content=b"{", headers={"Content-Type": "application/json"})
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


@pytest.mark.parametrize("idf", ["", "zoo"])
def test_metrics_tell_of_every_batcher(client, idf):
    found = samples(client)
    labels = sorted([idf, "tiny-bert"])
    for name in ("queue_depth", "padding_ratio", "batcher_restarts_total", "batcher_batch_tokens_total"):
        assert (f"bertscore_{name}", *labels) in found
    assert found["bertscore_ready", *labels] == 1
    for name in ("wait", "run"):
        count = found[f"bertscore_batcher_{name}_seconds_count", *labels]
        assert count == found[f"bertscore_batcher_{name}_seconds_bucket", *sorted([*labels, "+Inf"])]
        assert count >= found[f"bertscore_batcher_{name}_seconds_bucket", *sorted([*labels, "0.001"])]
        assert (f"bertscore_batcher_{name}_seconds_sum", *labels) in found
    [info] = [sample for sample in found if sample[0] == "bertscore_model_info" and idf in sample]
    assert "CPUExecutionProvider" in info


@pytest.mark.skipif(sys.platform != "linux", reason="the client library reads /proc")
def test_metrics_tell_the_memory(client):
    assert samples(client)["process_resident_memory_bytes",] > 1e7


def test_one_access_line_a_request(models, caplog):
    caplog.set_level(logging.INFO, "bertscore_onnx")
    with serving(models) as client:
        answer = client.post("/v1/score", json=BODY)
        missed = client.get("/a%0Ab?key=secret")
        scored, lost = access_lines(caplog, answer, missed)
    assert scored.pop("seconds") >= 0
    assert scored == {
        "request": answer.headers["X-Request-Id"],
        "client": "127.0.0.1",
        "method": "POST",
        "path": "/v1/score",
        "status": 200,
        "model": "tiny-bert",
        "pairs": 2,
    }
    assert (lost["path"], lost["status"], lost["reason"]) == ("/a%0Ab", 404, "not_found")
    assert " path=/a%0Ab status=404 " in caplog.text
    assert "secret" not in caplog.text


def test_log_lines_as_json():
    record = logging.LogRecord("x.y", logging.WARNING, "", 0, "A line\nand %d more", (1,), None)
    line = json.loads(JsonLines().format(record))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
    assert line == {"level": "warning", "logger": "x.y", "message": "A line\nand 1 more"}
    record.fields = {"status": 200}
    assert json.loads(JsonLines().format(record))["status"] == 200
