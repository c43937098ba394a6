import numpy as np
import pytest

from bertscore_onnx.bundle.opening import open_bundle
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.encoded_texts import EncodedTexts
from bertscore_onnx.scoring.chunks import DistinctTexts, Window, cut_chunks
from bertscore_onnx.scoring.inputs import Pairs, Texts
from bertscore_onnx.scoring.pipeline import load_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_bundle):
    return load_tokenizer(open_bundle(tiny_bundle))


def side(*items):
    """Texts of which an item is a string, or a list of several."""
    groups = [[item] if isinstance(item, str) else item for item in items]
    return Texts([text for group in groups for text in group], np.array([len(group) for group in groups]))


def slices(*pairs):
    return [Pairs(side(candidate), side(reference)) for candidate, reference in pairs]


def sizes(windows):
    return [window.num_candidates for window in windows]


def nothing_encoded():
    nothing = np.zeros(0, dtype=np.int64)
    return TokenEmbeddings(np.zeros((1, 0, 2), dtype=np.float32), nothing, nothing, nothing)


def test_equal_texts_share_a_row(tokenizer):
    assert DistinctTexts(tokenizer).add(["a cat", "a dog", "a cat"]).tolist() == [0, 1, 0]


def test_texts_of_equal_ids_share_a_row(tokenizer):
    texts = DistinctTexts(tokenizer)
    assert texts.add(["a cat", " a  cat\n"]).tolist() == [0, 0]
    assert len(texts.sequences) == 1


def test_rows_are_shared_with_texts_that_came_before(tokenizer):
    texts = DistinctTexts(tokenizer)
    texts.add(["a cat", "a dog"])
    assert texts.add(["the mat", "A dog", "a dog", "a cat "]).tolist() == [2, 1, 1, 0]
    assert [ids.tolist() for ids in texts.sequences] == [
        ids.tolist() for ids in tokenizer(["a cat", "a dog", "the mat"])[0]
    ]


def test_tokens_are_counted_once_for_each_row(tokenizer):
    texts = DistinctTexts(tokenizer)
    texts.add(["a cat", "a dog ran"])
    texts.add(["a cat"])
    assert texts.num_tokens == (2 + 2) + (3 + 2)


def test_texts_that_are_cut_are_counted_once(tokenizer):
    texts = DistinctTexts(tokenizer)
    texts.add(["cat " * 50, "a cat"])
    texts.add(["cat " * 50, "dog " * 50])
    assert texts.num_cut == 2


def test_a_window_is_full_by_candidates(tokenizer):
    pairs = slices(*[("a cat", "a cat")] * 7)
    assert sizes(cut_chunks(pairs, tokenizer, max_tokens=10_000, max_candidates=3)) == [3, 3, 1]


def test_a_window_is_full_by_tokens(tokenizer):
    different = slices(("a", "cat"), ("dog", "sat"), ("mat", "on"), ("sits", "ran"), ("red", "blue"))  # 6 tokens each
    assert sizes(cut_chunks(different, tokenizer, max_tokens=12, max_candidates=99)) == [2, 2, 1]


def test_texts_that_occur_again_do_not_fill_a_window(tokenizer):
    pairs = slices(*[("a cat", "a dog")] * 50)
    assert sizes(cut_chunks(pairs, tokenizer, max_tokens=10, max_candidates=99)) == [50]


def test_no_pairs_make_no_window(tokenizer):
    assert sizes(cut_chunks([], tokenizer, max_tokens=10, max_candidates=10)) == []


@pytest.mark.parametrize(("number", "expected"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1])])
def test_a_failure_comes_after_the_pairs_before_it(tokenizer, number, expected):
    def failing():
        yield from slices(*[("a cat", "a dog")] * number)
        raise OSError("no more")

    windows = cut_chunks(failing(), tokenizer, max_tokens=10_000, max_candidates=3)
    assert sizes(next(windows) for _ in expected) == expected
    with pytest.raises(OSError, match="no more"):
        next(windows)


def test_pairs_of_several_portions_are_joined(tokenizer):
    window = Window(tokenizer)
    window.add(Pairs(side("a cat", "a dog"), side(["the cat", "a cat"], "the dog")))
    window.add(Pairs(side("the cat"), side(["a dog", "a cat", "red"])))
    encoded = nothing_encoded()
    pairs, counts = window.joined(encoded)
    rows = {"a cat": 0, "a dog": 1, "the cat": 2, "the dog": 3, "red": 4}
    assert counts.tolist() == [2, 1, 3]
    assert pairs.candidate.tolist() == [rows[text] for text in ["a cat", "a cat", "a dog", *["the cat"] * 3]]
    assert pairs.reference.tolist() == [rows[text] for text in ["the cat", "a cat", "the dog", "a dog", "a cat", "red"]]
    assert pairs.candidates is pairs.references is encoded


def test_a_side_that_is_encoded_keeps_its_rows(tokenizer):
    handle = EncodedTexts(nothing_encoded(), np.array([4, 1]), np.array([1, 1]), "some model")
    window = Window(tokenizer)
    window.add(Pairs(side("a cat", "a dog"), handle))
    encoded = nothing_encoded()
    pairs, _ = window.joined(encoded)
    assert pairs.reference.tolist() == [4, 1]
    assert pairs.references is handle.embeddings
    assert pairs.candidates is encoded
    assert len(window.texts.sequences) == 2
