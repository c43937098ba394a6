"""Every answer that is not a success."""

import logging
import threading

import pytest

from bertscore_onnx.errors import DeadlineError, DrainingError, EncodingError, QueueFullError, WorkerError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.middleware import ApiKeys
from tests.support.http_server import FakeBatcher, access_lines, error_of, serving, wait_until
from tests.support.raw_http import connected, head, received

BODY = {"pairs": [{"candidate": "a cat", "reference": "the cat"}]}
KEY = "correct-horse-battery"


UNREAD = head("application/json", "Connection: close")
"""A request whose body is not sent before it is answered."""


def answer_of(client, sent, until=None):
    with connected(client, sent) as connection:
        return received(connection, until)


@pytest.mark.parametrize("path", ["/v2/score", "/v1", "/page/index.html", "/%2e%2e/etc/passwd"])
def test_404(client, path):
    response = client.get(path)
    assert response.status_code == 404
    assert error_of(response) == {"code": "not_found", "message": "Not Found."}


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/score"), ("POST", "/metrics"), ("PUT", "/v1/match")])
def test_405_names_the_methods_allowed(client, method, path):
    response = client.request(method, path)
    assert response.status_code == 405
    assert response.headers["Allow"]
    assert error_of(response)["code"] == "method_not_allowed"


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json; charset=latin-1", "multipart/form-data"])
@pytest.mark.parametrize("path", ["/v1/score", "/v1/match"])
def test_415_other_types(client, path, kind):
    response = client.post(path, content=b"{}", headers={"Content-Type": kind})
    assert (response.status_code, error_of(response)["code"]) == (415, "unsupported_media_type")


def test_415_compressed(client):
    response = client.post("/v1/score", json=BODY, headers={"Content-Encoding": "gzip"})
    assert (response.status_code, error_of(response)["code"]) == (415, "unsupported_media_type")


@pytest.fixture(scope="module")
def locked(models):
    with serving(models, keys=ApiKeys(["another-long-key-1234", KEY])) as client:
        yield client


@pytest.mark.parametrize("header", [None, "Bearer wrong"])
def test_401(locked, header):
    headers = {} if header is None else {"Authorization": header}
    response = locked.post("/v1/score", json=BODY, headers=headers)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert error_of(response)["code"] == "unauthorized"


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/v1/score", "/nothing"])
def test_what_needs_a_key(locked, path):
    assert locked.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/", "/openapi.json", "/health/live", "/health/ready"])
def test_what_needs_none(locked, path):
    assert locked.get(path).status_code == 200


def test_the_right_key_opens(locked):
    assert locked.post("/v1/score", json=BODY, headers={"Authorization": f"bearer {KEY}"}).status_code == 200


def test_keys_are_not_logged(locked, caplog):
    with caplog.at_level(logging.DEBUG):
        keys = [KEY, "a-wrong-key"]
        answers = [locked.post("/v1/score", json=BODY, headers={"Authorization": f"Bearer {key}"}) for key in keys]
        assert [line["status"] for line in access_lines(caplog, *answers)] == [200, 401]
    assert KEY not in caplog.text
    assert "a-wrong-key" not in caplog.text


@pytest.fixture(scope="module")
def strict(models):
    with serving(models, Limits(max_body=1000, read_timeout=0.3)) as client:
        yield client


def test_413_by_the_length_that_is_declared(strict):
    answer = answer_of(strict, head(length=1001) + b"x" * 1001 + b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_413_by_what_comes(strict):
    response = strict.post(
        "/v1/score", content=(b" " * 100 for _ in range(30)), headers={"Content-Type": "application/json"}
    )
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")


def test_a_body_as_large_as_allowed_is_read(strict):
    body = b'{"pairs": []}'.ljust(1000)
    response = strict.post("/v1/score", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["/v1/score", "/v1/match"])
def test_408_a_body_that_does_not_come(strict, path):
    answer = answer_of(strict, head(path=path) + b'{"pairs":')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"read_timeout"' in answer


def test_408_in_a_stream_ends_it(strict):
    sent = head("application/x-ndjson") + b'{"candidate": "a cat", "reference": "the cat"}\n{"cand'
    answer = answer_of(strict, sent, until=b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"best_reference":0}\n' in answer
    assert b'"read_timeout"' in answer
    assert b'"done"' not in answer


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
def test_what_the_batcher_raises_is_answered(models, fake_batcher, path, error, status, code):
    fake_batcher(error)
    with serving(models, Limits(deadline=1)) as client:  # less than it takes until there is room
        response = client.post(path, json=BODY if path == "/v1/score" else BODY["pairs"][0])
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert response.headers.get("Retry-After") == {429: "3", 503: "1", 504: None}[status]


def test_the_deadline_is_told_of_the_request_and_not_of_a_piece(client, fake_batcher):
    fake_batcher(DeadlineError("There was no score within 0.25 s. The request has 3 candidates."))
    told = error_of(client.post("/v1/score", json=BODY))["message"]
    assert told == "There were no scores in time. Send fewer or shorter texts, or try again."


@pytest.mark.parametrize("error", [RuntimeError("secret detail"), EncodingError("secret detail")])
def test_500_tells_an_id_and_the_log_the_rest(client, fake_batcher, caplog, error):
    fake_batcher(error)
    response = client.post("/v1/score", json=BODY)
    assert response.status_code == 500
    assert "secret" not in response.text
    assert error_of(response)["id"] == response.headers["X-Request-Id"]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert error_of(response)["id"] in record.getMessage()
    assert record.exc_info[1] is error


def test_429_before_the_body_is_read_where_too_many_are_in_progress(models, fake_batcher):
    batcher = fake_batcher()
    with serving(models, Limits(max_requests=1)) as client:
        first = threading.Thread(target=client.post, args=("/v1/score",), kwargs={"json": BODY})
        first.start()
        wait_until(lambda: batcher.calls)
        answer = answer_of(client, UNREAD)
        assert client.get("/health/live").status_code == 200
        batcher.released.set()
        first.join()
        assert client.post("/v1/score", json=BODY).status_code == 200
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 1\r\n" in answer.lower()


def test_429_before_the_body_is_read_where_no_batcher_has_room(models, monkeypatch):
    error = QueueFullError("Full.", retry_after=2.2)
    first, second = (FakeBatcher(model.batcher, error) for model in models)
    for model, fake in zip(models, (first, second), strict=True):
        monkeypatch.setattr(model, "batcher", fake)
    with serving(models) as client:
        first.is_full = True
        assert client.post("/v1/score", json=BODY).status_code == 429
        second.is_full = True
        answer = answer_of(client, UNREAD)
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 3\r\n" in answer.lower()
    assert (first.calls, second.calls) == (0, 0)


def test_a_client_that_goes_away_cancels_its_request(models, fake_batcher, caplog):
    caplog.set_level(logging.INFO)
    batcher = fake_batcher()
    with serving(models) as client:
        body = b'{"pairs": [{"candidate": "a", "reference": "b"}]}'
        with connected(client, head(length=len(body)) + body):
            wait_until(lambda: batcher.calls)
        assert batcher.cancelled.wait(10)
    assert [record.fields["reason"] for record in caplog.records if "status=499" in record.getMessage()] == [
        "client_gone"
    ]


def test_a_worker_that_is_not_ready_is_told(client, fake_batcher):
    fake_batcher().ready = False
    response = client.get("/health/ready")
    assert response.status_code == 503
    assert response.json() == {"status": "not ready", "reasons": ["No worker is ready for tiny-bert."]}
    assert client.get("/health/live").status_code == 200


def test_a_draining_server_refuses_to_score(models):
    with serving(models) as client:
        client.app.state.admission.is_draining = True
        response = client.post("/v1/score", json=BODY)
        assert (response.status_code, error_of(response)["code"]) == (503, "draining")
        assert client.get("/health/ready").json() == {"status": "not ready", "reasons": ["The server is stopping."]}
        assert client.get("/health/live").status_code == 200
