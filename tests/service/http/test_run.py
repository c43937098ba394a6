import logging
import socket
from contextlib import ExitStack

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.http.run import listen
from tests.support.http_server import serving, wait_until
from tests.support.raw_http import answer_of, connected, head, received

BODY = b'{"pairs": [{"candidate": "a", "reference": "b"}]}'


@pytest.fixture
def quick_client(models):
    """A client of a server that looks at its connections every 0.2 seconds."""
    with serving(models, idle_seconds=0.2) as client:
        yield client


@pytest.mark.parametrize("sent", [b"", b"POST /v1/score HTTP/1.1\r\nHost:"])
def test_a_connection_without_a_whole_request_head_is_closed(quick_client, sent):
    assert answer_of(quick_client, sent) == b""


def test_a_connection_that_waits_for_its_answer_is_not_closed(quick_client, fake_batcher):
    batcher = fake_batcher()
    with connected(quick_client, head(length=len(BODY)) + BODY) as one:
        wait_until(lambda: batcher.calls)
        one.settimeout(0.6)
        with pytest.raises(TimeoutError):
            one.recv(100)
        batcher.released.set()
        one.settimeout(10)
        assert one.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("number", [1, 3])
def test_a_client_that_has_finished_sending_gets_its_answers(client, fake_batcher, number):
    batcher = fake_batcher()
    with connected(client, (head(length=len(BODY)) + BODY) * number) as one:
        one.shutdown(socket.SHUT_WR)
        wait_until(lambda: batcher.calls)
        batcher.released.set()
        assert received(one).count(b"HTTP/1.1 200 ") == number  # and the connection ends


@pytest.mark.parametrize("sent", [BODY[:-1], BODY + b"GET /"])
def test_a_client_that_ends_within_a_request_is_let_go(client, sent):
    with connected(client, head(length=len(BODY)) + sent) as one:
        one.shutdown(socket.SHUT_WR)
        assert received(one).count(b"HTTP/1.1 200 ") == (len(sent) > len(BODY))


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_name_is_looked_up_and_a_taken_address_is_refused(name):
    with listen(name, 0) as listener:
        address, port = listener.getsockname()[:2]
        assert address in ("127.0.0.1", "::1")
        # asyncio checks it before it turns Nagle's algorithm off
        assert listener.proto == socket.IPPROTO_TCP
        with pytest.raises(InputError, match="--host and --port"):
            listen(address, port)


def test_a_body_in_tiny_chunks_is_read(client):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY.ljust(20_000)) + b"0\r\n\r\n"
    sent = (
        head("application/json", "Transfer-Encoding: chunked", "Connection: close", length=None)
        + chunks
    )
    assert answer_of(client, sent).startswith(b"HTTP/1.1 200 ")


def test_an_upload_that_was_refused_is_ended(client, monkeypatch):
    monkeypatch.setattr("bertscore_onnx_service.http.run.LINGER_SECONDS", 0.1)
    with connected(client, head("text/plain", length=10**6)) as one:
        one.settimeout(8)  # less than an idle connection may last
        assert received(one).startswith(b"HTTP/1.1 415 ")


def test_idle_connections_are_closed_for_new_ones(models):
    with serving(models, max_files=100) as client, ExitStack() as opened:
        idle = [opened.enter_context(connected(client)) for _ in range(60)]
        answer = answer_of(
            client, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert received(idle[0]) == b""


def test_malformed_http_is_logged_and_counted(models, caplog):
    caplog.set_level(logging.INFO)
    with serving(models) as client:
        assert answer_of(client, b"\x16\x03\x01\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert (
            'bertscore_failures_total{endpoint="other",reason="malformed_http"} 1.0'
            in client.get("/metrics").text
        )
    assert any("reason=malformed_http" in record.getMessage() for record in caplog.records)


def test_a_body_that_turns_into_nonsense_ends_its_request(models, caplog):
    caplog.set_level(logging.INFO)
    chunks = b"1\r\n{\r\nnonsense\r\n"
    with serving(models) as client:
        answer = answer_of(
            client, head("application/json", "Transfer-Encoding: chunked", length=None) + chunks
        )
        assert answer.startswith(b"HTTP/1.1 400 ")
        wait_until(lambda: not client.app.state.admission.active)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
