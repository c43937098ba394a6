import pytest

from bertscore_onnx_evaluation.report.wording import sentence, visible


@pytest.mark.parametrize(
    ("text", "names", "shown"),
    [
        (
            "b-1 is worse than a: -0.5, p = 0.1",
            ["a", "b-1"],
            "<bdi>b-1</bdi> is worse than <bdi>a</bdi>: −0.5, p\xa0=\xa00.1",
        ),
        ("x -1 is not x's", ["x", "x -1"], "<bdi>x -1</bdi> is not <bdi>x</bdi>’s"),
        (
            "<b> & נגד, p < 0.05",
            ["<b>", "נגד"],
            "<bdi>&lt;b&gt;</bdi> &amp; <bdi>נגד</bdi>, p\xa0&lt;\xa00.05",
        ),
        ("95 % of", ["x"], "95\xa0% of"),
        ("a\x00 wins", ["a\x00"], "<bdi>a␀</bdi> wins"),
    ],
)
def test_names_in_a_sentence_are_elements_and_signs_typographic(text, names, shown):
    assert sentence(text, names) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京 👩‍👩‍👧", "plain é 東京 👩‍👩‍👧"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x00\x1b\x7f\r", "␀␛␡␍"),
        ("\x85\ud83d", "\ufffd\ufffd"),
    ],
)
def test_control_characters_become_visible(text, shown):
    assert visible(text) == shown
