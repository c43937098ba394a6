"""Chooses the baseline to rescale with: the bundle's for a language, or a file of the user's."""

import csv
import hashlib
import math
from collections.abc import Sequence
from dataclasses import astuple
from os import PathLike
from pathlib import Path

import numpy as np

from bertscore_onnx.bundle.baseline import Baseline, rescale
from bertscore_onnx.bundle.opening import Manifest
from bertscore_onnx.errors import BaselineError, InputError
from bertscore_onnx.scores import Scores

_COLUMNS = ("LAYER", "P", "R", "F")


def choose_baselines(
    manifest: Manifest,
    precision: str,
    wanted: bool,
    lang: str | None,
    path: str | PathLike[str] | None,
    *,
    allow_fp32: bool = False,
) -> tuple[list[Baseline] | None, str]:
    """Return the baseline of each layer to rescale with, and its name in the signature.

    Args:
        manifest: the bundle's, which holds the baselines of its layers, computed in fp32.
        precision: the arithmetic of the scores.
        wanted: whether to rescale at all.
        lang: the language whose baseline to take.
        path: a baseline file to take instead.
        allow_fp32: whether the bundle's baselines may rescale scores of another precision.

    Raises:
        BaselineError: there is no such baseline, or it was computed in another precision.
        InputError: the file cannot be read.
    """
    if not wanted:
        return None, "no"
    if path is not None:
        baselines = [read_baseline_file(path, layer) for layer in manifest.layers]
        return baselines, "file-" + hashlib.sha256(repr(baselines).encode()).hexdigest()[:12]
    known = ", ".join(sorted(manifest.baselines)) or "none"
    if lang is None:
        raise BaselineError(
            f"Rescaling needs the language, `lang`, or a file, `baseline_path`. {manifest.model_id} at layer "
            f"{manifest.num_layers} has baselines for: {known}."
        )
    if lang.lower() not in manifest.baselines:
        raise BaselineError(
            f"{manifest.model_id} at layer {manifest.num_layers} has no baseline for {lang!r}, only for: {known}. "
            "Give a file of your own with `baseline_path`, or leave rescaling off."
        )
    if precision != "fp32" and not allow_fp32:
        raise BaselineError(
            f"The baselines of {manifest.model_id} were computed in fp32, and these scores are computed in "
            f"{precision}. Pass allow_fp32_baseline=True (--allow-fp32-baseline) to use them all the same, give a file "
            "of your own with `baseline_path`, or score in fp32."
        )
    return manifest.baselines[lang.lower()], lang.lower()


def rescale_layers(scores: Scores, baselines: Sequence[Baseline]) -> Scores:
    """Rescale scores, (layers, candidates) or (layers, cands, refs), with the baseline of each layer."""
    per_layer = (len(baselines), *[1] * (scores.F.ndim - 1))
    precision, recall, f1 = (np.reshape(column, per_layer) for column in zip(*map(astuple, baselines), strict=True))
    return Scores(rescale(scores.P, precision), rescale(scores.R, recall), rescale(scores.F, f1), scores.best_reference)


def read_baseline_file(path: str | PathLike[str], num_layers: int) -> Baseline:
    """Read the row of one layer.

    Args:
        path: a comma-separated file with the columns LAYER, P, R and F.
        num_layers: the layer whose row is wanted.

    Raises:
        BaselineError: the file has no row for this layer.
        InputError: the file cannot be read, or its figures are not numbers below 1.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"Cannot read the baseline file {path}: {error}") from error
    try:
        table = {int(row["LAYER"]): Baseline(float(row["P"]), float(row["R"]), float(row["F"])) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The baseline file {path} is not in the expected form: a header {','.join(_COLUMNS)}, then one row of "
            f"numbers a layer ({error!r})."
        ) from error
    if num_layers not in table:
        layers = ", ".join(map(str, sorted(table))) or "none"
        raise BaselineError(f"The baseline file {path} has no row for layer {num_layers}; it has: {layers}.")
    baseline = table[num_layers]
    if not all(math.isfinite(b) and b < 1 for b in (baseline.precision, baseline.recall, baseline.f1)):
        raise InputError(f"The baseline file {path} holds {baseline} for layer {num_layers}; each must be below 1.")
    return baseline
