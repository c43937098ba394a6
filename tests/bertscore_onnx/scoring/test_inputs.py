from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.scoring.inputs import TextStats, collect_pairs, collect_texts, read_pairs


def laid_out(side):
    """Return the texts of a side, and how many each item has."""
    return side.texts, side.counts.tolist()


def test_single_references_make_one_pair_each():
    pairs = collect_pairs(["a", "b"], ["x", "y"])
    assert laid_out(pairs.candidates) == (["a", "b"], [1, 1])
    assert laid_out(pairs.references) == (["x", "y"], [1, 1])


def test_a_candidate_is_paired_with_each_of_its_references():
    pairs = collect_pairs(["a", "b"], [["x", "y"], ["z"]])
    assert laid_out(pairs.candidates) == (["a", "b"], [1, 1])
    assert laid_out(pairs.references) == (["x", "y", "z"], [2, 1])


def test_single_and_several_references_may_be_mixed():
    assert laid_out(collect_pairs(["a", "b"], ["x", ("y", "z")]).references) == (["x", "y", "z"], [1, 2])


def test_numpy_strings_become_plain_strings():
    texts = collect_texts(np.array(["a", "b"]), "cands")
    assert [type(text) for text in texts] == [str, str]


def test_generators_are_accepted():
    pairs = collect_pairs((text for text in "ab"), (iter([text]) for text in "xy"))
    assert (pairs.candidates.texts, pairs.references.texts) == (["a", "b"], ["x", "y"])


def test_nothing_pairs_with_nothing():
    assert laid_out(collect_pairs([], []).candidates) == ([], [])


def test_different_lengths_are_refused():
    with pytest.raises(InputError, match="2 candidates and references for 1"):
        collect_pairs(["a", "b"], ["x"])


def test_a_candidate_without_references_is_refused():
    with pytest.raises(InputError, match=r"refs\[1\] is empty"):
        collect_pairs(["a", "b"], [["x"], []])


@pytest.mark.parametrize("missing", [None, 3, 2.5, float("nan"), b"text", ["text"]])
def test_what_is_no_string_is_refused_by_its_place(missing):
    with pytest.raises(InputTypeError, match=r"cands\[1\] is "):
        collect_pairs(["a", missing], ["x", "y"])


def test_a_wrong_reference_is_refused_by_its_place():
    with pytest.raises(InputTypeError, match=r"refs\[0\]\[1\] is NoneType None"):
        collect_pairs(["a"], [["x", None]])


@pytest.mark.parametrize("single", ["one text", b"bytes", 3, None, {"a": 1}, {"a"}, Path("texts.txt")])
def test_anything_but_a_list_of_texts_is_refused(single):
    with pytest.raises(InputTypeError, match="expected a list of strings"):
        collect_pairs(single, ["x"])


def test_the_name_of_a_file_in_place_of_texts_is_recognised(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("a\n")
    with pytest.raises(InputTypeError, match="It names a file: read its lines first"):
        collect_pairs(str(file), ["x"])
    with pytest.raises(InputTypeError, match="It names a file: read its lines first"):
        collect_pairs([file], ["x"])


def test_long_values_are_shortened_in_messages():
    with pytest.raises(InputTypeError) as caught:
        collect_pairs("x" * 10_000, ["x"])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["with\0nul", "x" * 1_000_000, "\ud800"])
def test_a_strange_single_text_is_still_refused_in_words(text):
    with pytest.raises(InputTypeError, match="Put a single text into a list"):
        collect_pairs(text, ["x"])


def test_slices_hold_the_pairs_in_their_order(monkeypatch):
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 2)
    pairs = collect_pairs(["a", "b", "c", "d", "e"], [["u"], ["v", "w"], ["x"], ["y"], ["z", "z"]])
    slices = list(pairs.slices())
    assert [laid_out(part.candidates) for part in slices] == [
        (["a", "b"], [1, 1]),
        (["c", "d"], [1, 1]),
        (["e"], [1]),
    ]
    assert [laid_out(part.references) for part in slices] == [
        (["u", "v", "w"], [1, 2]),
        (["x", "y"], [1, 1]),
        (["z", "z"], [2]),
    ]


def test_pairs_are_read_some_at_a_time(monkeypatch):
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 2)
    slices = list(read_pairs([("a", "x"), ["b", ("y", "z")], ("c", iter(["u"]))]))
    assert [laid_out(part.candidates) for part in slices] == [(["a", "b"], [1, 1]), (["c"], [1])]
    assert [laid_out(part.references) for part in slices] == [(["x", "y", "z"], [1, 2]), (["u"], [1])]


def test_a_wrong_pair_comes_after_those_before_it():
    slices = read_pairs([("a", "x"), ("b", "y"), ("c", None)])
    assert laid_out(next(slices).candidates) == (["a", "b"], [1, 1])
    with pytest.raises(InputTypeError, match=r"pairs\[2\]\[1\] is NoneType None"):
        next(slices)


TRUNCATED = (
    "longer than 512 tokens and truncated, as bert-score does silently. What is beyond does not count; with "
    'long_text="window" it does.'
)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (TextStats(empty=1), "1 pair scores 0 because a side is empty."),
        (TextStats(empty=2), "2 pairs score 0 because a side is empty."),
        (TextStats(zero_weight=1), "1 pair scores 0 because every token of a side weighs 0."),
        (TextStats(zero_weight=7), "7 pairs score 0 because every token of a side weighs 0."),
        (TextStats(truncated=1), f"1 text is {TRUNCATED}"),
        (TextStats(truncated=3), f"3 texts are {TRUNCATED}"),
    ],
)
def test_each_kind_is_told_with_its_number(counts, message):
    with pytest.warns(UserWarning, match=" ") as caught:
        counts.warn(512, stacklevel=1)
    assert [str(warning.message) for warning in caught] == [message]


def test_each_kind_that_happened_is_told_once():
    assert len([*TextStats(empty=1, zero_weight=2, truncated=3).messages(32)]) == 3


def test_what_did_not_happen_is_not_told():
    assert not [*TextStats().messages(512)]


def test_counts_of_parts_add_up():
    assert TextStats(1, 2, 3) + TextStats(10, 20, 30) == TextStats(11, 22, 33)


def test_the_line_of_the_caller_is_named():
    def library():
        TextStats(empty=1).warn(512, stacklevel=2)

    with pytest.warns(UserWarning, match="1 pair") as caught:
        library()
    assert (caught[0].filename, caught[0].lineno) == (__file__, library.__code__.co_firstlineno + 4)
