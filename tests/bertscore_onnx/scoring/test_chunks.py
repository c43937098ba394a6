import numpy as np
import pytest

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.embeddings import EncodedTexts, TokenEmbeddings
from bertscore_onnx.matching.weights import uniform
from bertscore_onnx.scoring.inputs import Pairs, Texts
from bertscore_onnx.scoring.pipeline import Chunk, Pipeline


@pytest.fixture(scope="module")
def pipeline(tiny_bundle):
    with Pipeline(open_bundle(tiny_bundle), device="cpu") as pipeline:
        yield pipeline


def side(*items):
    """Texts of which an item is a string, or a list of several."""
    groups = [[item] if isinstance(item, str) else item for item in items]
    return Texts([text for group in groups for text in group], np.array([len(group) for group in groups]))


def slices(*pairs):
    return [Pairs(side(candidate), side(reference)) for candidate, reference in pairs]


def chunk_of(pipeline, *slices):
    """Gather slices in one chunk."""
    chunk = Chunk()
    for pairs in slices:
        new = chunk.new_texts(pairs)
        chunk.add(pairs, new, *pipeline.tokenizer(new))
    return chunk


def rows(pipeline, *texts):
    """Return the rows of texts that come one after the other, as candidates."""
    chunk = chunk_of(pipeline, *(Pairs(side(text), side(texts[0])) for text in texts))
    return chunk.rows()[0].tolist()


def nothing_encoded():
    nothing = np.zeros(0, dtype=np.int64)
    return TokenEmbeddings([], nothing, np.zeros((1, 0, 2), dtype=np.float32), nothing)


def test_equal_texts_share_a_row(pipeline):
    assert rows(pipeline, "a cat", "a dog", "a cat") == [0, 1, 0]


def test_texts_of_equal_ids_share_a_row(pipeline):
    assert rows(pipeline, "a cat", " a  cat\n", "A cat", "the mat") == [0, 0, 0, 1]


def test_only_new_texts_are_tokenised(pipeline):
    chunk = chunk_of(pipeline, Pairs(side("a cat"), side("a dog")))
    assert chunk.new_texts(Pairs(side("a dog", "red"), side("red", "a cat"))) == ["red"]


def test_tokens_are_counted_once_for_each_row(pipeline):
    chunk = chunk_of(pipeline, Pairs(side("a cat"), side("a dog ran")), Pairs(side("a cat"), side("a cat ")))
    assert chunk.num_tokens == (2 + 2) + (3 + 2)


def test_texts_that_are_truncated_are_counted_once(pipeline):
    long = Pairs(side("cat " * 50), side("dog " * 50))
    assert chunk_of(pipeline, long, long).num_truncated == 2


def test_pairs_of_several_slices_are_joined(pipeline):
    chunk = chunk_of(
        pipeline,
        Pairs(side("a cat", "a dog"), side(["the cat", "a cat"], "the dog")),
        Pairs(side("the cat"), side(["a dog", "a cat", "red"])),
    )
    candidates, references = chunk.rows()
    rows = {"a cat": 0, "a dog": 1, "the cat": 2, "the dog": 3, "red": 4}
    assert chunk.counts.tolist() == [2, 1, 3]
    assert candidates.tolist() == [rows[text] for text in ["a cat", "a cat", "a dog", *["the cat"] * 3]]
    assert references.tolist() == [rows[text] for text in ["the cat", "a cat", "the dog", "a dog", "a cat", "red"]]


def test_a_side_that_is_encoded_keeps_its_rows(pipeline):
    encoded_side = EncodedTexts(nothing_encoded(), np.array([4, 1]), np.array([1, 1]), "some model")
    chunk = chunk_of(pipeline, Pairs(side("a cat", "a dog"), encoded_side))
    assert [rows.tolist() for rows in chunk.rows()] == [[0, 1], [4, 1]]
    assert len(chunk.sequences) == 2


@pytest.fixture
def chunk_sizes(pipeline, monkeypatch):
    """Return a function that scores pairs and returns how many candidates each chunk has."""

    def sizes(slices, *, max_tokens=10_000, max_candidates=99):
        monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", max_candidates)
        monkeypatch.setattr(pipeline, "_chunk_tokens", max_tokens)
        for scores, _ in pipeline.score(slices, uniform(pipeline.manifest)):
            yield scores.F.shape[1]

    return sizes


def test_a_chunk_is_full_by_candidates(chunk_sizes):
    assert [*chunk_sizes(slices(*[("a cat", "a cat")] * 7), max_candidates=3)] == [3, 3, 1]


def test_a_chunk_is_full_by_tokens(chunk_sizes):
    different = slices(("a", "cat"), ("dog", "sat"), ("mat", "on"), ("sits", "ran"), ("red", "blue"))  # 6 tokens each
    assert [*chunk_sizes(different, max_tokens=12)] == [2, 2, 1]


def test_texts_that_occur_again_do_not_fill_a_chunk(chunk_sizes):
    assert [*chunk_sizes(slices(*[("a cat", "a dog")] * 50), max_tokens=10)] == [50]


def test_no_pairs_make_no_chunk(chunk_sizes):
    assert [*chunk_sizes([])] == []


@pytest.mark.parametrize(("number", "expected"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1])])
def test_a_failure_comes_after_the_pairs_before_it(chunk_sizes, number, expected):
    def failing():
        yield from slices(*[("a cat", "a dog")] * number)
        raise OSError("no more")

    sizes = chunk_sizes(failing(), max_candidates=3)
    assert [next(sizes) for _ in expected] == expected
    with pytest.raises(OSError, match="no more"):
        next(sizes)
