"""A real process, from its start to its end by a signal."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress

import httpx
import pytest

from bertscore_onnx import count_documents
from tests.support.http_server import BODY, posted, refusal, server_process, wait_until
from tests.support.raw_http import connected, head, received

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX"),
]

KEY = "correct-horse-battery"
LONG = [
    {"candidate": f"{i} " + "word " * 300, "reference": f"{i} " + "other " * 300} for i in range(4)
]

MANY = [
    {"candidate": f"{i} " + "word " * 200, "reference": f"{i} " + "other " * 200}
    for i in range(600)
]
"""They take longer than a server drains."""


def num_active(client):
    return float(
        re.search(r"^bertscore_active_requests (\S+)", client.get("/metrics").text, re.MULTILINE)[1]
    )


def test_sigterm_finishes_requests_and_refuses_others(minilm_bundle, tmp_path):
    key_file = tmp_path / "keys"
    key_file.write_text(KEY)
    options = [
        "--model",
        str(minilm_bundle),
        "--api-key-file",
        str(key_file),
        "--log-format",
        "json",
    ]
    body = json.dumps(BODY).encode()
    request = head("application/json", f"Authorization: Bearer {KEY}", length=len(body)) + body
    with server_process(*options) as (process, client, lines):
        client.headers["Authorization"] = f"Bearer {KEY}"
        with ExitStack() as opened:
            # it keeps the server from ending
            unfinished = opened.enter_context(connected(client, request[:-1]))
            answers = [opened.enter_context(posted(client, {"pairs": LONG})) for _ in range(3)]
            wait_until(lambda: num_active(client) + sum(map(len, answers)) >= 4)
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: client.get("/health/ready").status_code == 503)
            assert refusal(client.post("/v1/score", json={"pairs": LONG[:1]})) == (503, "draining")
            unfinished.sendall(request[-1:])
            assert received(unfinished).startswith(b"HTTP/1.1 200 ")
        assert process.wait(30) == 0
    assert [(answer.status_code, len(answer.json()["scores"])) for [answer] in answers] == [
        (200, 4)
    ] * 3
    messages = [json.loads(line) for line in lines]
    assert [one["status"] for one in messages if one.get("path") == "/v1/score"].count(200) == 4
    assert messages[-1]["message"] == "Stopped."
    assert KEY not in "".join(lines)


def test_requests_beyond_the_drain_time_are_answered_503(minilm_bundle):
    with server_process("--model", str(minilm_bundle), "--limits", "drain=2") as (
        process,
        client,
        lines,
    ):
        with posted(client, {"pairs": MANY}) as answers:
            wait_until(lambda: "bertscore_active_requests 1.0" in client.get("/metrics").text)
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert refusal(answers[0]) == (503, "draining")
    assert any("1 requests were not answered" in line for line in lines)


SLOW_TOKENIZER = """
import hashlib
import sys
from bertscore_onnx.cli import main
from bertscore_onnx.text.tokenizer import SlowTokenizer

encode = SlowTokenizer.__call__
def encode_slowly(self, texts, max_length):
    if any("slow" in text for text in texts):
        print("tokenising", file=sys.stderr, flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)  # native code, which no signal interrupts
    return encode(self, texts, max_length)
SlowTokenizer.__call__ = encode_slowly
main()
"""


@pytest.mark.parametrize(
    ("size", "expected"),
    [(30, []), (60_000, [(503, "draining")])],
    ids=["in the event loop, which cannot answer then", "in a thread"],
)
def test_the_end_of_the_drain_ends_a_tokenizer_too(minilm_bundle, size, expected):
    body = {"pairs": [{"candidate": "slow ".ljust(size, "a"), "reference": "b"}]}
    options = ["--model", str(minilm_bundle), "--limits", "drain=2"]
    answers = []

    def post():
        with suppress(httpx.TransportError):
            answers.append(refusal(client.post("/v1/score", json=body)))

    with server_process(*options, program=("-c", SLOW_TOKENIZER)) as (process, client, lines):
        thread = threading.Thread(target=post)
        thread.start()
        wait_until(lambda: any("tokenising" in line for line in lines))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0  # the tokenizer takes longer
        thread.join()
    assert answers == expected


def test_an_idf_table_comes_from_sentences_or_from_counts(minilm_bundle, tmp_path):
    sentences = ["the cat sat", "a dog ran", "the red house"]
    (tmp_path / "sentences.txt").write_text("\n".join(sentences))
    count_documents(sentences, minilm_bundle).save(tmp_path / "counts.json")
    tables = [
        "--idf",
        f"texts={tmp_path / 'sentences.txt'}",
        "--idf",
        f"counts={tmp_path / 'counts.json'}",
    ]
    with server_process("--model", str(minilm_bundle), *tables) as (_, client, _):
        texts, counts, none = (
            client.post("/v1/score", json={**BODY, "idf": idf}).json()
            for idf in ("texts", "counts", None)
        )
    assert counts == texts
    assert counts["scores"] != none["scores"]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_loading_stops_at_once(minilm_bundle, tmp_path, number):
    pipe = tmp_path / "sentences"
    os.mkfifo(pipe)
    command = [
        sys.executable,
        "-m",
        "bertscore_onnx",
        "serve",
        "--model",
        str(minilm_bundle),
        "--port",
        "0",
    ]
    with subprocess.Popen(
        [*command, "--idf", f"news={pipe}"], stderr=subprocess.PIPE, text=True
    ) as process:
        with pipe.open("w"):  # the server has opened it
            process.send_signal(number)
            assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.usefixtures("interruptible")
def test_an_idle_server_stops_at_once(minilm_bundle):
    with server_process("--model", str(minilm_bundle)) as (process, client, lines):
        assert client.get("/health/ready").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert "Stopped." in lines[-1]
