"""Requests as bytes, for clients that behave as no HTTP library does."""

import socket
from contextlib import contextmanager


@contextmanager
def connected(client, sent=b"", receive_buffer=None):
    """Open a connection to the server of a client, and send bytes as they are."""
    with socket.socket() as connection:
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(60)
        connection.connect((client.base_url.host, client.base_url.port))
        connection.sendall(sent)
        yield connection


def head(
    kind="application/json", *more, length=1000, version="1.1", host="localhost", path="/v1/score"
):
    """Return the head of a request that announces a body."""
    lines = [f"POST {path} HTTP/{version}", f"Host: {host}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {length}"] if length is not None else []
    return "\r\n".join([*lines, *more, "", ""]).encode()


def received(connection, until=None):
    """Return all bytes until the connection ends, or until these have arrived."""
    answer = b""
    try:
        while chunk := connection.recv(65536):
            answer += chunk
            if until and until in answer:
                break
    except ConnectionResetError:
        pass
    return answer


def answer_of(client, sent, until=None):
    with connected(client, sent) as connection:
        return received(connection, until)
