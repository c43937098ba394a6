from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.tables import table
from bertscore_onnx_evaluation.systems.verdicts import (
    MetricResult,
    SystemResult,
    equals,
    fixed,
    headline,
    p_value,
    signed,
    verdict,
)
from tests.support.comparisons import comparison_of, metric_result


def metric(delta, p, *, name="bertscore", segments=100, counts=(60, 30, 10)):
    """Return a metric of a baseline `base` and a system `new`."""
    base = SystemResult("base", 0.5)
    scale = 100 if name == "ter" else 1
    won, lost, tied = counts
    new = SystemResult(
        "new",
        0.5 + delta,
        delta=delta,
        delta_low=delta - 0.02 * scale,
        delta_high=delta + 0.03 * scale,
        p=p,
        p_holm=p,
        won=won,
        lost=lost,
        tied=tied,
        differing=won + lost,
    )
    units = segments, "segment"
    return MetricResult(
        name, "signature", name == "ter", (base, new), (), np.zeros((2, segments)), units=units
    )


@pytest.mark.parametrize(
    ("found", "name", "sentence"),
    [
        (metric(0.01, 0.001), "better", "is better than base: @, p = .0010."),
        (metric(-0.01, 0.049), "worse", "is worse than base: @, p = .0490."),
        (metric(0.01, 0.05), "unclear", "does not differ significantly from base: @, p = .0500."),
        (metric(-0.01, 0.4), "unclear", "does not differ significantly from base: @, p = .4000."),
        (metric(-1.5, 0.00001, name="ter"), "better", "is better than base: @, p < .0001."),
        (metric(1.5, 0.01, name="ter"), "worse", "is worse than base: @, p = .0100."),
        (metric(0.0, 0.001), "same", "has the same score as base."),
        (
            metric(0.2, 0.001, segments=1),
            "unclear",
            "does not differ significantly from base: @, p = .0010.",
        ),
    ],
)
def test_a_difference_is_read_by_its_p_and_its_direction(found, name, sentence):
    read, new = verdict(found, found.systems[1], "base"), found.systems[1]
    delta, low, high = (
        signed(value, found) for value in (new.delta, new.delta_low, new.delta_high)
    )
    assert (read.name, read.sentence) == (
        name,
        sentence.replace("@", f"{delta}, 95 % interval {low} to {high}"),
    )
    assert verdict(found, found.systems[0], "base") is None


@pytest.mark.parametrize(
    ("differing", "remark"), [(19, "Only 19 of 100 segments differ"), (20, "")]
)
def test_an_interval_is_relied_on_from_20_units_that_differ(differing, remark):
    found = metric(0.01, 0.001, counts=(differing, 0, 100 - differing))
    assert verdict(found, found.systems[1], "base").remarks.partition(",")[0] == remark


def test_holms_p_decides_between_several_systems():
    found = metric(0.01, 0.02)
    new = replace(found.systems[1], p_holm=0.06)
    found = replace(found, systems=(found.systems[0], new, replace(new, name="newer", score=0.505)))
    reading = verdict(found, new, "base")
    assert headline(found).startswith("new scores best: not significantly better than base")
    assert reading.name == "unclear"
    assert "p = .0200 (.0600 with Holm's correction)" in reading.sentence


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (0.01234, "bertscore", "+0.0123"),
        (-0.01234, "bertscore", "-0.0123"),
        (0.00004, "bertscore", "0.0000"),
        (-0.00004, "bertscore", "0.0000"),
        (0, "ter", "0.00"),
        (10, "ter", "+10.00"),
    ],
)
def test_a_difference_has_a_sign_unless_it_is_rounded_to_zero(value, name, text):
    assert signed(value, metric(0, 1, name=name)) == text


def test_numbers_have_their_decimals():
    assert [fixed(-0.0, 1), fixed(-1.25, 1), fixed(100, 0)] == ["0.0", "-1.2", "100"]
    assert [p_value(0.000999), p_value(1), p_value(0.00001)] == [".0010", "1.0000", "<.0001"]
    assert [table.p_value(3, 0.05)(p) for p in (0.0495, 0.04995, 0.0504)] == [
        *(".0495", ".04995", ".0504")
    ]
    for p in np.random.default_rng(7).normal(0.05, 0.001, 200).clip(0, 1).tolist():
        assert (float(table.p_value(3, 0.05)(p)) < 0.05) == (p < 0.05)
    assert [equals(0.02), equals(0.00001)] == ["= .0200", "< .0001"]


@pytest.mark.parametrize(
    ("loss", "gain", "sentence"),
    [
        (
            0.0336,
            0.05,
            "Up to 0.0336 worse than base is not excluded: failures may be too rare to show in "
            "100 segments@.",
        ),
        (
            0.0200001,
            0.05,
            "Up to 0.0200001 worse than base is not excluded: failures may be too rare to show "
            "in 100 segments@.",
        ),
        (0.0097, 0.05, "At most 0.0097 worse than base, less than 0.0200@."),
        (-0.01, 0.05, "At least 0.0100 better than base@."),
        (
            0.0097,
            0.015,
            "Equivalent to base within 0.0200: at most 0.0097 worse and at most 0.0150 better@.",
        ),
        (
            -0.001,
            0.015,
            "Equivalent to base within 0.0200: at least 0.0010 and at most 0.0150 better@.",
        ),
        (
            0.015,
            -0.001,
            "Equivalent to base within 0.0200: at least 0.0010 and at most 0.0150 worse@.",
        ),
        (0.3, -0.021, "At least 0.0210 worse than base, more than 0.0200@."),
    ],
)
def test_a_margin_is_answered(loss, gain, sentence):
    found = replace(metric(0.01, 0.4), margin=0.02)
    judged = {"not_worse": loss < 0.02, "equivalent": max(loss, gain) < 0.02}
    new = replace(found.systems[1], largest_loss=loss, largest_gain=gain, **judged)
    level = " (97.5 %, Gaffke's bound, if all scores are from 0 to 1)"
    level = level.replace("%", "% each").replace("bound", "bounds") if new.equivalent else level
    assert verdict(found, new, "base").sentence.partition(", p = .4000. ")[2] == sentence.replace(
        "@", level
    )
    assert len(f"new: {sentence.replace('@', level)}") <= 2 * 80


@pytest.mark.parametrize(
    ("idf", "rescale", "precision", "more", "settings"),
    [
        ("no", "no", "fp32", "", ""),
        ("no", "en", "fp32", "", "rescaled"),
        ("3fd1", "no", "int8", "", "idf, int8"),
        ("no", "no", "fp32", "|matching:doc-bert-score+context", "doc-bert-score+context"),
    ],
)
def test_the_heading_names_settings_and_the_caption_the_model(
    idf, rescale, precision, more, settings
):
    fields = f"idf:{idf}|rescale:{rescale}|long_text:truncate|precision:{precision}{more}"
    signature = f"bertscore-onnx|model:roberta-large|layer:17|{fields}"
    scores = np.random.default_rng(0).random((2, 30))
    metrics = [metric_result("bertscore", ["a", "b"], scores, signature=signature)]
    found = comparison_of(metrics, [["x"] * 30] * 2, [["x"]] * 30)
    heading = "BERTScore F1" + f" ({settings})" * bool(settings)
    rows, caption = found.table("latex").split(r"\caption{")
    assert f"    {heading} & score" in rows
    details = f"{settings}; " * bool(settings) + "roberta-large, layer 17"
    assert caption.startswith(f"BERTScore F1 ({details}) of 2 systems.")
    for output in (found.table(), found.to_html(), found._repr_html_(), found.methods):
        assert heading in output
