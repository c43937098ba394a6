import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation import baselines as pairs
from bertscore_onnx.evaluation.baselines import draw_pairs, short_texts

TEXTS = [f"text {number}" for number in range(21)]


def test_texts_are_stripped_and_have_fewer_words_than_the_bound():
    lines = [" one two\n", "", "  ", "one two three", "one  two", "一二三四五六"]
    assert short_texts(lines, max_words=3) == ["one two", "一二三四五六"]
    assert short_texts(["w " * 31, "w " * 32]) == [("w " * 31).strip()]


def test_lines_beyond_the_first_million_are_not_read(monkeypatch):
    monkeypatch.setattr(pairs, "MAX_LINES", 3)
    lines = iter(["", "a", "b", "c"])
    assert short_texts(lines) == ["a", "b"]
    assert list(lines) == ["c"]


def test_pairs_are_those_that_bert_score_draws_after_the_same_seed():
    np.random.seed(7)
    samples = np.random.choice(range(len(TEXTS)), size=(2, len(TEXTS) // 2), replace=False)
    assert draw_pairs(TEXTS, None, 7) == [(TEXTS[one], TEXTS[other]) for one, other in samples.T]


def test_no_text_is_drawn_twice_and_fewer_pairs_are_the_first_of_them():
    drawn = draw_pairs(TEXTS, None, 1)
    assert len({text for pair in drawn for text in pair}) == 20
    assert draw_pairs(TEXTS, 4, 1) == drawn[:4]
    assert draw_pairs(TEXTS, None, 2) != drawn


def test_the_draw_leaves_the_callers_generator_alone():
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    draw_pairs(TEXTS, None, 7)
    assert np.random.random() == expected


@pytest.mark.parametrize(
    ("texts", "num_pairs", "seed", "message"),
    [
        (TEXTS[:3], None, 0, "3 of the texts are short enough and not blank; expected 4 or more"),
        ([], None, 0, "0 of the texts are short"),
        (TEXTS, 11, 0, "11 pairs were asked for, and 21 texts make 10 at most"),
        (TEXTS, 1, 0, "num_pairs is 1; expected 2 or more"),
        (TEXTS, None, -1, "seed is -1"),
        (TEXTS, None, 2**32, "seed is 4294967296"),
    ],
)
def test_what_cannot_be_drawn_is_refused(texts, num_pairs, seed, message):
    with pytest.raises(InputError, match=message):
        draw_pairs(texts, num_pairs, seed)


def test_a_bound_without_words_is_refused():
    with pytest.raises(InputError, match="max_words is 1"):
        short_texts(TEXTS, 1)
