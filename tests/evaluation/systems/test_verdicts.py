import re
from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx_evaluation import table
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
    ("fields", "settings"),
    [
        ("idf:no|rescale:no|precision:fp32", ""),
        ("idf:3fd1|rescale:en|precision:int8", "rescaled, idf, int8"),
        ("idf:no|rescale:no|matching:doc-bert-score+context", "doc-bert-score+context"),
    ],
)
def test_the_heading_names_settings_and_the_caption_the_model(fields, settings):
    signature = f"bertscore-onnx|model:roberta-large|layer:17|{fields}"
    scores = np.random.default_rng(0).random((2, 30))
    metrics = [metric_result("bertscore", ["a", "b"], scores, signature=signature)]
    found = comparison_of(metrics, [["x"] * 30] * 2, [["x"]] * 30)
    heading = f"BERTScore F1 ({settings})".removesuffix(" ()")
    details = f"{settings}; roberta-large, layer 17".removeprefix("; ")
    assert rf"\caption{{BERTScore F1 ({details}) of 2 systems." in found.table("latex")
    for output in (found.table("latex"), found.table(), found.to_html(), found._repr_html_()):
        assert heading in output


@pytest.mark.parametrize("p", [0.0495, 0.04995, 0.0504])
def test_no_p_looks_like_the_level_in_any_output(p):
    scores = np.random.default_rng(0).random((2, 30))
    result = metric_result("bertscore", ["a", "b"], scores)
    changed = replace(result.systems[1], p=p, p_holm=p)
    result = replace(result, systems=(result.systems[0], changed))
    found = comparison_of([result], [["x"] * 30] * 2, [["x"]] * 30)
    shown = f"{p}".removeprefix("0")
    for output in (found.table(), found.table("latex"), found.to_html(), found._repr_html_()):
        assert re.search(rf"{re.escape(shown)}(?!\d)", output)
        assert not re.search(r"(?<!\d)\.0500?(?!\d)", output)
    assert f"p = {shown}" in found.to_dict()["systems"][1]["metrics"]["bertscore"]["verdict"]
