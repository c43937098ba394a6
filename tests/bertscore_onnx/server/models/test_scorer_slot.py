"""One model is loaded for all idf tables; where it fails it is loaded again, once."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from bertscore_onnx import BERTScorer, count_documents
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.errors import ClosedError, IdfError, WorkerError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models, SharedModel
from tests.support.fake_scorer import GUARD
from tests.support.http_server import IDF_SENTENCES, counted, load_scorer, wait_until

TABLES = {"zoo": IDF_SENTENCES, "town": ["a red house", "a blue tree", "the red cat"]}
COUNTED = {name: counted(sentences) for name, sentences in TABLES.items()}
PAIR = ["the cat sat"], ["a dog sat on it"]


@pytest.mark.parametrize(
    ("folder", "prefix", "name"), [("lr=0.1", "", "tiny-bert"), ("lr=0.1", "m=", "m"), ("plain", "m=", "m")]
)
def test_a_path_may_hold_an_equals_sign(tiny_bundle, tmp_path, folder, prefix, name):
    path = shutil.copytree(tiny_bundle, tmp_path / folder / "L4")
    with Models.load([f"{prefix}{path}"], {}, Limits(), load_scorer) as models:
        assert [model.name for model in models] == [name]


@pytest.fixture
def loaded():
    """The scorers that `load` made."""
    return []


@pytest.fixture
def load(loaded):
    def load(bundle):
        loaded.append(load_scorer(bundle))
        return loaded[-1]

    return load


@pytest.fixture
def model(tiny_bundle, load):
    with Models.load([str(tiny_bundle)], COUNTED, Limits(), load) as models:
        yield models.model(None)


def score(slot):
    return slot.batcher.submit(*PAIR).result(GUARD).F.tolist()


def break_down(slot):
    """Let the scorer of a slot fail, and wait for another."""
    slot.scorer.close()
    with pytest.raises(WorkerError):
        score(slot)
    wait_until(lambda: slot.batcher.ready)


def test_all_tables_share_one_model(model, loaded, tiny_bundle):
    assert len(loaded) == 1
    for name, sentences in TABLES.items():
        with BERTScorer(tiny_bundle, idf=True, idf_sents=sentences, device="cpu") as scorer:
            assert score(model.slot(name)) == pytest.approx(scorer.score(*PAIR).F.tolist(), abs=1e-6)
            assert str(model.slot(name).scorer.signature) == str(scorer.signature)


def test_a_table_of_another_tokenizer_is_named(tiny_bundle, fast_bundle, load, loaded):
    counts = count_documents(IDF_SENTENCES, fast_bundle)
    with pytest.raises(
        IdfError, match=r"The idf table 'zoo' does not fit the model 'tiny-bert'\. The document counts are"
    ):
        Models.load([str(tiny_bundle)], {"zoo": lambda bundle: counts}, Limits(), load)
    with pytest.raises(ClosedError):
        loaded[0].score(*PAIR)


def test_a_model_that_fails_is_loaded_again_for_its_slot_while_others_keep_theirs(model, loaded):
    before = {name: score(slot) for name, slot in model.slots.items()}
    kept = [model.slot("town").scorer, model.slot(None).scorer]
    break_down(model.slot("zoo"))
    assert len(loaded) == 2
    assert [model.slot("town").scorer, model.slot(None).scorer] == kept
    assert {name: score(slot) for name, slot in model.slots.items()} == before


def test_a_model_that_fails_for_all_slots_is_loaded_again_once(model, loaded):
    before = {name: score(slot) for name, slot in model.slots.items()}
    with ThreadPoolExecutor() as pool:
        list(pool.map(break_down, model.slots.values()))
    assert len(loaded) == 2
    assert {name: score(slot) for name, slot in model.slots.items()} == before


def test_a_model_is_released_with_its_last_scorer(load, loaded, tiny_bundle):
    shared = SharedModel(lambda: load(resolve_bundle(str(tiny_bundle))))
    one, _ = shared.make_scorer(False)
    other, version = shared.make_scorer(count_documents(IDF_SENTENCES, tiny_bundle))
    shared.close()
    one.close()
    assert other.score(*PAIR).F.shape == (1,)
    other.close()
    with pytest.raises(ClosedError):
        other.score(*PAIR)
    assert len(loaded) == version == 1


def test_a_model_that_cannot_be_loaded_again_is_tried_again(load, loaded, tiny_bundle):
    failures = iter([None, RuntimeError("no memory"), None])

    def load_or_fail():
        if failure := next(failures):
            raise failure
        return load(resolve_bundle(str(tiny_bundle)))

    with SharedModel(load_or_fail) as shared:
        scorers = [shared.make_scorer(False)]
        with pytest.raises(RuntimeError, match="no memory"):
            shared.make_scorer(False, failed_version=1)
        counts = count_documents(IDF_SENTENCES, tiny_bundle)
        scorers += [shared.make_scorer(counts, failed_version=1) for _ in range(2)]
    assert [version for _, version in scorers] == [1, 2, 2]
    assert len(loaded) == 2
    for scorer, _ in scorers:
        scorer.close()
