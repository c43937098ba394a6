"""What one client may not do to the others: each test is a way that once stopped or blocked the server."""

import json
import logging
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

from bertscore_onnx.server import admission, stream
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models
from tests.support.http_server import CPU, FakeBatcher, error_of, serving, wait_until

BODY = {"pairs": [{"candidate": "a cat", "reference": "the cat"}]}
LINE = b'{"candidate": "the cat sat", "reference": "the dog sat"}\n'
NDJSON = {"Content-Type": "application/x-ndjson"}


@contextmanager
def connected(client, sent=b"", receive_buffer=None):
    """Open a connection and send bytes as they are."""
    with socket.socket() as connection:
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(20)
        connection.connect((client.base_url.host, client.base_url.port))
        connection.sendall(sent)
        yield connection


def head(kind="application/json", *more, length=1000, version="1.1", host="localhost"):
    lines = [f"POST /v1/score HTTP/{version}", f"Host: {host}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {length}"] if length is not None else []
    return "\r\n".join([*lines, *more, "", ""]).encode()


def received(connection):
    """Return all that comes until the connection ends."""
    answer = b""
    try:
        while chunk := connection.recv(65536):
            answer += chunk
    except ConnectionResetError:
        pass
    return answer


@pytest.fixture
def little_patience(monkeypatch):
    monkeypatch.setattr(admission, "PATIENCE", 0.2)


@pytest.mark.parametrize("sent", [head() + b'{"pairs":', head("application/x-ndjson") + LINE])
def test_a_slot_that_waits_for_its_client_is_taken_back(models, little_patience, sent):
    with serving(models, Limits(max_requests=1)) as client, connected(client, sent) as slow:
        wait_until(lambda: client.app.state.admission.active)
        wait_until(lambda: client.post("/v1/score", json=BODY).status_code == 200, 10)
        assert b"read_timeout" in received(slow)


def test_a_request_that_is_scored_keeps_its_slot(models, little_patience, fake_batcher):
    batcher = fake_batcher()
    with serving(models, Limits(max_requests=1)) as client:
        first = threading.Thread(target=client.post, args=("/v1/score",), kwargs={"json": BODY})
        first.start()
        wait_until(lambda: batcher.calls)
        assert not batcher.cancelled.wait(0.5)
        assert client.post("/v1/score", json=BODY).status_code == 429
        batcher.released.set()
        first.join()


def test_who_does_not_read_loses_the_slot(models):
    body = json.dumps({"pairs": [{"candidate": "a", "reference": "b"}] * 1000}).encode()
    request = head(length=len(body)) + body
    with serving(models, Limits(max_requests=1, read_timeout=0.5)) as client, ExitStack() as opened:
        unread = opened.enter_context(connected(client, receive_buffer=4096))
        unread.settimeout(0.2)
        with suppress(OSError):  # a timeout or a reset
            for _ in range(500):
                unread.sendall(request)
        wait_until(lambda: client.post("/v1/score", json=BODY).status_code == 200, 10)


def test_the_bytes_of_all_bodies_have_a_bound(models):
    limits = Limits(max_body=1000, max_bytes=1500)
    with serving(models, limits) as client, connected(client, head(length=1000) + b" ") as first:
        wait_until(lambda: client.app.state.admission.num_bytes == 1000)
        refused = client.post("/v1/score", content=b" " * 600, headers={"Content-Type": "application/json"})
        assert (refused.status_code, error_of(refused)["code"]) == (429, "too_busy")
        streamed = client.post("/v1/score", content=LINE * 20, headers=NDJSON)
        assert (streamed.status_code, error_of(streamed)["code"]) == (429, "too_busy")
        assert client.post("/v1/score", json=BODY).status_code == 200
        first.close()
        wait_until(lambda: client.app.state.admission.num_bytes == 0)
        assert client.post("/v1/score", content=LINE * 20, headers=NDJSON).status_code == 200
        assert client.app.state.admission.num_bytes == 0


def test_a_stream_of_wrong_lines_ends(client):
    response = client.post("/v1/score", content=LINE + b"{\n" * 100_000, headers=NDJSON)
    *answers, end = [json.loads(line) for line in response.text.splitlines()]
    assert "f1" in answers[0]
    assert len(answers) == 1 + stream.MAX_WRONG_LINES + 1
    assert (end["error"]["code"], "line" in end["error"]) == ("too_many_errors", False)


def test_a_stream_whose_client_goes_away_is_cancelled_while_it_is_scored(models, fake_batcher):
    batcher = fake_batcher()
    with serving(models) as client:
        with connected(client, head("application/x-ndjson", length=10_000) + LINE):
            wait_until(lambda: batcher.calls)
        assert batcher.cancelled.wait(10)
        wait_until(lambda: not client.app.state.admission.active)


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


def test_a_body_in_tiny_chunks_is_read(client):
    body = json.dumps(BODY).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body.ljust(20_000)) + b"0\r\n\r\n"
    sent = head("application/json", "Transfer-Encoding: chunked", "Connection: close", length=None) + chunks
    with connected(client, sent) as one:
        assert received(one).startswith(b"HTTP/1.1 200 ")


def test_an_upload_that_was_refused_is_ended(client):
    with connected(client, head("text/plain", length=10**6)) as one:
        one.settimeout(8)  # less than an idle connection may last
        assert received(one).startswith(b"HTTP/1.1 415 ")


def test_idle_connections_give_way(models):
    with serving(models, max_files=100) as client, ExitStack() as opened:
        idle = [opened.enter_context(connected(client)) for _ in range(60)]
        with connected(client, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") as one:
            assert received(one).startswith(b"HTTP/1.1 200 ")
        assert received(idle[0]) == b""


@pytest.mark.parametrize(
    "sent",
    [
        head("application/json", "Transfer-Encoding: chunked", length=5),
        head("application/json", "Transfer-Encoding: chunked", length=None, version="1.0"),
    ],
)
def test_a_body_of_two_lengths_is_refused(client, sent):
    with connected(client, sent + b"0\r\n\r\n") as one:
        answer = received(one)
    assert b" 400 " in answer
    assert b"ambiguous_body" in answer


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "[::1].evil"])
def test_a_name_that_anybody_may_own_is_refused(models, host):
    with serving(models) as client:
        refused = client.post("/v1/score", json=BODY, headers={"Host": host})
        assert (refused.status_code, error_of(refused)["code"]) == (421, "misdirected")
        assert client.get("/health/live", headers={"Host": host}).status_code == 421
    with serving(models, any_host=True) as client:
        assert client.post("/v1/score", json=BODY, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80", "scorer", "a.localhost:8080"])
def test_a_name_of_this_machine_is_accepted(client, host):
    assert client.post("/v1/score", json=BODY, headers={"Host": host}).status_code == 200


def test_what_is_no_http_is_logged_and_counted(models, caplog):
    caplog.set_level(logging.INFO)
    with serving(models) as client:
        with connected(client, b"\x16\x03\x01\r\n\r\n") as one:
            assert received(one).startswith(b"HTTP/1.1 400 ")
        assert 'bertscore_failures_total{endpoint="other",reason="malformed_http"} 1.0' in client.get("/metrics").text
    assert any("reason=malformed_http" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_body_that_turns_into_nonsense_ends_its_request(models, caplog, kind):
    caplog.set_level(logging.INFO)
    chunk = b"%x\r\n%b\r\n" % (len(LINE), LINE)
    with serving(models) as client:
        with connected(client, head(kind, "Transfer-Encoding: chunked", length=None) + chunk + b"nonsense\r\n") as one:
            assert received(one).startswith(b"HTTP/1.1 400 ")
        wait_until(lambda: not client.app.state.admission.active)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_no_more_than_a_queue_is_tokenised_at_a_time(rescaled_bundle, monkeypatch):
    limits = Limits(max_queue=1)
    with Models.load([str(rescaled_bundle)], {}, limits, CPU) as models, serving(models, limits) as client:
        batcher = models.select().batcher
        entered, gate = threading.Event(), threading.Event()
        tokenise = batcher.tokenise

        def slowly(pairs, **options):
            entered.set()
            assert gate.wait(20)
            return tokenise(pairs, **options)

        monkeypatch.setattr(batcher, "tokenise", slowly)
        statuses = []
        body = {"pairs": BODY["pairs"] * 200}  # more than is tokenised in the event loop
        first = threading.Thread(target=lambda: statuses.append(client.post("/v1/score", json=body).status_code))
        first.start()
        assert entered.wait(20)
        assert client.post("/v1/score", json=BODY).status_code == 429
        gate.set()
        first.join()
        assert statuses == [200]


def test_the_clients_of_two_keys_are_told_apart(models, fake_batcher):
    from bertscore_onnx.server.middleware import ApiKeys

    keys = ["one-long-key-of-a-client", "another-long-key-of-one"]
    batcher: FakeBatcher = fake_batcher()
    batcher.released.set()
    with serving(models, keys=ApiKeys(keys)) as client:
        for key in (*keys, keys[0]):
            answer = client.post("/v1/score", json=BODY, headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 200
    assert len({*batcher.clients}) == 2
    assert batcher.clients[0] == batcher.clients[2]
