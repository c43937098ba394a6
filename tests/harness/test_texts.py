import pytest

from harness.texts import distinct_pairs, of_lengths, read_pairs, repeated, synthetic_pairs


def test_synthetic_pairs_are_the_same_each_time_and_differ_within():
    candidates, references = synthetic_pairs(200)
    assert (candidates, references) == synthetic_pairs(200)
    assert sum(candidate != reference for candidate, reference in zip(candidates, references, strict=True)) > 150
    lengths = sorted(len(text.split()) for text in references)
    assert 12 <= lengths[100] <= 20
    assert lengths[0] < 8
    assert lengths[-1] > 35


def test_streamed_texts_are_distinct_and_short():
    texts = [text for pair in distinct_pairs(3000) for text in pair]
    assert len(set(texts)) == 6000
    assert {len(text.split()) for text in texts} == set(range(3, 13))


def test_texts_are_joined_to_a_length():
    sizes = {"one": 1, "two": 1, "three": 2, "enormous": 3}
    made = of_lengths(["one two", "three enormous"], [12, 7], lambda words: [sizes[word] + 2 for word in words])
    assert made == ["one two three one two three one", "two three one"]  # 9 of 10 tokens, 4 of 5


def test_texts_without_short_words_cannot_be_joined_to_a_length():
    with pytest.raises(SystemExit, match="no words of one or two tokens"):
        of_lengths(["enormous"], [12], lambda words: [5 for _ in words])


def test_texts_go_round():
    assert repeated(["a", "b", "c"], 4, 2) == ["c", "a", "b", "c"]


def test_files_pair_up_by_line(tmp_path):
    (tmp_path / "c").write_text("one\n\nthree\n", encoding="utf-8")
    (tmp_path / "r").write_text("1\n2\n3", encoding="utf-8")
    assert read_pairs(tmp_path / "c", tmp_path / "r") == (["one", "", "three"], ["1", "2", "3"])
    (tmp_path / "r").write_text("1\n2", encoding="utf-8")
    with pytest.raises(SystemExit, match="3 lines"):
        read_pairs(tmp_path / "c", tmp_path / "r")
