"""Servers that run in a thread of the test's process, and models for them."""

import asyncio
import shutil
import threading
from contextlib import contextmanager

import httpx
import msgspec
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.baseline import Baseline
from bertscore_onnx.bundle import read_manifest, write_manifest
from bertscore_onnx.server import Limits, Models, create_app
from bertscore_onnx.server.lifecycle import listen, make_server

IDF_SENTENCES = ["the cat sat", "the dog ran on the mat", "a red house", "the tree is blue"]


def make_scorer(bundle, sentences):
    return BERTScorer(bundle.path, idf=sentences is not None, idf_sents=sentences, device="cpu")


@contextmanager
def serving(models, limits=None, keys=None):
    """Serve in a thread; yields a client."""
    app = create_app(models, limits or Limits(), keys=keys)
    server = make_server(app)
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=20) as client:
            client.app = app
            yield client
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.fixture(scope="session")
def rescaled_bundle(tiny_bundle, tmp_path_factory):
    """The tiny model with a baseline."""
    folder = tmp_path_factory.mktemp("rescaled") / "bundle"
    shutil.copytree(tiny_bundle, folder)
    baselines = {"en": [Baseline(0.1, 0.2, 0.3)]}
    write_manifest(folder, msgspec.structs.replace(read_manifest(folder), baselines=baselines))
    return folder


@pytest.fixture(scope="session")
def models(rescaled_bundle):
    """One model with one idf table."""
    with Models.load([str(rescaled_bundle)], {"zoo": IDF_SENTENCES}, Limits(), make_scorer) as models:
        yield models


@pytest.fixture(scope="session")
def client(models):
    """A client of a server with that model and without keys."""
    with serving(models) as client:
        yield client


class FakeBatcher:
    """Stands in for a batcher: raises an error, or waits until it is released."""

    def __init__(self, real, error=None):
        self._real = real
        self._error = error
        self.released = threading.Event()
        self.calls = 0
        self.cancelled = threading.Event()
        self.ready = True
        self.is_full = False

    def check_room(self):
        """Admit whatever comes, or raise the error where that is of a full queue."""
        if self.is_full:
            raise self._error

    async def score(self, cands, refs, *, deadline=None):
        self.calls += 1
        if self._error is not None:
            raise self._error
        try:
            while not self.released.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return await self._real.score(cands, refs, deadline=deadline)

    def stats(self):
        return self._real.stats()


@pytest.fixture
def fake_batcher(models, monkeypatch):
    """Put a `FakeBatcher` in the place of the model's batcher."""

    def put(error=None):
        weighting = models.choose(None).weighting(None)
        fake = FakeBatcher(weighting.batcher, error)
        monkeypatch.setattr(weighting, "batcher", fake)
        return fake

    return put


def error_of(response):
    return response.json()["error"]


def wait_until(condition, seconds=10):
    """Wait for something that another thread brings about."""
    event = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        event.wait(0.01)
    raise TimeoutError("It did not come about.")


def access_lines(caplog, *answers):
    """Return the fields that were logged of some requests, by the answers they got; the log may come after these."""

    def found():
        lines = [record.fields for record in caplog.records if hasattr(record, "fields")]
        return [line for answer in answers for line in lines if line["request"] == answer.headers["X-Request-Id"]]

    wait_until(lambda: len(found()) == len(answers))
    return found()
