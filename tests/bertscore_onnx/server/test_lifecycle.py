import socket
from contextlib import suppress

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.server.run import listen
from tests.support.http_server import serving, wait_until

BODY = b'{"pairs": [{"candidate": "a", "reference": "b"}]}'
REQUEST = b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)


@pytest.fixture
def quick_client(models):
    """A client of a server that looks at its connections every 0.2 seconds."""
    with serving(models, idle_seconds=0.2) as client:
        yield client


def connect(client):
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


@pytest.mark.parametrize("head", [b"", b"POST /v1/score HTTP/1.1\r\nHost:"])
def test_a_connection_without_a_whole_request_head_is_closed(quick_client, head):
    with connect(quick_client) as one:
        one.sendall(head)
        with suppress(ConnectionResetError):  # that, too, is closed
            assert one.recv(100) == b""


def test_a_connection_that_waits_for_its_answer_is_not_closed(quick_client, fake_batcher):
    batcher = fake_batcher()
    with connect(quick_client) as one:
        one.sendall(REQUEST)
        wait_until(lambda: batcher.calls)
        one.settimeout(1)
        with pytest.raises(TimeoutError):
            one.recv(100)
        batcher.released.set()
        one.settimeout(10)
        assert one.recv(100).startswith(b"HTTP/1.1 200 ")


def test_accepted_connections_name_their_protocol():
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # asyncio looks at it before it turns Nagle's algorithm off


def test_an_address_that_is_taken_is_refused():
    with listen("127.0.0.1", 0) as taken, pytest.raises(InputError, match="Choose others with --host and --port"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_a_name_is_looked_up():
    with listen("localhost", 0) as listener:
        assert listener.getsockname()[0] in ("127.0.0.1", "::1")
