import os
import re

import pytest

from bertscore_onnx.errors import InputError
from tests.support.token_similarity import stated_similarity

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from bertscore_onnx.similarity.drawing import draw_matches, plot_matches, save_drawing

FOUND = stated_similarity(
    ["[CLS]", "cold", "day"], ["[CLS]", "a", "freezing"], [[1, 0, 0], [0, 0.3, 0.75], [0, 0.6, 1]]
)


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")


def drawn(found):
    figure = Figure()
    draw_matches(found, figure)
    return figure.axes[0]


def labels(axes):
    return [
        [label.get_text() for label in side.get_ticklabels()] for side in (axes.yaxis, axes.xaxis)
    ]


def test_tokens_label_the_axes_and_numbers_fill_the_cells():
    axes = drawn(FOUND)
    assert labels(axes) == [["cold", "day"], ["a", "freezing"]]
    assert [text.get_text() for text in axes.texts] == ["0.300", "0.750", "0.600", "1.000"]
    assert [text.get_weight() for text in axes.texts] == ["normal", "bold", "bold", "bold"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "Reference (tokenized)",
        "Candidate (tokenized)",
    )
    assert axes.get_title() == "Similarity Matrix\nP 0.500, R 0.250, F 0.333"


def test_rescaled_similarities_and_weights_are_drawn():
    axes = drawn(stated_similarity(["a"], ["b"], [[0.9]], baseline=0.8))
    assert [text.get_text() for text in axes.texts] == ["0.500"]
    assert axes.get_title().startswith("Similarity Matrix (after Rescaling)\n")
    axes = drawn(stated_similarity(["a", "b"], ["c"], [[1], [0]], ([0.5, 0], [1.25])))
    assert labels(axes) == [["a · 0.50", "b · 0.00"], ["c · 1.25"]]
    assert axes.get_xlabel() == "Reference (tokenized, with weights)"


def test_large_drawings_have_no_numbers_or_are_refused():
    assert not drawn(stated_similarity(["a"] * 61, ["b"], [[0.5]] * 61)).texts
    with pytest.raises(InputError, match="1,001 tokens"):
        drawn(stated_similarity(["a"] * 1001, ["b"], [[0.5]] * 1001))


def test_text_in_an_svg_is_text_in_any_script(tmp_path):
    found = stated_similarity(["東", "<b>&$x$"], ["اليوم"], [[1], [0]])
    for name in ("a.svg", "b.SVG"):
        save_drawing(found, tmp_path / name)
    content = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert {"東", "&lt;b&gt;&amp;$x$", "اليوم"} <= set(
        re.findall(r">\s*([^<>\n]+?)\s*</text>", content)
    )
    assert content == (tmp_path / "b.SVG").read_text(encoding="utf-8")


def test_characters_that_no_font_has_are_warned_of(tmp_path):
    with pytest.warns(UserWarning, match="font") as caught:
        save_drawing(stated_similarity(["\U0001e900\ue123"], ["b"], [[1]]), tmp_path / "a.png")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("name", "written"), [("a", "a.png"), ("c.PDF", "c.PDF")])
def test_the_suffix_is_the_format(tmp_path, name, written):
    plot_matches(FOUND, tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [written]
    assert (tmp_path / written).read_bytes()[:4] in (b"\x89PNG", b"%PDF")


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match="docx"):
        plot_matches(FOUND, tmp_path / "a.docx")
    with pytest.raises(InputError, match=r"Cannot write .*a\.png"):
        save_drawing(FOUND, tmp_path / "missing" / "a.png")
    assert [*tmp_path.iterdir()] == []


def test_a_screen_shows_the_drawing(monkeypatch):
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf().axes[0].get_title()))
    plot_matches(FOUND)
    assert shown == []
    monkeypatch.setattr(plt, "get_backend", lambda: "QtAgg")
    plot_matches(FOUND)
    assert shown == ["Similarity Matrix\nP 0.500, R 0.250, F 0.333"]
    assert plt.get_fignums() == []


def test_a_scorer_draws_an_example(scorer, tmp_path):
    pair = ("the cat sat", "a dog sat on it")
    with scorer.with_idf(True) as weighted:
        for one in (scorer, weighted):  # neither has weights yet
            one.plot_example(*pair, fname=os.fspath(tmp_path / "a.svg"))
            assert ">sat</text>" in _joined(tmp_path / "a.svg")
        weighted.compute_idf(["a dog sat on it", "the cat sat", "the cat"])
        weighted.plot_example(*pair, tmp_path / "b.svg")
        scorer.score(["a cat"], [["the cat", "a dog"]])  # drawing closed nothing
    assert ">sat · 0.29</text>" in _joined(tmp_path / "b.svg")


def test_a_drawing_of_nothing_is_refused(scorer):
    with pytest.raises(InputError, match="token"):
        scorer.plot_example("", "a cat")


def _joined(file):
    """Return an SVG without the line ends around its texts."""
    return re.sub(r"\s*\n\s*", "", file.read_text(encoding="utf-8"))
