"""One model on one set of human judgements: `tune-layers`, and `meta` and the speed at the best
layer.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.store import Precision, TokenizerMode
from bertscore_onnx.errors import BertScoreOnnxError, InputError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.whole_table import read_table
from bertscore_onnx_evaluation.cli.judgements import systems_of_table
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.layers import pairs_into_one_language, tune_layers
from bertscore_onnx_evaluation.metric_scores import BERTSCORE, MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Measure, average, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from harness.processes import peak_memory
from reproduce.encoder_page import MEAN, MEASURES, Best, Value, kendall
from reproduce.eval_set import golds, read_eval_set

SPEED_PAIRS, SPEED_ROUNDS = 300, 3

FAST = "--tokenizer-mode fast"
"""The advice of an export that needs the fast tokenizer."""


class Part(NamedTuple):
    """The part of a folder of judgements that is in use."""

    language_pair: str
    gold: str
    reference: str


@dataclass(frozen=True)
class JudgementSet:
    """Human judgements of one or more language pairs, or the reason why there are none."""

    title: str
    origin: str
    """Where it comes from, in words."""
    language_pairs: tuple[JudgedSystems, ...] = ()
    left_out: tuple[str, ...] = ()
    """The language pairs that are not used, each with the reason."""
    reason: str = ""

    @property
    def has_documents(self) -> bool:
        """Whether the documents of all segments are known."""
        return all(one.documents for one in self.language_pairs)


def read_set(title: str, origin: str, path: str, part: Part | None = None) -> JudgementSet:
    """Read judgements as `meta` does: a part, or all language pairs into the most common target
    language.
    """
    try:
        if not Path(path).exists():
            raise InputError(f"{path} is no file or folder")
        judged = _read(path, part)
    except BertScoreOnnxError as error:
        return JudgementSet(title, origin, reason=str(error).replace(path, Path(path).name))
    chosen = pairs_into_one_language(one.language_pair for one in judged)
    reasons = {one.language_pair: _unusable(one, chosen) for one in judged}
    used = tuple(one for one in judged if not reasons[one.language_pair])
    left_out = tuple(f"{name} ({reason})" for name, reason in reasons.items() if reason)
    return JudgementSet(
        title,
        origin,
        used,
        left_out,
        "" if used else f"no usable judgements: {', '.join(left_out)}",
    )


def _read(path: str, part: Part | None) -> list[JudgedSystems]:
    if part:
        language_pair, gold, reference = part
        judged = [
            read_eval_set(
                path, language_pair, gold=gold, reference=reference, with_texts=True
            ).judged()
        ]
    elif Path(path).is_dir():
        judged = [read_eval_set(path, name, with_texts=True).judged() for name in golds(path)]
    else:
        # so that the texts are read
        options = MetaOptions(source=path, settings={"model_type": "any"})
        judged = systems_of_table(read_table(path), options)
    return [replace(one, metrics={}) for one in judged]


def _unusable(judged: JudgedSystems, chosen: Sequence[str]) -> str:
    """Return why a language pair cannot be used; empty if it can."""
    if judged.language_pair not in chosen:
        return "another target language"
    return (
        "no judgements of segments"
        if np.isnan(judged.human_segment).all() or judged.candidates is None
        else ""
    )


class Output(NamedTuple):
    """A judged output: its place, its texts, and what `tune-layers` reads of it."""

    cell: tuple[int, int]  # system and segment
    candidate: str
    references: tuple[str, ...]
    human: float
    language_pair: str
    unit: str


def judged_outputs(judged: JudgedSystems) -> list[Output]:
    """Return the judged outputs, those of a segment side by side."""
    candidates, units = judged.candidates or (), judged.documents or judged.segments
    human = np.asarray(judged.human_segment)
    found = []
    for segment, system in np.argwhere(~np.isnan(human).T).tolist():
        texts = candidates[system][segment] or "", judged.references[system][segment]
        found.append(
            Output(
                (system, segment),
                *texts,
                human[system, segment],
                judged.language_pair,
                units[segment],
            )
        )
    return found


# These functions run in child processes.


def export_bundle(
    source: str, name: str, precision: Precision, num_layers: int | None, output: Path, offline: str
) -> None:
    """Export a model at a layer, or with all of them for None."""
    os.environ["HF_HUB_OFFLINE"] = offline  # before anything imports huggingface_hub
    from bertscore_onnx_export.pipeline import export_model

    depth: dict[str, Any] = (
        {"all_layers": True} if num_layers is None else {"num_layers": num_layers}
    )
    depth["name"] = name if Path(source).is_dir() else None
    modes: tuple[TokenizerMode, ...] = ("slow", "fast")
    for mode in modes:
        try:
            export_model(source, precision=precision, tokenizer_mode=mode, output=output, **depth)
            return
        except BertScoreOnnxError as error:
            if mode == modes[-1] or FAST not in str(error):
                raise


def correlate_layers(bundle: Path, judgements: JudgementSet, device: str) -> dict[str, Any]:
    """Return what `tune-layers --format json` prints."""
    with BERTScorer(bundle, all_layers=True, device=device) as scorer:
        outputs = [one for judged in judgements.language_pairs for one in judged_outputs(judged)]
        _, candidates, references, human, language_pairs, units = zip(*outputs, strict=True)
        return tune_layers(
            scorer, candidates, references, human, language_pairs, units=units
        ).to_dict()


def measure_best(
    bundle: Path, tuning: Mapping[str, Any], judgements: JudgementSet, device: str
) -> Best:
    """Measure the speed at the best layer, and correlate its scores as `meta` does."""
    is_cut = not read_manifest(bundle).all_layers
    layer = None if is_cut else tuning["best_layer"]
    scored = []
    with BERTScorer(bundle, device=device, num_layers=layer) as scorer:
        used = [
            one
            for one in judgements.language_pairs
            if not tuning["language_pairs"][one.language_pair]["left_out"]
        ]
        outputs = [judged_outputs(one) for one in used]
        pairs = [[(one.candidate, one.references) for one in of_pair] for of_pair in outputs]
        sample = [
            pair
            for of_pair in pairs
            for pair in of_pair[:: max(1, len(of_pair) * len(used) // SPEED_PAIRS)]
        ]
        seconds = []
        for _ in range(1 + SPEED_ROUNDS):  # the first one warms up
            begin = time.perf_counter()
            for _ in scorer.stream(sample):
                pass
            seconds.append(time.perf_counter() - begin)
        peak = peak_memory()
        for one, of_one, of_pair in zip(used, outputs, pairs, strict=True):
            f1 = np.full((len(one.systems), len(one.segments)), np.nan)
            for output, score in zip(of_one, scorer.stream(of_pair), strict=True):
                f1[output.cell] = score.F
            scored.append(replace(one, metrics={BERTSCORE: MetricScores(mean_by_system(f1), f1)}))
    return Best(
        is_cut,
        len(sample) / float(np.median(seconds[1:])),
        peak,
        sum(file.stat().st_size for file in bundle.iterdir()) / 1e6,
        _correlated(scored),
    )


def _correlated(judged: Sequence[JudgedSystems]) -> dict[str, dict[str, Value]]:
    """Return the measures of one metric by language pair, and their means; τ_b has no interval."""
    found = meta_evaluate(judged, sentinels=False)
    values: dict[str, dict[str, Value]] = {}
    taus = []
    for one, result in zip(judged, found.language_pairs, strict=True):
        [metric] = result.metrics
        measures: dict[str, Measure] = {}
        for level in (metric.system, metric.segment):  # r is that of outputs
            measures |= level.measures
        [scores] = one.metrics.values()
        measures["kendall"] = kendall(one.human_segment.ravel(), scores.segment.ravel())
        taus.append(measures["kendall"])
        values[result.language_pair] = {
            name: _value(measures[name]) for name in MEASURES if name in measures
        }
    [mean] = found.means
    means = {**mean.measures, "kendall": average(taus)}
    return values | {MEAN: {name: _value(means[name]) for name in MEASURES}}


def _value(measure: Measure) -> Value:
    return Value(measure.value, measure.low, measure.high)
