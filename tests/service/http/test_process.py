"""A real process, from its start to its end by a signal."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from bertscore_onnx import count_documents
from tests.support.http_server import BODY, posted, refusal, server_process, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")]

KEY = "correct-horse-battery"
LONG = [{"candidate": f"{i} " + "word " * 300, "reference": f"{i} " + "other " * 300} for i in range(4)]


def test_sigterm_finishes_requests_and_refuses_others(minilm_bundle, tmp_path):
    key_file = tmp_path / "keys"
    key_file.write_text(KEY)
    options = ["--model", str(minilm_bundle), "--api-key-file", str(key_file), "--log-format", "json"]
    with server_process(*options) as (process, client, lines):
        client.headers["Authorization"] = f"Bearer {KEY}"
        with ExitStack() as threads:
            answers = [threads.enter_context(posted(client, {"pairs": LONG})) for _ in range(3)]
            wait_until(lambda: "bertscore_active_requests 3.0" in client.get("/metrics").text)
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: client.get("/health/ready").status_code == 503)
            assert refusal(client.post("/v1/score", json={"pairs": LONG[:1]})) == (503, "draining")
        assert process.wait(30) == 0
    assert [(answer.status_code, len(answer.json()["scores"])) for [answer] in answers] == [(200, 4)] * 3
    messages = [json.loads(line) for line in lines]
    assert [one["status"] for one in messages if one.get("path") == "/v1/score"].count(200) == 3
    assert messages[-1]["message"] == "Stopped."
    assert KEY not in "".join(lines)


def test_requests_beyond_the_drain_time_are_answered_503(minilm_bundle):
    with server_process("--model", str(minilm_bundle), "--limits", "drain=0.05") as (process, client, lines):
        with posted(client, {"pairs": LONG * 20}) as answers:
            wait_until(lambda: "bertscore_active_requests 1.0" in client.get("/metrics").text)
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert refusal(answers[0]) == (503, "draining")
    assert any("1 requests were not answered" in line for line in lines)


def test_an_idf_table_comes_from_sentences_or_from_counts(minilm_bundle, tmp_path):
    sentences = ["the cat sat", "a dog ran", "the red house"]
    (tmp_path / "sentences.txt").write_text("\n".join(sentences))
    count_documents(sentences, minilm_bundle).save(tmp_path / "counts.json")
    tables = ["--idf", f"texts={tmp_path / 'sentences.txt'}", "--idf", f"counts={tmp_path / 'counts.json'}"]
    with server_process("--model", str(minilm_bundle), *tables) as (_, client, _):
        texts, counts, none = (
            client.post("/v1/score", json={**BODY, "idf": idf}).json() for idf in ("texts", "counts", None)
        )
    assert counts == texts
    assert counts["scores"] != none["scores"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_loading_stops_at_once(minilm_bundle, tmp_path, number):
    pipe = tmp_path / "sentences"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "bertscore_onnx", "serve", "--model", str(minilm_bundle), "--port", "0"]
    with subprocess.Popen([*command, "--idf", f"news={pipe}"], stderr=subprocess.PIPE, text=True) as process:
        with pipe.open("w"):  # the server has opened it
            process.send_signal(number)
            assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.usefixtures("interruptible")
def test_an_idle_server_stops_at_once(minilm_bundle):
    with server_process("--model", str(minilm_bundle)) as (process, client, lines):
        assert client.get("/health/ready").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    assert "Stopped." in lines[-1]
