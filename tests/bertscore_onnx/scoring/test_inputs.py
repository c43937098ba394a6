import numpy as np
import pytest

from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.scoring.chunks import TextStats
from bertscore_onnx.scoring.inputs import collect_pairs


def layout(side):
    """Return the texts of a side, and how many each item has."""
    return side.texts, side.counts.tolist()


@pytest.mark.parametrize(
    ("candidates", "references", "laid_out"),
    [
        pytest.param(["a", "b"], ["x", "y"], (["x", "y"], [1, 1]), id="one each"),
        pytest.param(["a", "b"], [["x", "y"], ["z"]], (["x", "y", "z"], [2, 1]), id="several"),
        pytest.param(["a", "b"], ["x", ("y", "z")], (["x", "y", "z"], [1, 2]), id="mixed"),
        pytest.param(iter("ab"), (iter([text]) for text in "xy"), (["x", "y"], [1, 1]), id="generators"),
        pytest.param(np.array(["a", "b"]), np.array(["x", "y"]), (["x", "y"], [1, 1]), id="numpy"),
        pytest.param([], [], ([], []), id="nothing"),
    ],
)
def test_a_candidate_is_paired_with_each_of_its_references(candidates, references, laid_out):
    pairs = collect_pairs(candidates, references)
    number = len(laid_out[1])
    assert layout(pairs.candidates) == (["a", "b"][:number], [1] * number)
    assert layout(pairs.references) == laid_out
    assert {*map(type, pairs.candidates.texts)} <= {str}


@pytest.mark.parametrize("text", ["with\0nul", "x" * 1_000_000, "\ud800"])
def test_a_strange_single_text_is_still_refused_in_words(text):
    with pytest.raises(InputTypeError, match="Put a single text into a list") as caught:
        collect_pairs(text, ["x"])
    assert len(str(caught.value)) < 300


TRUNCATED = (
    "longer than 512 tokens and truncated, as bert-score does silently. The rest does not count; with "
    'long_text="window" it does.'
)


@pytest.mark.parametrize(
    ("counts", "messages"),
    [
        (TextStats(), []),
        (TextStats(empty=1), ["1 pair scores 0 because a side is empty."]),
        (TextStats(zero_weight=1), ["1 pair scores 0 because every token of a side weighs 0."]),
        (TextStats(truncated=1), [f"1 text is {TRUNCATED}"]),
        (
            TextStats(empty=2, zero_weight=7, truncated=3),
            [
                "2 pairs score 0 because a side is empty.",
                "7 pairs score 0 because every token of a side weighs 0.",
                f"3 texts are {TRUNCATED}",
            ],
        ),
    ],
)
def test_each_kind_of_problem_is_warned_of_once_with_its_count(recwarn, counts, messages):
    counts.warn(512, stacklevel=1)
    assert [str(warning.message) for warning in recwarn] == messages
    assert {warning.category for warning in recwarn} <= {UserWarning}
