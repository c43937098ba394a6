from contextlib import nullcontext

import numpy as np
import pytest

from bertscore_onnx.errors import InputTypeError
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
        pytest.param(
            iter("ab"), (iter([text]) for text in "xy"), (["x", "y"], [1, 1]), id="generators"
        ),
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


CHARACTERS = "".join(map(chr, range(0x4E00, 0x4E40)))


@pytest.mark.parametrize(
    ("in_both", "in_sets", "is_warned"),
    [(0, 10, False), (0, 11, True), (22, 11, False), (22, 12, True)],
)
def test_an_order_is_doubted_from_half_as_many_trigrams_again_and_five_for_each_candidate(
    in_both, in_sets, is_warned
):
    """The first candidate shares trigrams with a reference that is its own in both orders, and in
    sacreBLEU's alone.
    """
    both, sets = CHARACTERS[: in_both + 2 if in_both else 0], CHARACTERS[30 : 32 + in_sets]
    with pytest.warns(UserWarning, match="sacreBLEU") if is_warned else nullcontext():
        collect_pairs([CHARACTERS, "b"], [[both, "x"], [sets, "y"]])


@pytest.mark.parametrize(("number", "is_warned"), [(16, True), (17, False)])
def test_the_order_of_many_references_is_not_doubted(number, is_warned):
    texts = [3 * character for character in CHARACTERS[:number]]
    with pytest.warns(UserWarning, match="sacreBLEU") if is_warned else nullcontext():
        collect_pairs(texts, [texts] * number)
