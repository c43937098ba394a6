"""The page of an evaluation of layers, and its fragment for notebooks."""

import re
from dataclasses import replace

import pytest

from tests.support.html_tree import rows_of, section, text_of, tree_of

from .conftest import tuning


def curves_of(result):
    return [one for one in tree_of(result.to_html()).iter("svg") if one.get("class") == "curves"]


def circles(drawing):
    """Return the class of each mark, from left to right."""
    marks = sorted(drawing.iter("circle"), key=lambda one: float(one.get("cx")))
    return [one.get("class") for one in marks]


def test_the_table_has_every_layer():
    result = tuning()
    table, by_pair = [rows_of(one) for one in tree_of(result.to_html()).iter("table")]
    assert table[0] == ["Layer", "F", "P", "R", "Lower by", "At most", "p"]
    for row, layer in zip(table[1:], result.layers, strict=True):
        cells = [
            f"{one.pearson:.4f} {one.low:.4f} to {one.high:.4f}" for one in (layer.f1, layer.precision, layer.recall)
        ]
        p = "best" if layer.layer == result.best_layer else f"{layer.p:.3f}"
        assert row == [str(layer.layer), *cells, f"{layer.loss:.4f}", f"{layer.loss_high:.4f}", p]
    assert by_pair[0] == ["Layer", "cs-en", "de-en"]
    assert by_pair[3][1:] == [f"{result.layers[2].f1.language_pairs[name]:.4f}" for name in ("cs-en", "de-en")]


def test_the_best_layer_and_those_as_good_are_marked():
    result = tuning()
    expected = [
        "best" if one.layer == result.best_layer else "tied" if one.layer in result.not_worse else ""
        for one in result.layers
    ]
    assert {*expected} == {"best", "tied", ""}
    f1, *others = curves_of(result)
    assert circles(f1) == expected
    for one in others:
        assert circles(one) == ["best" if style == "best" else "" for style in expected]
    label = f"F. F by layer, highest at {result.best_layer} with {result.best.f1.pearson:.4f}."
    assert f1.get("aria-label") == label


def test_curves_of_all_scores_and_matchings_share_one_scale():
    result = tuning((*range(5), *(f"{row} by code-bert-score" for row in range(5)), "1+3 by layers=1+3"))
    page = tree_of(result.to_html())
    assert [text_of(one) for one in page.iter("h3")] == ["bertscore", "code-bert-score", "layers=1+3"]
    drawings = curves_of(result)
    assert [len([*one.iter("circle")]) for one in drawings] == [5, 5, 5, 5, 5, 5, 1, 1, 1]
    layers = [layer for group in (result.layers[:5], result.layers[5:10], result.layers[10:]) for layer in [group]]
    places, values = [], []
    for at, drawing in enumerate(drawings):
        score = ("f1", "precision", "recall")[at % 3]
        marks = sorted(drawing.iter("circle"), key=lambda one: float(one.get("cx")))
        places += [float(one.get("cy")) for one in marks]
        values += [getattr(layer, score).pearson for layer in layers[at // 3]]
    (slope, start), span = linear(values, places), max(values) - min(values)
    assert slope < 0
    assert [start + slope * value for value in values] == pytest.approx(
        places, abs=0.11
    )  # places are rounded to tenths
    assert span > 0.1
    own = replace(result, signature="bertscore-onnx|model:tiny|matching:exclude=special|version:0.1.0").to_html()
    assert next(text_of(one) for one in tree_of(own).iter("h3")) == "exclude=special"


def linear(values, places):
    """Return the slope and the start of the line through the extreme values."""
    low, high = values.index(min(values)), values.index(max(values))
    slope = (places[high] - places[low]) / (values[high] - values[low])
    return slope, places[low] - slope * values[low]


def test_missing_values_and_intervals_are_left_out_with_a_reason():
    result = tuning(missing=[0, 3], has_resamples=False)
    page = tree_of(result.to_html())
    table = next(page.iter("table"))
    assert rows_of(table)[1] == ["0", "–", "–", "–", "–", "–", "–"]
    assert {one.get("title") for one in table.iter("abbr")} > {"the scores are constant in a language pair"}
    assert [len([*one.iter("circle")]) for one in curves_of(result)] == [5, 5, 5]
    assert not [one for one in page.iter("path") if one.get("class") == "band"]
    assert "There are too few judgements to test the others." in text_of(next(page.iter("header")))


def test_the_head_has_the_conclusion_the_judgements_and_what_is_wrong_with_them():
    result = tuning()
    head = text_of(next(tree_of(result.to_html()).iter("header")))
    assert f"Layer {result.best_layer} correlates best with human judgements. Perhaps as good" in head
    assert f"Its r is {result.best_pearson:.4f}, including the gain from being chosen on these" in head
    assert "cs-en 560 (112 units), de-en 1,400 (280 units)" in head
    assert "fi-en is left out of all means: there is one judgement." in head
    few = replace(result, language_pairs=dict.fromkeys(result.language_pairs, 40))
    assert "80 judgements of 392 references, segments or documents are few." in few.to_html()


def test_the_command_can_be_copied():
    page = tree_of(tuning().to_html())
    assert text_of(section(page, "export")) == tuning().export_command
    [button] = page.iter("button")
    assert button.get("data-of") == "export"


def test_a_notebook_shows_each_layer_with_its_interval():
    result = tuning(missing=[3])
    [table] = tree_of(result._repr_html_()).iter("table")
    rows = rows_of(table)
    assert rows[0] == ["Layer", "F, 95 % interval", "F", "P", "R", "Lower by", "At most", "p"]
    third = result.layers[2]
    assert rows[3][2:5] == [f"{one.pearson:.4f}" for one in (third.f1, third.precision, third.recall)]
    assert [len([*row.iter("svg")]) for row in table.iter("tr")] == [0, 1, 1, 1, 0, 1, 1, 1]
    labels = [one.get("aria-label") for one in table.iter("svg")]
    assert re.fullmatch(r"Layer 2\. F 0\.\d{4}, 95 % interval 0\.\d{4} to 0\.\d{4}\.", labels[2])
