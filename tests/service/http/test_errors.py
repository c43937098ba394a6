import logging
import socket
import struct

import pytest

from bertscore_onnx.errors import (
    DeadlineError,
    DrainingError,
    EncodingError,
    QueueFullError,
    WorkerError,
)
from bertscore_onnx_service.http.app import ApiKeys
from bertscore_onnx_service.http.limits import Limits
from tests.support.http_server import (
    BODY,
    JSON,
    FakeBatcher,
    access_lines,
    error_of,
    refusal,
    serving,
    wait_until,
)
from tests.support.raw_http import answer_of, connected, head

KEY = "correct-horse-battery"


@pytest.mark.parametrize("path", ["/v2/score", "/v1", "/page/index.html", "/%2e%2e/etc/passwd"])
def test_404_names_the_paths(client, path):
    response = client.get(path)
    assert refusal(response) == (404, "not_found")
    assert all(
        f" {path}" in error_of(response)["message"]
        for path in client.get("/openapi.json").json()["paths"]
    )


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/score"), ("POST", "/metrics"), ("PUT", "/v1/match")]
)
def test_405_names_the_methods_allowed(client, method, path):
    response = client.request(method, path)
    assert refusal(response) == (405, "method_not_allowed")
    allowed = "GET, HEAD" if path == "/metrics" else "POST"
    assert (
        error_of(response)["message"]
        == f"The path {path} does not take {method}; it takes {allowed}."
    )
    assert {*response.headers["Allow"].split(", ")} == {*allowed.split(", ")}


KINDS = ("", "text/plain", "application/json; charset=latin-1", "multipart/form-data")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        *((path, {"Content-Type": kind}) for path in ("/v1/score", "/v1/match") for kind in KINDS),
        ("/v1/score", {**JSON, "Content-Encoding": "gzip"}),
        ("/v1/score", {"Content-Type": "application/x-ndjson"}),
    ],
)
def test_415_other_types_and_compressed_bodies(client, path, headers):
    assert refusal(client.post(path, content=b"{}", headers=headers)) == (
        415,
        "unsupported_media_type",
    )


@pytest.fixture(scope="module")
def locked(models):
    with serving(models, keys=ApiKeys(["another-long-key-1234", KEY])) as client:
        yield client


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", f"Basic {KEY}", KEY, f"Bearer {KEY[:-1]}", "Bearer wrong"]
)
def test_401(locked, header):
    headers = {} if header is None else {"Authorization": header}
    response = locked.post("/v1/score", json=BODY, headers=headers)
    assert refusal(response) == (401, "unauthorized")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("status", "paths"),
    [
        (401, ["/v1/models", "/metrics", "/v1/score", "/nothing"]),
        (200, ["/", "/openapi.json", "/health/live", "/health/ready"]),
    ],
)
def test_which_paths_need_a_key(locked, status, paths):
    assert [locked.get(path).status_code for path in paths] == [status] * 4


def test_the_right_key_is_accepted_and_no_key_is_logged(locked, caplog):
    with caplog.at_level(logging.DEBUG):
        keys = [KEY, "a-wrong-key"]
        answers = [
            locked.post("/v1/score", json=BODY, headers={"Authorization": f"bearer {key}"})
            for key in keys
        ]
        assert [line["status"] for line in access_lines(caplog, *answers)] == [200, 401]
    assert KEY not in caplog.text
    assert "a-wrong-key" not in caplog.text


@pytest.fixture(scope="module")
def strict(models):
    with serving(models, Limits(max_body=1000)) as client:
        yield client


def test_413_by_the_declared_length(strict):
    answer = answer_of(
        strict,
        head(length=1001) + b"x" * 1001 + b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_413_by_the_bytes_received(strict):
    response = strict.post("/v1/score", content=(b" " * 100 for _ in range(30)), headers=JSON)
    assert refusal(response) == (413, "too_large")
    assert (
        strict.post("/v1/score", content=b'{"pairs": []}'.ljust(1000), headers=JSON).status_code
        == 200
    )


@pytest.mark.parametrize("path", ["/v1/score", "/v1/match"])
def test_408_a_body_that_does_not_come(models, path):
    with serving(models, Limits(read_timeout=0.3)) as client:
        answer = answer_of(client, head(path=path) + b'{"pairs":')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"read_timeout"' in answer


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (QueueFullError("Full.", retry_after=2.2), 429, "too_busy"),
        (DrainingError("Draining."), 503, "draining"),
        (WorkerError("Broke."), 503, "worker_failed"),
        (DeadlineError("Late."), 504, "deadline"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/score", "/v1/match"])
def test_errors_of_the_batcher_are_answered(models, fake_batcher, path, error, status, code):
    fake_batcher(error)
    with serving(models, Limits(deadline=1)) as client:  # less than it takes until there is room
        response = client.post(path, json=BODY if path == "/v1/score" else BODY["pairs"][0])
    assert refusal(response) == (status, code)
    assert response.headers.get("Retry-After") == {429: "3", 503: "1", 504: None}[status]


def test_a_deadline_is_reported_for_the_request_as_a_whole(client, fake_batcher):
    fake_batcher(DeadlineError("There was no score within 0.25 s. The request has 3 candidates."))
    message = error_of(client.post("/v1/score", json=BODY))["message"]
    assert "candidates" not in message
    assert "fewer" in message


@pytest.mark.parametrize("error", [RuntimeError("secret detail"), EncodingError("secret detail")])
def test_500_has_an_id_and_the_log_the_rest(client, fake_batcher, caplog, error):
    fake_batcher(error)
    response = client.post("/v1/score", json=BODY)
    assert response.status_code == 500
    assert "secret" not in response.text
    assert error_of(response)["id"] == response.headers["X-Request-Id"]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert error_of(response)["id"] in record.getMessage()
    assert record.exc_info[1] is error


def test_429_before_the_body_is_read_where_no_batcher_has_room(models, monkeypatch):
    error = QueueFullError("Full.", retry_after=2.2)
    first, second = (FakeBatcher(model.batcher, error) for model in models)
    for model, fake in zip(models, (first, second), strict=True):
        monkeypatch.setattr(model, "batcher", fake)
    with serving(models) as client:
        first.is_full = True
        assert client.post("/v1/score", json=BODY).status_code == 429
        second.is_full = True
        # its body is not sent
        answer = answer_of(client, head("application/json", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 3\r\n" in answer.lower()
    assert (first.calls, second.calls) == (0, 0)


def test_a_client_that_goes_away_cancels_its_request(models, fake_batcher, caplog):
    caplog.set_level(logging.INFO)
    batcher = fake_batcher()
    body = b'{"pairs": [{"candidate": "a", "reference": "b"}]}'
    with serving(models) as client:
        with connected(client, head(length=len(body)) + body) as connection:
            wait_until(lambda: batcher.calls)
            # to reset it
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert batcher.cancelled.wait(60)
    [record] = [record for record in caplog.records if "status=499" in record.getMessage()]
    assert record.fields["reason"] == "client_gone"


def test_a_worker_that_is_not_ready_is_reported(client, fake_batcher):
    fake_batcher().ready = False
    response = client.get("/health/ready")
    assert response.status_code == 503
    assert response.json() == {
        "status": "not ready",
        "reasons": ["No worker is ready for tiny-bert."],
    }
    assert client.get("/health/live").status_code == 200


def test_a_worker_that_hangs_is_reported_for_a_restart(client, fake_batcher):
    fake_batcher().live = False
    response = client.get("/health/live")
    assert response.status_code == 503
    assert response.json() == {
        "status": "not live",
        "reasons": ["The worker of tiny-bert hangs or fails."],
    }


def test_a_draining_server_refuses_to_score_and_stays_live(models, fake_batcher):
    fake_batcher().live = False
    with serving(models) as client:
        client.app.state.admission.is_draining = True
        assert refusal(client.post("/v1/score", json=BODY)) == (503, "draining")
        assert client.get("/health/ready").json() == {
            "status": "not ready",
            "reasons": ["The server is stopping."],
        }
        live = client.get("/health/live")
        assert (live.status_code, live.headers["Connection"]) == (200, "close")
