"""Scoring where vectors stay on the device, tried on the provider of the CPU with the limits of CUDA."""

import itertools
from contextlib import closing

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.encoding.device import DeviceVectors
from bertscore_onnx.encoding.early import EarlyRuns
from bertscore_onnx.encoding.encoder import Encoder
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
    monkeypatch.setattr(CHOICE, lambda device: [like_cuda(batch_values=32 * 256, min_batch_tokens=1)])
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
        shuffled = scorer.score([CANDIDATES[row] for row in order], [references[row] for row in order])
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
    assert np.linalg.norm(encoded.embeddings.vectors_of(0, 3), axis=1) == pytest.approx(np.ones(5), abs=1e-6)


def test_references_of_several_systems_are_encoded_once(tiny_bundle, like_gpu, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.scoring.chunks.CHUNK_CANDIDATES", 4)
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
def test_with_too_little_memory_vectors_go_to_the_host(tiny_bundle, like_gpu, monkeypatch, small_chunks, caplog, limit):
    def run_without_memory(session, batch, outputs, *others):
        if any(not isinstance(output, np.ndarray) for output in outputs):
            raise OutOfMemoryError("Failed to allocate memory.")
        run(session, batch, outputs, *others)

    with like_gpu(tiny_bundle) as scorer:
        expected, run = scorer.score(CANDIDATES, REFERENCES), OnnxSession.run
        if limit is None:
            monkeypatch.setattr(OnnxSession, "run", run_without_memory)
        else:
            monkeypatch.setenv("BERTSCORE_ONNX_GPU_MEM_LIMIT", limit)
        found = scorer.score(CANDIDATES, REFERENCES)
    assert largest_difference(found, expected) <= 1e-6
    assert "matched on the host" in caplog.text


@pytest.fixture
def early(monkeypatch):
    """Return a list that grows by the texts of each run that begins early."""
    texts, begin = [], EarlyRuns._begin
    monkeypatch.setattr(EarlyRuns, "_begin", lambda runs, *args: texts.append(len(args[0])) or begin(runs, *args))
    return texts


MANY = [" ".join(words) for words in itertools.product(WORDS, repeat=4)][::3]


@pytest.mark.parametrize(("bundle", "options"), CASES)
def test_runs_begin_before_all_texts_are_tokenised(request, like_gpu, stays_there, early, monkeypatch, bundle, options):
    folder = request.getfixturevalue(bundle)
    references = [*MANY[1:], "a cat"]
    with like_gpu(folder, **options) as scorer:
        found = scorer.score(MANY, references)
        assert early
        assert sum(early) < len(MANY)
        monkeypatch.setattr(EarlyRuns, "_vectors_for", lambda *_: None)
        assert np.array_equal(scorer.score(MANY, references).F, found.F)


@pytest.mark.parametrize("room", [0.01, 0.5])
def test_with_too_little_room_for_early_runs_all_texts_are_run_at_the_end(tiny_bundle, like_gpu, monkeypatch, room):
    with like_gpu(tiny_bundle) as scorer:
        expected = scorer.score(MANY, MANY[::-1])
        monkeypatch.setattr("bertscore_onnx.encoding.early.ROOM", room)
        monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_BYTES", 4 * 32 * 2500)
    with like_gpu(tiny_bundle) as scorer:
        assert np.array_equal(scorer.score(MANY, MANY[::-1]).F, expected.F)


def test_scoring_may_stop_in_between(tiny_bundle, like_gpu, small_chunks):
    with like_gpu(tiny_bundle) as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES)
        with closing(scorer.stream(zip(CANDIDATES, REFERENCES, strict=True))) as scores:
            first = [next(scores).F for _ in range(100)]
        assert np.array_equal(np.array(first, dtype=np.float32), expected.F[:100])
        assert np.array_equal(scorer.score(CANDIDATES, REFERENCES).F, expected.F)
