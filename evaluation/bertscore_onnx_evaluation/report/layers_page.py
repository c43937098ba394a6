"""The correlations of layers as a page, and as a fragment for notebooks; and what they mean, in sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bertscore_onnx.tables.table import number
from bertscore_onnx_evaluation.layers import MIN_JUDGEMENTS, LayerCorrelation, LayerResult, LayerTuning
from bertscore_onnx_evaluation.report.charts import Drawing, Estimate, Scale, curve, dots_and_bars, scale_over
from bertscore_onnx_evaluation.report.page import Cell, cell, render
from bertscore_onnx_evaluation.systems.corpus_scores import MIN_UNITS
from bertscore_onnx_evaluation.systems.power import SIGNIFICANT

SCORES = {"f1": "F", "precision": "P", "recall": "R"}
"""The scores, the one that the choice goes by first."""

_CONSTANT = "the scores are constant in a language pair"
_write = number(4)


def conclusion(tuning: LayerTuning) -> list[str]:
    """Return which layer is best, which may be as good, and how far to trust its correlation, in sentences."""
    sentences = [f"Layer {tuning.best_layer} correlates best with human judgements.", _others(tuning)]
    if tuning.optimism is not None:
        is_subtracted = tuning.best_pearson < (tuning.best.f1.pearson or 0.0)
        luck = "after subtracting the gain" if is_subtracted else "including the gain"
        sentences.append(
            f"Its r is {_write(tuning.best_pearson)}, {luck} from being chosen on these judgements, about "
            f"{_write(tuning.optimism)}; judge it on others."
        )
    return sentences


def _others(tuning: LayerTuning) -> str:
    """Describe the loss of the layers that are not significantly worse."""
    if all(layer.p is None for layer in tuning.layers):
        return "There are too few judgements to test the others."
    if not tuning.not_worse:
        return f"All others are significantly worse (p below {SIGNIFICANT})."
    layers = (layer for layer in tuning.layers if layer.layer in tuning.not_worse)
    losses = (f"layer {one.layer} has r lower by {_write(one.loss)}, at most {_write(one.loss_high)}" for one in layers)
    bound = "At most: at 95 %, for a layer named beforehand."
    return f"Perhaps as good (p of {SIGNIFICANT} or more): {'; '.join(losses)}. {bound}"


def cautions(tuning: LayerTuning) -> list[str]:
    """Return what is wrong with the judgements: pairs left out, too few of them, or reversed ones."""
    found = [f"{name} is left out of all means: {reason}." for name, reason in tuning.left_out.items()]
    judged, units = (
        sum(n for name, n in counts.items() if name not in tuning.left_out)
        for counts in (tuning.language_pairs, tuning.units)
    )
    if judged < MIN_JUDGEMENTS or units < MIN_UNITS:
        found.append(
            f"{judged} judgements of {units} references, segments or documents are few. Below {MIN_JUDGEMENTS} and "
            f"{MIN_UNITS}, the best layer is largely luck, and intervals are too narrow."
        )
    if all(layer.f1.pearson is None or layer.f1.pearson < 0 for layer in tuning.layers):
        found.append("F correlates negatively with the judgements at every layer. Are higher judgements better?")
    return found


def report_html(tuning: LayerTuning) -> str:
    """Return a page about the choice of a layer; every number on it, but those of axes, is in the JSON.

    The same result gives the same bytes. Raises MissingExtraError unless Jinja is installed.
    """
    names = [name for name in tuning.language_pairs if name not in tuning.left_out]
    return render(
        "layers.html",
        {},
        tuning=tuning,
        conclusion=conclusion(tuning),
        warnings=cautions(tuning),
        curves=_curves(tuning),
        rows=_rows(tuning),
        scores=SCORES,
        pairs=names if len(names) > 1 else [],
        by_pair=[
            (one.layer, [_optional(one.f1.language_pairs[name], _CONSTANT) for name in names]) for one in tuning.layers
        ],
        significant=SIGNIFICANT,
    )


def notebook_html(tuning: LayerTuning) -> str:
    """Return one table with the correlation of F drawn, as HTML whose styles hold for itself alone."""
    estimates = [_estimate(str(one.layer), one.f1, "") for one in tuning.layers]
    best = tuning.best.f1.pearson
    chart = dots_and_bars(estimates, "F", _write, [] if best is None else [("zero", best)])
    return render(
        "layers_notebook.html", {}, tuning=tuning, rows=[*zip(_rows(tuning), chart.rows, strict=True)], scores=SCORES
    )


def _estimate(name: str, correlation: LayerCorrelation, style: str) -> Estimate:
    missing = "" if correlation.pearson is not None else _CONSTANT
    return Estimate(name, correlation.pearson, correlation.low, correlation.high, missing, style)


def _rows(tuning: LayerTuning) -> list[dict[str, Any]]:
    """Return a row of the table for each layer."""
    return [
        {
            "layer": one.layer,
            "is_best": one.layer == tuning.best_layer,
            "cells": [
                cell(each.pearson, each.low, each.high, _write, _CONSTANT)
                for each in (getattr(one, score) for score in SCORES)
            ],
            "loss": _optional(one.loss),
            "loss_high": _optional(one.loss_high),
            "p": number(3)(one.p) if one.p is not None else "best" if one.layer == tuning.best_layer else "–",
        }
        for one in tuning.layers
    ]


def _optional(value: float | None, reason: str = "") -> Cell:
    return cell(value, None, None, _write, reason)


# Curves: those of further matchings stand below those of the first.


def _curves(tuning: LayerTuning) -> list[tuple[str, list[tuple[str, Drawing]]]]:
    """Return for each matching its name and the curves of the scores, all on one scale; some have no curve."""
    correlations = [getattr(one, score) for one in tuning.layers for score in SCORES]
    known = [one for one in correlations if one.pearson is not None]
    scale = scale_over(end for one in known for end in (one.low, one.pearson, one.high) if end is not None)
    return [
        (matching, [(title, _curve(layers, tuning, score, title, scale)) for score, title in SCORES.items()])
        for matching, layers in _by_matching(tuning).items()
    ]


def _by_matching(tuning: LayerTuning) -> Mapping[str, Sequence[tuple[str, LayerResult]]]:
    """Return the layers of each matching, under their own names."""
    own = re.search(r"\|matching:([^|]+)", tuning.signature)
    found: dict[str, list[tuple[str, LayerResult]]] = {}
    for one in tuning.layers:
        layer, _, matching = str(one.layer).partition(" by ")
        found.setdefault(matching or (own[1] if own else "bertscore"), []).append((layer, one))
    return found


def _curve(
    layers: Iterable[tuple[str, LayerResult]], tuning: LayerTuning, score: str, title: str, scale: Scale
) -> Drawing:
    estimates = []
    for name, one in layers:
        is_tied = score == "f1" and one.layer in tuning.not_worse
        style = "best" if one.layer == tuning.best_layer else "tied" if is_tied else ""
        estimates.append(_estimate(name, getattr(one, score), style))
    known = [(one.value, one.name) for one in estimates if one.value is not None]
    if not known:
        return Drawing("", f"{title} has no correlation at any layer: {_CONSTANT}")
    value, layer = max(known)
    return curve(estimates, scale, f"{title} by layer, highest at {layer} with {_write(value)}")
