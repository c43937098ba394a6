import json
import socket
import threading

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.server.limits import Limits
from tests.support.http_server import error_of, serving, wait_until

TYPE = {"Content-Type": "application/x-ndjson"}
PAIR = b'{"candidate": "the cat sat", "reference": "the dog sat"}\n'


def stream(client, content, query=""):
    """Send lines; return the lines that come back, parsed."""
    response = client.post(f"/v1/score{query}", content=content, headers=TYPE)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def texts(count):
    words = ["the", "a", "cat", "dog", "sat", "mat", "on", "sits", "ran", "red"]
    return [" ".join(words[(i * k) % 10] for k in range(1, 2 + i % 5)) for i in range(count)]


def test_scores_come_in_order_and_are_those_of_a_scorer(models, rescaled_bundle):
    candidates, references = texts(300), texts(301)[1:]
    lines = [
        json.dumps({"candidate": one, "references": [other, "a mat"]}).encode() + b"\n"
        for one, other in zip(candidates, references, strict=True)
    ]
    with (
        serving(models, Limits(max_batch_tokens=100)) as client,
        BERTScorer(rescaled_bundle, lang="en", rescale_with_baseline=True, device="cpu") as scorer,
    ):
        *answers, end = stream(client, b"".join(lines), "?model=tiny-bert&rescale=en")
        expected, signature = scorer.score(candidates, [[one, "a mat"] for one in references], return_hash=True)
    assert [answer["f1"] for answer in answers] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert [answer["best_reference"] for answer in answers] == expected.best_reference.tolist()
    assert end == {"done": True, "pairs": 300, "errors": 0, "model": "tiny-bert", "signature": signature}


def test_a_wrong_line_is_answered_in_its_place(client):
    wrong = [b"nonsense\n", b'{"candidate": "a"}\n', b'{"candidate": NaN, "reference": ""}\n', b"[1]\n", b"\xff\n"]
    *answers, end = stream(client, b"".join([PAIR, *wrong, b"\n", PAIR.rstrip()]))
    assert [answer.get("error", {}).get("code") for answer in answers] == [
        None,
        "malformed_json",
        "invalid",
        "malformed_json",
        "invalid",
        "malformed_json",
        None,
    ]
    assert [answer["error"]["line"] for answer in answers if "error" in answer] == [2, 3, 4, 5, 6]
    assert answers[0] == answers[-1]
    assert (end["pairs"], end["errors"]) == (2, 5)


def test_an_empty_stream_has_an_end(client):
    assert [line["pairs"] for line in stream(client, b"")] == [0]


def test_an_answer_does_not_wait_for_the_next_line(client):
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(3):
            connection.sendall(b"%x\r\n%s\r\n" % (len(PAIR), PAIR))
            answer = b""
            while b"best_reference" not in answer:
                answer += connection.recv(65536)
        connection.sendall(b"0\r\n\r\n")
        while b'"done":true' not in answer:
            answer += connection.recv(65536)


def test_no_more_is_read_than_can_be_scored(models, fake_batcher):
    batcher = fake_batcher()
    sent = 0

    def lines():
        nonlocal sent
        for _ in range(2000):
            sent += 1
            yield PAIR * 1000

    def read():
        with client.stream("POST", "/v1/score", content=lines(), headers=TYPE) as response:
            answers.extend(response.iter_bytes())

    answers = []
    with serving(models, Limits(max_batch_tokens=1000, max_body=100_000)) as client:
        thread = threading.Thread(target=read)
        thread.start()
        wait_until(lambda: batcher.calls == 3)
        before = -1
        while sent > before:  # the buffers of the system fill up
            before = sent
            threading.Event().wait(0.3)
        assert sent < 1000
        assert batcher.calls == 3
        client.app.state.admission.is_draining = True
        batcher.error = RuntimeError("enough")
        batcher.released.set()
        thread.join(20)
    assert b'"internal"' in answers[-1]


def test_a_line_without_end_ends_the_stream(models):
    with serving(models, Limits(max_body=1000)) as client:
        *answers, end = stream(client, PAIR + b"x" * 5000)
    assert "f1" in answers[0]
    assert end["error"]["code"] == "too_large"
    assert "line" not in end["error"]


def test_what_goes_wrong_before_the_first_answer_has_its_own_status(models):
    with serving(models, Limits(max_body=1000)) as client:
        response = client.post("/v1/score", content=b"x" * 5000, headers=TYPE)
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(client):
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
            b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(PAIR)
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(PAIR)
        answer = b""
        while b'"done":true' not in answer:
            answer += connection.recv(65536)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?model=huge", "unknown_model"),
        ("?rescale=de", "unknown_baseline"),
        ("?idf=sea", "unknown_idf"),
        ("?lang=en", "invalid"),
        ("?idf=zoo&idf=zoo", "invalid"),
    ],
)
def test_wrong_settings_are_refused_before_the_body_is_read(client, query, code):
    response = client.post(f"/v1/score{query}", content=PAIR, headers=TYPE)
    assert (response.status_code, error_of(response)["code"]) == (422, code)


def test_an_idf_table_can_be_chosen(client):
    assert "idf:no|" not in stream(client, PAIR, "?idf=zoo")[-1]["signature"]
