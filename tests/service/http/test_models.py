"""A model is loaded once for all its idf tables."""

import asyncio
import shutil

import pytest

from bertscore_onnx import BERTScorer, count_documents
from bertscore_onnx.errors import ClosedError, IdfError, QueueFullError
from bertscore_onnx.matching.rescaling import Rescaling
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from tests.support.fake_scorer import GUARD
from tests.support.http_server import (
    BODY,
    CPU,
    IDF_SENTENCES,
    counted,
    serving_bundles,
    with_baseline,
)

TABLES = {"zoo": IDF_SENTENCES, "town": ["a red house", "a blue tree", "the red cat"]}
COUNTED = {name: counted(sentences) for name, sentences in TABLES.items()}
PAIR = ["the cat sat"], ["a dog sat on it"]


@pytest.mark.parametrize(
    ("folder", "prefix", "name"),
    [("lr=0.1", "", "tiny-bert"), ("lr=0.1", "m=", "m"), ("plain", "m=", "m")],
)
def test_a_path_may_hold_an_equals_sign(tiny_bundle, tmp_path, folder, prefix, name):
    path = shutil.copytree(tiny_bundle, tmp_path / folder / "L4")
    with Models.load([f"{prefix}{path}"], {}, Limits(), CPU) as models:
        assert models.names == [name]


@pytest.fixture
def loaded(monkeypatch):
    """The scorers that models have loaded."""

    def load(*args, **settings):
        loaded.append(BERTScorer(*args, **settings))
        return loaded[-1]

    loaded = []
    monkeypatch.setattr("bertscore_onnx_service.http.models.BERTScorer", load)
    return loaded


@pytest.fixture
def models(tiny_bundle, loaded):
    with Models.load([str(tiny_bundle)], COUNTED, Limits(), CPU) as models:
        yield models


def test_all_tables_share_one_model(models, loaded, tiny_bundle):
    assert len(loaded) == 1
    for name, sentences in TABLES.items():
        with BERTScorer(tiny_bundle, idf=True, idf_sents=sentences, device="cpu") as scorer:
            model = models.select(idf=name)
            scores = model.batcher.submit(*PAIR).result(GUARD)
            assert scores.F.tolist() == pytest.approx(scorer.score(*PAIR).F.tolist(), abs=1e-6)
            assert str(model.scorer.signature) == str(scorer.signature)


def test_a_table_of_another_tokenizer_is_named(tiny_bundle, fast_bundle, loaded):
    counts = count_documents(IDF_SENTENCES, fast_bundle)
    with pytest.raises(IdfError, match="'zoo' does not fit"):
        Models.load([str(tiny_bundle)], {"zoo": lambda bundle: counts}, Limits(), CPU)
    with pytest.raises(ClosedError):
        loaded[0].score(*PAIR)


def test_closing_releases_the_model(tiny_bundle, loaded):
    with Models.load([str(tiny_bundle)], COUNTED, Limits(), CPU) as models:
        scorer = models.select().scorer
    for closed in (loaded[0], scorer):
        with pytest.raises(ClosedError):
            closed.score(*PAIR)


class FullBatcher:
    """Finds the queue full a few times, and then raises."""

    def __init__(self, times):
        self.times = times
        self.calls = 0

    async def score_pairs(self, pairs, *, deadline, client):
        self.calls += 1
        if self.calls <= self.times:
            raise QueueFullError("Full.", retry_after=0.01)
        raise InterruptedError


@pytest.mark.parametrize(
    ("times", "seconds", "error", "calls"),
    [(100, 0.005, QueueFullError, 1), (3, 20, InterruptedError, 4)],
)
def test_a_full_queue_is_waited_for_if_there_is_time(
    models, monkeypatch, times, seconds, error, calls
):
    model, batcher = models.select(), FullBatcher(times)

    async def run():
        until = asyncio.get_running_loop().time() + seconds
        await model.score(collect_pairs(["a"], ["b"]), Rescaling(), until)

    with monkeypatch.context() as patched:
        patched.setattr(model, "batcher", batcher)
        with pytest.raises(error):
            asyncio.run(run())
    assert batcher.calls == calls


def test_norwegian_and_raw_scores_have_the_scorers_signatures(tiny_bundle, tmp_path):
    folder = with_baseline(tiny_bundle, "no", tmp_path / "norwegian")
    with (
        serving_bundles(folder) as client,
        BERTScorer(folder, device="cpu", lang="no", rescale_with_baseline=True) as scorer,
    ):
        signatures = [
            client.post("/v1/score", json={**BODY, "rescale": lang}).json()["signature"]
            for lang in ("no", False)
        ]
        assert signatures == [scorer.hash, scorer.with_rescaling().hash]
        assert signatures[0] != signatures[1]
