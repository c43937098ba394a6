"""Scoring where vectors stay on the device, tried on the provider of the CPU with the limits of
CUDA.
"""

import gc
import itertools
import threading
import weakref
from contextlib import closing

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.encoding.device import DeviceVectors
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.places import DevicePlace
from bertscore_onnx.encoding.session import OnnxSession
from bertscore_onnx.errors import OutOfMemoryError
from harness.gpu import CHOICE, like_cuda
from tests.support.scores import SEVERAL, largest_difference

WORDS = ["a", "the", "cat", "dog", "mat", "sat", "ran", "on", "red", "blue"]
TEXTS = [" ".join(words) for words in itertools.product(WORDS, repeat=3)]
CANDIDATES, REFERENCES = TEXTS[:300], TEXTS[300:600]


@pytest.fixture
def like_gpu(monkeypatch):
    """Return a function that makes a scorer with the limits of CUDA."""
    monkeypatch.setattr(
        CHOICE, lambda device: [like_cuda(batch_values=32 * 256, min_batch_tokens=1)]
    )
    return BERTScorer


@pytest.fixture
def stays_there(monkeypatch):
    """Let every copy of vectors to the host fail."""

    def copy(vectors):
        raise AssertionError("Vectors were copied to the host.")

    monkeypatch.setattr(DeviceVectors, "_on_host", property(copy))


CASES = [
    ("tiny_bundle", {}),
    ("tiny_bundle", {"idf": True}),
    ("all_layers_bundle", {"all_layers": True, "idf": True}),
    ("all_layers_bundle", {"num_layers": 1}),
]


@pytest.mark.parametrize(("bundle", "options"), CASES)
@pytest.mark.parametrize("references", [REFERENCES, [[*SEVERAL[0], text] for text in REFERENCES]])
def test_scores_are_those_of_the_host_and_no_vector_leaves_the_device(
    request, like_gpu, stays_there, small_chunks, bundle, options, references
):
    folder = request.getfixturevalue(bundle)
    with like_gpu(folder, **options) as scorer:
        found = scorer.score(CANDIDATES, references)
        order = np.random.default_rng(0).permutation(300)
        shuffled = scorer.score(
            [CANDIDATES[row] for row in order], [references[row] for row in order]
        )
        assert np.array_equal(shuffled.F, found.F[..., order])
        encoded = scorer.encode(references)
        assert np.array_equal(scorer.score(CANDIDATES, encoded).F, found.F)
        assert np.array_equal(scorer.score(scorer.encode(CANDIDATES), encoded).F, found.F)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CHOICE, lambda device: [like_cuda(keeps_vectors=False)])
        with BERTScorer(folder, **options) as scorer:
            expected = scorer.score(CANDIDATES, references)
    assert largest_difference(found, expected) <= 1e-6
    assert found.best_reference.tolist() == expected.best_reference.tolist()


def test_encoded_texts_can_be_read_and_matched_with_all_others(tiny_bundle, like_gpu):
    with like_gpu(tiny_bundle) as scorer:
        encoded = scorer.encode(CANDIDATES[:20])
        found = scorer.pairwise(encoded, REFERENCES[:30])
        alone = scorer.score(CANDIDATES[:20], REFERENCES[:20])
    assert np.abs(np.diagonal(found.F) - alone.F).max() <= 1e-6
    assert np.linalg.norm(encoded.embeddings.vectors_of(0, 3), axis=1) == pytest.approx(
        np.ones(5), abs=1e-6
    )


def test_references_of_several_systems_are_encoded_once(tiny_bundle, like_gpu, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 4)
    encoded, plan = [], Encoder.plan

    def count(encoder, sequences, **options):
        encoded.append(len(sequences))
        return plan(encoder, sequences, **options)

    monkeypatch.setattr(Encoder, "plan", count)
    pairs = [(text, reference) for reference in TEXTS[500:600] for text in TEXTS[:10]]
    with like_gpu(tiny_bundle) as scorer:
        scorer.score(*zip(*pairs, strict=True))
        assert sum(encoded) == 100 + 10 * 15  # there are 15 chunks
        encoded.clear()
        references = scorer.encode(TEXTS[500:600])
        for system in range(10):
            scorer.score(TEXTS[system * 20 : system * 20 + 100], references)
    assert sum(encoded) == 100 + 10 * 100


@pytest.mark.parametrize("limit", [None, "1000"])
def test_with_too_little_memory_vectors_go_to_the_host(
    tiny_bundle, like_gpu, monkeypatch, small_chunks, caplog, limit
):
    def run_without_memory(session, batch, places, *others):
        if any(isinstance(place, DevicePlace) for place in places):
            raise OutOfMemoryError("Failed to allocate memory.")
        run(session, batch, places, *others)

    with like_gpu(tiny_bundle) as scorer:
        expected, run = scorer.score(CANDIDATES, REFERENCES), OnnxSession.run
        if limit is None:
            monkeypatch.setattr(OnnxSession, "run", run_without_memory)
        else:
            monkeypatch.setenv("BERTSCORE_ONNX_GPU_MEM_LIMIT", limit)
        found = scorer.score(CANDIDATES, REFERENCES)
    assert largest_difference(found, expected) <= 1e-6
    assert "matched on the host" in caplog.text


def test_scoring_may_stop_in_between(tiny_bundle, like_gpu, small_chunks):
    with like_gpu(tiny_bundle) as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES)
        with closing(scorer.stream(zip(CANDIDATES, REFERENCES, strict=True))) as scores:
            first = [next(scores).F for _ in range(100)]
        assert np.array_equal(np.array(first, dtype=np.float32), expected.F[:100])
        assert np.array_equal(scorer.score(CANDIDATES, REFERENCES).F, expected.F)


@pytest.fixture
def buffers(monkeypatch, no_garbage_collection):
    """Return the vectors on the device that are alive, while nothing collects circles of
    references.
    """
    alive, make = weakref.WeakSet(), DeviceVectors.__init__
    monkeypatch.setattr(
        DeviceVectors, "__init__", lambda vectors, *args: alive.add(vectors) or make(vectors, *args)
    )
    return alive


def no_memory(*arguments):
    raise OutOfMemoryError("Failed to allocate memory.")


MANY = [" ".join(words) for words in itertools.product(WORDS, repeat=4)][::9]


@pytest.mark.parametrize("fault", [None, "memory", "left", "closed"])
def test_no_vectors_stay_on_the_device(tiny_bundle, like_gpu, buffers, monkeypatch, fault):
    """Neither after a call nor after a run that lacks memory, nor after a stream that is left."""
    before = threading.enumerate()  # threads of scorers that other tests have left open
    pairs = [*zip(MANY, MANY[::-1], strict=True)] * 2
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_BYTES", 4 * 32 * 900)
    with like_gpu(tiny_bundle) as scorer:
        expected = scorer.score(*zip(*pairs, strict=True))
        assert not buffers
        if fault == "memory":
            run = OnnxSession.run
            monkeypatch.setattr(
                OnnxSession,
                "run",
                lambda session, batch, places: (
                    no_memory()
                    if isinstance(places[0], DevicePlace)
                    else run(session, batch, places)
                ),
            )
        with closing(scorer.stream(pairs)) as scores:
            found = [next(scores).F for _ in range(1 if fault == "left" else len(pairs))]
            if fault == "closed":
                scorer.close()
        assert found == pytest.approx(expected.F[: len(found)].tolist(), abs=1e-6)
    for thread in threading.enumerate():
        if thread.name.startswith("bertscore-chunk") and thread not in before:
            thread.join(60)
    assert not buffers
    assert gc.isenabled() is False


@pytest.mark.parametrize("contexts", [["a dog"] * 300, [None] * 150 + ["a dog"] * 150])
def test_texts_in_contexts_are_matched_on_the_host(tiny_bundle, like_gpu, monkeypatch, contexts):
    made, make = [], DeviceVectors.__init__
    monkeypatch.setattr(
        DeviceVectors,
        "__init__",
        lambda vectors, *args: made.append(vectors) or make(vectors, *args),
    )
    with like_gpu(tiny_bundle) as scorer:
        found = scorer.score(CANDIDATES, REFERENCES, contexts=contexts)
        assert not made
        scorer.score(CANDIDATES, REFERENCES)
        assert made
    monkeypatch.setattr(CHOICE, lambda device: [like_cuda(keeps_vectors=False)])
    with BERTScorer(tiny_bundle) as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES, contexts=contexts)
    assert np.array_equal(found.F, expected.F)
