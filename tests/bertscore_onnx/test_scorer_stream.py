"""`BERTScorer.stream`."""

import itertools
import threading
import time

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, Score
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.errors import ClosedError, InputError, InputTypeError
from bertscore_onnx.text.texts import TextInContext
from tests.support.scores import CANDIDATES, REFERENCES

PAIRS = list(itertools.product(CANDIDATES, REFERENCES))  # 9 pairs: two chunks and a part of one
pytestmark = pytest.mark.usefixtures("small_chunks")


def scores_of(scorer, pairs):
    return [scorer.score([candidate], [reference]).F[0] for candidate, reference in pairs]


@pytest.mark.parametrize("is_rescaled", [False, True])
def test_gives_the_scores_of_score_in_their_order(tiny_bundle, baseline_path, is_rescaled):
    options = {"rescale_with_baseline": True, "baseline_path": baseline_path} if is_rescaled else {}
    with BERTScorer(tiny_bundle, **options) as scorer:
        expected = scorer.score(*zip(*PAIRS, strict=True))
        streamed = list(scorer.stream(PAIRS))
        assert list(scorer.stream([])) == []
    assert all(type(score) is Score for score in streamed)
    assert np.abs(np.transpose(streamed) - np.stack(expected)).max() <= 1e-6


def test_reads_at_most_a_chunk_ahead(scorer):
    read = 0

    def endless():
        nonlocal read
        for pair in itertools.cycle(PAIRS):
            read += 1
            yield pair

    stream = scorer.stream(endless())
    assert read == 0
    for position, score in enumerate(itertools.islice(stream, 21)):
        [expected] = scores_of(scorer, [PAIRS[position % 9]])
        assert abs(score.F - expected) <= 1e-6
        assert read <= (position // 4 + 2) * 4
    stream.close()


@pytest.mark.parametrize("max_seconds", [None, 0.05])
def test_a_slow_model_gets_few_pairs_at_a_time(scorer, monkeypatch, max_seconds):
    sizes = []
    original = Encoder.run

    def run_slowly(self, texts, *vectors, **options):
        sizes.append(int(texts.lengths.sum()))
        time.sleep(sizes[-1] / 1000)
        return original(self, texts, *vectors, **options)

    words = [" ".join(pair) for pair in itertools.product(" ".join(CANDIDATES).split(), repeat=2)]
    pairs = list(zip(words, words[::-1], strict=True))
    expected = list(scorer.stream(pairs))
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 1024)
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.FIRST_TOKENS", 8)
    monkeypatch.setattr(Encoder, "run", run_slowly)
    assert list(scorer.stream(pairs, max_seconds=max_seconds)) == expected
    longest = max(len(row) for row in words)
    assert (max(sizes) <= 50 + 4 * longest) == (max_seconds is not None)


@pytest.mark.parametrize("wrong_at", [0, 3, 4, 9, 10])
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (("a cat", None), InputTypeError, r"pairs\[{}\]\[1\] is NoneType None"),
        ((3, "a cat"), InputTypeError, r"pairs\[{}\]\[0\] is int 3"),
        (("a cat", []), InputError, r"pairs\[{}\]\[1\] is empty"),
        ("ab", InputTypeError, r"pairs\[{}\] is str 'ab'"),
        (("a", "b", "c"), InputTypeError, r"pairs\[{}\] is tuple \('a', 'b', 'c'\)"),
    ],
)
def test_a_wrong_pair_is_named_after_the_scores_before_it(scorer, wrong_at, wrong, kind, message):
    right = (PAIRS * 2)[:wrong_at]
    stream = scorer.stream([*right, wrong, *PAIRS])
    found = [score.F for score in itertools.islice(stream, wrong_at)]
    assert found == pytest.approx(scores_of(scorer, right), abs=1e-6)
    with pytest.raises(kind, match=message.format(wrong_at)):
        next(stream)


@pytest.mark.parametrize("fails_at", [0, 3, 4, 9])
def test_an_error_of_the_iterable_comes_after_earlier_scores(scorer, fails_at):
    def failing():
        yield from PAIRS[:fails_at]
        raise OSError("the disk is gone")

    stream = scorer.stream(failing())
    found = [score.F for score in itertools.islice(stream, fails_at)]
    assert found == pytest.approx(scores_of(scorer, PAIRS[:fails_at]), abs=1e-6)
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)


def test_who_stops_early_ends_the_work(tiny_bundle, monkeypatch):
    runs, may_go, run_batch = [], threading.Event(), Encoder.run_batch
    threads_before = {*threading.enumerate()}

    def run(encoder, *batch):
        runs.append(batch)
        assert len(runs) <= 6 or may_go.wait(60)  # the first chunk has as many
        run_batch(encoder, *batch)

    monkeypatch.setattr(Encoder, "run_batch", run)
    with BERTScorer(tiny_bundle, device="cpu", nthreads=2) as scorer:
        stream = scorer.stream(itertools.cycle(PAIRS), batch_size=1)
        next(stream)
        stream.close()
        may_go.set()
    for thread in {*threading.enumerate()} - threads_before:
        thread.join(60)
    assert len(runs) <= 8


def test_a_stream_of_a_closed_scorer_says_so(tiny_bundle):
    scorer = BERTScorer(tiny_bundle)
    stream = scorer.stream(itertools.cycle(PAIRS))
    next(stream)
    scorer.close()
    with pytest.raises(ClosedError, match="was closed"):
        list(stream)


def test_one_warning_at_the_end_counts_for_all_chunks(scorer):
    pairs = [*PAIRS, ("cat " * 50, "a cat"), *PAIRS, ("", "a cat"), ("", "dog " * 50)]
    with pytest.warns(UserWarning, match="2 pairs|2 texts") as caught:
        list(scorer.stream(pairs))
    assert [str(warning.message) for warning in caught] == [
        "2 pairs score 0 because a side is empty.",
        "2 texts are longer than 32 tokens and truncated, as bert-score does silently. The rest "
        "does not count; with "
        'long_text="window" it does.',
    ]
    assert {warning.filename for warning in caught} == {__file__}


def test_the_progress_bar_counts_pairs(scorer, capsys):
    list(scorer.stream(PAIRS, verbose=True))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "9/9" in captured.err
    list(scorer.stream(iter(PAIRS), verbose=True))
    assert "9 candidates" in capsys.readouterr().err


def put(text, context):
    return text if context is None else TextInContext(text, context)


@pytest.mark.parametrize("idf", [False, True])
def test_pairs_may_have_contexts(tiny_bundle, idf):
    contexts = ["it was red", ["a tree", "is it"], None] * 3
    with BERTScorer(tiny_bundle, device="cpu", matching="doc-bert-score", idf=idf) as scorer:
        expected = scorer.score(*zip(*PAIRS, strict=True), contexts=contexts)
        pairs = [
            (put(cand, one), put(ref, one))
            for (cand, ref), one in zip(PAIRS, contexts, strict=True)
        ]
        assert [one.F for one in scorer.stream(pairs)] == pytest.approx(expected.F, abs=1e-6)
