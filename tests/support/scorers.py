"""Scorers of the tiny model, and what several tests compare them by."""

import gc
import logging
import os
import signal

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.encoding.providers import OPENVINO, is_installed
from bertscore_onnx.encoding.session import OnnxSession
from bertscore_onnx.scoring.inputs import PAIRS_AT_ONCE
from bertscore_onnx.text.tokenizer import TextTokenizer
from tests.support.fake_hub import fake_hub


@pytest.fixture(scope="module")
def scorer(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        yield scorer


@pytest.fixture(scope="module")
def all_layers_scorer(all_layers_bundle):
    with BERTScorer(all_layers_bundle, all_layers=True, device="cpu") as scorer:
        yield scorer


def forget_sessions():
    """Close the connections of huggingface_hub, so that its next request obeys changed settings."""
    import huggingface_hub
    from huggingface_hub import utils

    (getattr(utils, "reset_sessions", None) or huggingface_hub.close_session)()


@pytest.fixture
def online(monkeypatch, home):
    """Let this process ask hubs, in the way of somebody who has no token; the home folder is the
    test's own.
    """
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    forget_sessions()
    yield
    forget_sessions()


@pytest.fixture
def hub(online):
    """A hub on loopback that holds nothing."""
    with fake_hub(int(os.environ["HF_ENDPOINT"].rpartition(":")[2])) as hub:
        yield hub


@pytest.fixture
def baseline_path(tmp_path):
    path = tmp_path / "baseline.tsv"
    path.write_text("LAYER,P,R,F\n0,0.5,0.4,0.3\n1,0.3,0.2,0.1\n2,0.1,0.2,0.3\n3,0.2,0.3,0.4\n")
    return path


@pytest.fixture
def loaded(monkeypatch):
    """Record the models that are loaded."""
    made, original = [], OnnxSession.__init__

    def load(self, *arguments, **options):
        made.append(self)
        original(self, *arguments, **options)

    monkeypatch.setattr(OnnxSession, "__init__", load)
    return made


@pytest.fixture
def small_chunks(monkeypatch):
    """Let a window hold 4 pairs, which are read 2 at a time."""
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 4)
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 2)


@pytest.fixture
def many_texts(monkeypatch):
    """An iterator of texts, and a list that grows by how many were read, whenever a tokenizer gets
    some of them.
    """
    read, read_before = [], []
    tokenise = TextTokenizer.__call__

    def tokenise_and_record(self, texts):
        read_before.append(len(read))
        return tokenise(self, texts)

    monkeypatch.setattr(TextTokenizer, "__call__", tokenise_and_record)
    texts = (
        read.append(number) or ("the cat" if number % 2 else "a dog")
        for number in range(3 * PAIRS_AT_ONCE)
    )
    return texts, read_before


@pytest.fixture
def bfloat16(monkeypatch):
    """Let OpenVINO compute in bfloat16, which it emulates on a processor that lacks it."""
    if not is_installed(OPENVINO):
        pytest.skip("OpenVINO is not installed")
    monkeypatch.setattr("bertscore_onnx.encoding.openvino.has_bfloat16", lambda: True)


@pytest.fixture
def write(tmp_path):
    """Write a file of the test's own and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def loggers_as_before(monkeypatch):
    """Restore the loggers and the signal handlers that `serve` sets."""
    from bertscore_onnx_service.http.request_log import LEVELS  # needs the extra `server`

    for name in LEVELS:
        for attribute, value in vars(logger := logging.getLogger(name)).items():
            if attribute in ("handlers", "level", "propagate"):
                monkeypatch.setattr(logger, attribute, value)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    signal.set_wakeup_fd(-1)  # otherwise the server's thread repeats the signals of later tests
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def no_garbage_collection():
    """A collection looks at all objects of the tests' process, which takes far longer than what a
    test measures.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()
