"""Figures: what is drawn is what the result holds, and each format is written."""

from xml.etree import ElementTree

import numpy as np
import pytest

from bertscore_onnx_evaluation import compare, meta_evaluate, tune_layers
from bertscore_onnx_evaluation.report.figures import save_figure
from tests.evaluation.judged import judged

HEADERS = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(1)
    scores = {
        metric: {
            name: rng.normal(row * step, 1, 60) for row, name in enumerate(("base", "a_$b$", "c"))
        }
        for metric, step in (("comet", 0.7), ("ter", -0.1))
    }
    return compare(scores=scores, lower_is_better=["ter"])


def points(axes):
    """Return the values of the points, from the top to the bottom, and the ends of their
    intervals.
    """
    values = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    ends = [tuple(segment[:, 0]) for lines in axes.collections for segment in lines.get_segments()]
    return values, ends


def test_differences_are_drawn_with_their_intervals(comparison):
    panels = comparison.figure().axes
    assert len(panels) == 2
    for axes, metric in zip(panels, comparison.metrics, strict=True):
        systems = [metric.systems[row] for row in metric.ranked if row]
        values, ends = points(axes)
        assert values == [system.delta for system in systems]
        assert ends == [(system.delta_low, system.delta_high) for system in systems]
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            system.name for system in systems
        ]
        assert metric.title in axes.get_xlabel()


def test_agreement_is_drawn_with_its_intervals_and_the_best_sentinel():
    rng = np.random.default_rng(2)
    human = rng.normal(size=(5, 40))
    metrics = {
        name: human + rng.normal(0, noise, human.shape) for name, noise in (("x", 1), ("y", 4))
    }
    evaluation = meta_evaluate([judged(human, metrics)], permutations=20, sentinels=True)
    [pair], panels = evaluation.language_pairs, evaluation.figure().axes
    for axes, (level, name) in zip(panels, (("segment", "acc_eq"), ("system", "spa")), strict=True):
        measures = [getattr(metric, level)[name] for metric in pair.metrics]
        assert points(axes) == (
            [one.value for one in measures],
            [(one.low, one.high) for one in measures],
        )
        lines = [line for line in axes.lines if line.get_linestyle() == "--"]
        values = [(getattr(one, level)[name].value or 0, one.name) for one in pair.sentinels]
        value, best = max(values)
        assert [line.get_xdata()[0] for line in lines] == [value]
        assert axes.get_legend() is None
        assert best in axes.get_title(loc="right")


def test_the_curve_of_layers_has_its_band_and_best_layer(all_layers_scorer):
    rng = np.random.default_rng(3)
    texts = [
        [" ".join(rng.choice(["a", "cat", "dog", "the"], 5)) for _ in range(40)] for _ in range(2)
    ]
    tuning = tune_layers(all_layers_scorer, *texts, rng.normal(size=40), num_resamples=50)
    [axes] = tuning.figure().axes
    curve, best = axes.lines
    assert [*curve.get_ydata()] == [layer.f1.pearson for layer in tuning.layers]
    assert [*best.get_xdata(), *best.get_ydata()] == [tuning.best_layer, tuning.best_pearson]
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert {layer.f1.low for layer in tuning.layers} | {
        layer.f1.high for layer in tuning.layers
    } <= {*band}
    [few] = tuning.warnings
    assert few.startswith("40 judgements of ")
    [caption] = tuning.figure().texts
    assert few in " ".join(caption.get_text().split())
    assert tuning.to_dict()["warnings"] == [few]
    assert tuning.table("tsv").count(few) == len(tuning.layers)


def test_a_caption_has_the_correction_and_any_name_is_valid_in_svg(tmp_path):
    scores = {
        name: np.random.default_rng(row).normal(size=60)
        for row, name in enumerate(("base", "a\x0b\x00", "[b"))
    }
    found = compare(scores=scores, all_pairs=True, by=["x"] * 30 + ["y"] * 30)
    figure = found.figure()
    panels = [axes.get_xlabel().partition(": ")[0] for axes in figure.axes]
    assert panels == ["score", "score, x", "score, y", "score, mean of the groups"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][-1].count(
        ", rank 1-3"
    ) == 1
    caption = " ".join(figure.get_supxlabel().split())
    assert "Filled if p < 0.05: paired permutation test" in caption
    assert "after Holm's correction for 3 comparisons" in caption
    assert "; 60 segments." in caption
    save_figure(found, str(tmp_path / "figure.svg"))
    drawing = ElementTree.fromstring((tmp_path / "figure.svg").read_bytes())  # noqa: S314 -- ours
    assert "[b" in " ".join(drawing.itertext())


@pytest.mark.parametrize("suffix", HEADERS)
def test_a_figure_is_written_in_each_format_beside_the_result(run, write, tmp_path, suffix):
    rows = "".join(f"{n},{n % 7},{n % 5},0.{n % 9}\n" for n in range(40))
    table, file = write("scores.csv", "segment,a,b,c\n" + rows), tmp_path / f"figure{suffix}"
    command = ("compare", "--scores", table, "--systems", "a", "b", "c", "--figure", file)
    assert run(*command).exit_code == 0
    first = file.read_bytes()
    assert first.startswith(HEADERS[suffix])
    run(*command)
    assert file.read_bytes() == first


def test_a_notebook_shows_the_figure(comparison):
    assert comparison.figure()._repr_png_().startswith(HEADERS[".png"])


def test_an_unknown_format_is_refused_before_the_work(refused, write):
    table = write("scores.csv", "segment,a,b\n1,1,2\n")
    message = refused(
        "compare", "--scores", table, "--systems", "a", "b", "--figure", "figure.docx"
    )
    assert ".pdf, .svg or .png" in message


def test_matplotlib_that_is_missing_is_named_with_its_extra(comparison, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"plot"):
        comparison.figure()
