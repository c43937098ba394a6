"""Streams of lines, and how they are cut into chunks that are scored in order."""

import json
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import WorkerError
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.stream import MAX_WRONG_LINES, cut
from tests.support.http_server import LINE, NDJSON, refusal, serving, wait_until
from tests.support.raw_http import connected, head, received

KIND = NDJSON["Content-Type"]


def stream(client, content, query=""):
    """Send lines; return the lines of the answer, parsed."""
    response = client.post(f"/v1/score{query}", content=content, headers=NDJSON)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == KIND
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
    *answers, end = stream(client, b"".join([LINE, *wrong, b"\n", LINE.rstrip()]))
    errors = [answer["error"] for answer in answers[1:-1]]
    assert [error["code"] for error in errors] == [*["malformed_json", "invalid"] * 2, "malformed_json"]
    assert [error["line"] for error in errors] == [2, 3, 4, 5, 6]
    assert "f1" in answers[0]
    assert answers[0] == answers[-1]
    assert (end["pairs"], end["errors"]) == (2, 5)


def test_an_empty_stream_ends_and_an_idf_table_can_be_chosen(client):
    assert [line["pairs"] for line in stream(client, b"")] == [0]
    assert "idf:no|" not in stream(client, LINE, "?idf=zoo")[-1]["signature"]


def test_an_answer_does_not_wait_for_the_next_line(client):
    with connected(client, head(KIND, "Transfer-Encoding: chunked", length=None)) as connection:
        for _ in range(3):
            connection.sendall(b"%x\r\n%s\r\n" % (len(LINE), LINE))
            answer = received(connection, until=b"best_reference")
        connection.sendall(b"0\r\n\r\n")
        assert b'"done":true' in answer or received(connection, until=b'"done":true')


def test_no_more_is_read_than_can_be_scored(models, fake_batcher):
    batcher = fake_batcher()
    sent = 0

    def lines():
        nonlocal sent
        for _ in range(2000):
            sent += 1
            yield LINE * 1000

    def read():
        with client.stream("POST", "/v1/score", content=lines(), headers=NDJSON) as response:
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
        batcher.error = WorkerError("enough")
        batcher.released.set()
        thread.join(20)
    assert b'"worker_failed"' in answers[-1]


def test_an_endless_line_ends_the_stream(models):
    with serving(models, Limits(max_body=1000)) as client:
        *answers, end = stream(client, LINE + b"x" * 5000)
        assert refusal(client.post("/v1/score", content=b"x" * 5000, headers=NDJSON)) == (413, "too_large")
    assert "f1" in answers[0]
    assert end["error"]["code"] == "too_large"
    assert "line" not in end["error"]


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(client):
    with connected(client, head(KIND, "Expect: 100-continue", length=len(LINE))) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(LINE)
        assert b'"done":true' in received(connection, until=b'"done":true')


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
    assert refusal(client.post(f"/v1/score{query}", content=LINE, headers=NDJSON)) == (422, code)


@given(st.lists(st.integers(0, 12)), st.integers(1, 10))
def test_cuts_are_consecutive_and_as_long_as_may_be(sizes, max_size):
    slices = list(cut(sizes, max_size))
    assert [size for chunk in slices for size in sizes[chunk]] == sizes
    assert all(sum(sizes[chunk]) <= max_size or chunk.stop - chunk.start == 1 for chunk in slices)
    assert all(sum(sizes[one.start : other.start + 1]) > max_size for one, other in pairwise(slices))


def test_a_stream_of_wrong_lines_ends(client):
    *answers, end = stream(client, LINE + b"{\n" * 100_000)
    assert "f1" in answers[0]
    assert len(answers) == 1 + MAX_WRONG_LINES + 1
    assert (end["error"]["code"], "line" in end["error"]) == ("too_many_errors", False)


def test_a_stream_whose_client_goes_away_is_cancelled(models, fake_batcher):
    batcher = fake_batcher()
    with serving(models) as client:
        with connected(client, head(KIND, length=10_000) + LINE):
            wait_until(lambda: batcher.calls)
        assert batcher.cancelled.wait(10)
        wait_until(lambda: not client.app.state.admission.active)
