"""Servers that run in a thread of the test's process, and models for them."""

import pytest

from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from tests.support.http_server import (
    CPU,
    IDF_SENTENCES,
    FakeBatcher,
    counted,
    serving,
    with_baseline,
)


@pytest.fixture(scope="session")
def rescaled_bundle(tiny_bundle, tmp_path_factory):
    """The tiny model with a baseline."""
    return with_baseline(tiny_bundle, "en", tmp_path_factory.mktemp("rescaled") / "bundle")


@pytest.fixture(scope="session")
def models(rescaled_bundle):
    """One model with one idf table."""
    with Models.load(
        [str(rescaled_bundle)], {"zoo": counted(IDF_SENTENCES)}, Limits(), CPU
    ) as models:
        yield models


@pytest.fixture(scope="session")
def client(models):
    with serving(models) as client:
        yield client


@pytest.fixture
def fake_batcher(models, monkeypatch):
    def put(error=None):
        model = models.select()
        fake = FakeBatcher(model.batcher, error)
        monkeypatch.setattr(model, "batcher", fake)
        return fake

    return put
