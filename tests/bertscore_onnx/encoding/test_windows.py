import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.windows import Windows
from bertscore_onnx.errors import IdfError, InputError
from bertscore_onnx.scoring.tokenization import load_tokenizer
from tests.support.manifests import with_fields
from tests.support.scores import CANDIDATES, REFERENCES

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "mat",
    "on",
    "sits",
    "ran",
    "red",
    "blue",
    "house",
    "tree",
    "and",
    "or",
]


def long_text(num_words, seed=0):
    return " ".join(np.random.default_rng(seed).choice(WORDS, num_words))


@pytest.fixture(scope="module")
def scorer(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", long_text="window") as scorer:
        yield scorer


@pytest.fixture(scope="module")
def truncating(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        yield scorer


def vectors_of(encoded, text):
    table, row = encoded.embeddings, encoded.rows[text]
    return table.vectors_of(0, row)[None]


@given(
    num_words=st.integers(0, 200),
    max_length=st.integers(4, 40),
    frame=st.tuples(st.integers(0, 2), st.integers(0, 1)),
    overlap=st.sampled_from([0, 0.25, 0.5, 0.75]),
)
def test_every_token_is_kept_once_from_windows_that_overlap(num_words, max_length, frame, overlap):
    before, after = frame
    words = np.arange(100, 100 + num_words)
    ids = np.concatenate((np.arange(before), words, 50 + np.arange(after)))
    if not len(ids):
        return
    windows = Windows([ids], max_length, frame, overlap)
    kept = [one[a:b] for one, (a, b) in zip(windows.sequences, windows.kept, strict=True)]
    assert np.concatenate(kept).tolist() == ids.tolist()
    room = max_length - before - after
    if len(ids) > max_length:
        assert {len(one) for one in windows.sequences} == {max_length}
        inner = [one[before : max_length - after] for one in windows.sequences]
        shared = [len(np.intersect1d(one, other)) for one, other in pairwise(inner)]
        assert min(shared) >= min(room - 1, int(np.ceil(room * overlap)))
        assert all(one[:before].tolist() == ids[:before].tolist() for one in windows.sequences)
        assert all(
            one[max_length - after :].tolist() == (50 + np.arange(after)).tolist()
            for one in windows.sequences
        )
    else:
        assert len(windows.sequences) == 1


def test_windows_of_long_texts_do_not_change_short_ones(scorer, truncating):
    alone = scorer.score(CANDIDATES, REFERENCES)
    assert np.array_equal(alone, truncating.score(CANDIDATES, REFERENCES))
    beside = scorer.score([*CANDIDATES, long_text(500)], [*REFERENCES, "a cat"])
    assert np.abs(beside.F[:3] - alone.F).max() < 1e-5


def test_the_vectors_are_those_of_the_windows(scorer):
    words = long_text(58).split()  # room for 30 words: windows of the words 0-29, 14-43 and 28-57
    text = vectors_of(scorer.encode([" ".join(words)]), 0)
    first, second, third = (
        vectors_of(scorer.encode([" ".join(words[n : n + 30])]), 0) for n in (0, 14, 28)
    )
    assert np.abs(text[:, :23] - first[:, :23]).max() < 1e-5  # [CLS] and the words 0-21
    assert np.abs(text[:, 23:37] - second[:, 9:23]).max() < 1e-5  # the words 22-35
    assert np.abs(text[:, 37:] - third[:, 9:]).max() < 1e-5  # the words 36-57 and [SEP]


def test_a_word_beyond_the_maximum_counts_in_windows_alone(scorer, truncating):
    start = long_text(60)
    texts, reference = [f"{start} cat", f"{start} tree"], f"{start} cat"
    windowed = scorer.score(texts, [reference] * 2).F
    with pytest.warns(UserWarning, match="4 texts are longer than 32 tokens and truncated"):
        truncated = truncating.score(texts, [reference] * 2).F
    assert windowed[0] - windowed[1] > 1e-4
    assert truncated[0] == truncated[1]


def test_idf_counts_the_whole_text(tiny_bundle):
    sents = [f"{long_text(60)} ? ?", f"{long_text(60)} !"]  # the same as far as a window goes
    with BERTScorer(tiny_bundle, idf=True, long_text="window") as scorer:
        scorer.compute_idf(sents)
        texts = scorer.encode(["?", "the"])
        ids = [texts.embeddings.sequences[row][1] for row in texts.rows]
        weights = scorer._weights.table[ids]
    assert weights == pytest.approx([np.log(3 / 2), 0])
    with (
        BERTScorer(tiny_bundle, idf=True) as scorer,
        pytest.raises(IdfError, match="hold the same tokens"),
    ):
        scorer.score(sents, sents)


def test_progress_ends_at_the_number_of_candidates(scorer, capsys):
    scorer.score([long_text(300), "a cat"], ["a cat", long_text(100)], verbose=True)
    assert "2/2" in capsys.readouterr().err


def test_a_maximum_without_room_for_words_is_refused(tiny_bundle):
    narrow = with_fields(open_bundle(tiny_bundle), max_length=2)
    with pytest.raises(InputError, match="truncate"):
        load_tokenizer(narrow, "window")


@pytest.mark.slow  # it imports PyTorch
def test_the_fast_tokenizer_gives_the_same_windows(fast_bundle, scorer):
    text = long_text(200)
    with BERTScorer(fast_bundle, use_fast_tokenizer=True, long_text="window") as fast:
        assert (
            np.abs(vectors_of(fast.encode([text]), 0) - vectors_of(scorer.encode([text]), 0)).max()
            < 1e-5
        )


@pytest.mark.slow
def test_very_long_texts_score_in_bounded_memory(scorer):
    text, other = long_text(12_000), long_text(12_000, seed=1)
    tracemalloc.start()
    try:
        scores = scorer.score([text, "a cat"], [other] * 2)
        all_scores = scorer.pairwise([text, "a cat"], [other])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300e6  # the similarities of all their tokens would take 1,600 MB
    assert all_scores.F[:, 0] == pytest.approx(scores.F, abs=1e-6)


def test_slices_of_long_texts_are_split(tiny_bundle, monkeypatch):
    seen, run = [], Encoder.run
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_BYTES", 4 * 32 * 1000)
    monkeypatch.setattr(
        Encoder, "run", lambda *args, **options: seen.append(run(*args, **options)) or seen[-1]
    )
    texts = [long_text(400, seed) for seed in range(20)]
    with BERTScorer(tiny_bundle, device="cpu", long_text="window") as scorer:
        assert np.isfinite(scorer.score(texts, texts[::-1]).F).all()
    # a quarter of each window overlaps
    assert max(table.lengths.sum() for table in seen) < (1000 + 2 * 402) / 0.75
    assert len(seen) > 4
