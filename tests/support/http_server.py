"""Servers in a thread of the test's process or in a process of their own, and requests to them."""

import asyncio
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import uvicorn.server

from bertscore_onnx import count_documents
from bertscore_onnx.bundle.catalogue import Baseline
from bertscore_onnx_service.http.app import create_app
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.run import listen, make_server
from tests.support.manifests import changed_copy

IDF_SENTENCES = ["the cat sat", "the dog ran on the mat", "a red house", "the tree is blue"]

CPU = {"device": "cpu"}
JSON = {"Content-Type": "application/json"}
BODY = {"pairs": [{"candidate": "a cat", "reference": "the cat"}]}

# uvicorn looks every 0.1 seconds whether to stop, and then waits as long; tests stop many servers.
uvicorn.server.asyncio = SimpleNamespace(
    **{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 20)}
)


def with_baseline(bundle, language, folder):
    """Copy a bundle to a folder, with a baseline for a language; return the folder."""
    return changed_copy(bundle, folder, baselines={language: [Baseline(0.1, 0.2, 0.3)]})


def counted(sentences):
    """Return a function that counts sentences with the tokenizer of a bundle: an idf table of a
    server.
    """
    return lambda bundle: count_documents(sentences, bundle.path)


@contextmanager
def serving(models, limits=None, keys=None, any_host=False, **options):
    """Serve in a thread, with options of `make_server`; yields a client."""
    app = create_app(models, limits or Limits(), keys=keys, any_host=any_host)
    server = make_server(app, **options)
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60
        ) as client:
            client.app = app
            yield client
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


@contextmanager
def serving_bundles(*bundles, limits=None, **settings):
    """Serve bundles without idf tables on the CPU, with settings of a scorer; yields a client,
    which has the models.
    """
    limits = limits or Limits()
    with (
        Models.load([*map(str, bundles)], {}, limits, {**CPU, **settings}) as models,
        serving(models, limits) as client,
    ):
        client.models = models
        yield client


@contextmanager
def server_process(*options, program=("-m", "bertscore_onnx")):
    """Start `bertscore-onnx serve` on any port; yields the process, a client and the lines it
    logs.
    """
    command = [sys.executable, *program, "serve", "--port", "0", "--device", "cpu", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(process.stderr.readline, "")))
    reader.start()
    try:
        wait_until(lambda: process.poll() is not None or any("Serving" in line for line in lines))
        address = re.search(r"http://[\w.:]+", "".join(lines)).group()
        with httpx.Client(base_url=address, timeout=60) as client:
            yield process, client, lines
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()


class FakeBatcher:
    """Stands in for a batcher: raises an error, or waits until it is released."""

    def __init__(self, real, error=None):
        self._real = real
        self.error = error
        self.released = threading.Event()
        self.calls = 0
        self.clients = []
        self.cancelled = threading.Event()
        self.live = True
        self.ready = True
        self.is_full = False

    def check_capacity(self):
        """Admit everything, or raise the error if that is of a full queue."""
        if self.is_full:
            raise self.error

    def tokenise(self, pairs):
        self.check_capacity()
        return self._real.tokenise(pairs)

    async def score_pairs(self, pairs, *, deadline=None, client=None):
        self.calls += 1
        self.clients.append(client)
        if self.error is not None:
            raise self.error
        try:
            while not self.released.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return await self._real.score_pairs(pairs, deadline=deadline)

    def stats(self):
        return self._real.stats()


@contextmanager
def posted(client, body=BODY):
    """Post a body to be scored in a thread; yields a list that holds the answer once the block has
    ended.
    """
    answers = []
    thread = threading.Thread(target=lambda: answers.append(client.post("/v1/score", json=body)))
    thread.start()
    yield answers
    thread.join()


def error_of(response):
    return response.json()["error"]


def refusal(response):
    """Return the status and the code of an error."""
    return response.status_code, error_of(response)["code"]


def wait_until(condition, seconds=60):
    """Wait until another thread has made a condition true."""
    event = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        event.wait(0.005)
    raise TimeoutError("The condition did not become true.")


def access_lines(caplog, *answers):
    """Return the fields that were logged of some requests, by the answers they got; the log may
    come after these.
    """

    def found():
        lines = [record.fields for record in caplog.records if hasattr(record, "fields")]
        return [
            line
            for answer in answers
            for line in lines
            if line["request"] == answer.headers["X-Request-Id"]
        ]

    wait_until(lambda: len(found()) == len(answers))
    return found()
