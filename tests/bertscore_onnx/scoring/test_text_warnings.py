import pytest

from bertscore_onnx.scoring.inputs import TextStats

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
