"""One model on one set of human judgements: the correlation of every layer, the test of the best one, and its speed."""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.encoder_page import MEAN, MEASURES, Best, Loss, Record, Speed, Value
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.store import Precision, TokenizerMode
from bertscore_onnx.cli.meta_options import MetaOptions
from bertscore_onnx.cli.meta_table import systems_of_table
from bertscore_onnx.errors import BertScoreOnnxError, InputError
from bertscore_onnx.evaluation.correlation import Floats, Measure, mean_by_system
from bertscore_onnx.evaluation.eval_set import EvalSet, read_eval_set
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.evaluation.layers import (
    loss_bounds,
    optimism,
    p_values,
    pairs_into_one_language,
    resampled_pearson,
    why_unusable,
)
from bertscore_onnx.evaluation.meta import meta_evaluate
from bertscore_onnx.evaluation.metrics import BERTSCORE, MetricScores, preceding_sentences
from bertscore_onnx.evaluation.power import SIGNIFICANT
from bertscore_onnx.evaluation.significance import NUM_RESAMPLES, SEED
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scoring.inputs import Pair
from bertscore_onnx.tables.whole_table import read_table
from bertscore_onnx.text.texts import in_context
from harness.processes import peak_memory

SPEED_PAIRS, SPEED_ROUNDS, SPEED_SECONDS = 300, 3, 60.0
CONTEXT, CONTEXT_SENTENCES = "doc-bert-score", 2
"""The preset that reads preceding sentences, and how many."""

FAST = "--tokenizer-mode fast"
"""The advice of an export that needs the fast tokenizer."""

Cells = list[tuple[int, int]]


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

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that is scored and correlated, which every model and variant asks for."""
        digest = hashlib.sha256()
        for one in self.language_pairs:
            digest.update(
                repr((one.language_pair, one.segments, one.documents, one.candidates, one.references)).encode()
            )
            digest.update(np.asarray(one.human_segment).tobytes())
        return digest.hexdigest()

    def sample(self, preset: str) -> list[Pair]:
        """Return some pairs, spread over the language pairs, to measure speed with."""
        number = -(-SPEED_PAIRS // len(self.language_pairs))
        cells = [(one, judged_cells(one)) for one in self.language_pairs]
        return [pair for one, of in cells for pair in texts(one, of[:: max(1, len(of) // number)][:number], preset)]


def read_set(title: str, origin: str, path: str, num_segments: int | None, part: Part | None = None) -> JudgementSet:
    """Read judgements as `meta` does: a part, or all language pairs into the most common target language."""
    try:
        if not Path(path).exists():
            raise InputError(f"{path} is no file or folder")
        judged = _read(path, part)
    except BertScoreOnnxError as error:
        return JudgementSet(title, origin, reason=str(error).replace(path, Path(path).name))
    chosen = pairs_into_one_language(one.language_pair for one in judged)
    reasons = {one.language_pair: _unusable(one, chosen) for one in judged}
    used = tuple(_limited(one, num_segments) for one in judged if not reasons[one.language_pair])
    left_out = tuple(f"{name} ({reason})" for name, reason in reasons.items() if reason)
    return JudgementSet(title, origin, used, left_out, "" if used else f"no usable judgements: {', '.join(left_out)}")


def _read(path: str, part: Part | None) -> list[JudgedSystems]:
    if part:
        judged = [
            read_eval_set(EvalSet(path), part.language_pair, gold=part.gold, reference=part.reference, with_texts=True)
        ]
    elif Path(path).is_dir():
        eval_set = EvalSet(path)
        judged = [read_eval_set(eval_set, name, with_texts=True) for name in eval_set.language_pairs]
    else:
        options = MetaOptions(source=path, settings={"model_type": "any"})  # so that the texts are read
        judged = systems_of_table(read_table(path), options, several_judgements=True)
    return [replace(one, metrics={}) for one in judged]


def _unusable(judged: JudgedSystems, chosen: Sequence[str]) -> str:
    """Return why a language pair cannot be used; empty if it can."""
    if judged.language_pair not in chosen:
        return "another target language"
    if judged.human_segment is None or judged.candidates is None:
        return "no judgements of segments"
    return why_unusable(judged.human_segment.ravel())


def _limited(judged: JudgedSystems, most: int | None) -> JudgedSystems:
    """Return the judgements of documents drawn at random until they have this many segments."""
    human = np.asarray(judged.human_segment)
    if most is None:
        return judged
    is_judged = ~np.isnan(human).all(axis=0)
    units = judged.unit_numbers(is_judged)
    order = np.random.default_rng(SEED).permutation(units.max() + 1)
    counts = np.cumsum(np.bincount(units)[order])
    is_chosen = is_judged.copy()
    is_chosen[is_judged] = np.isin(units, order[: np.searchsorted(counts, most) + 1])
    human = np.where(is_chosen, human, np.nan)
    return replace(judged, human_segment=human, human_system=mean_by_system(human))


def judged_cells(judged: JudgedSystems) -> Cells:
    """Return the system and the segment of each judged output; those of a segment are side by side."""
    segments, systems = np.nonzero(~np.isnan(np.asarray(judged.human_segment)).T)
    return list(zip(systems.tolist(), segments.tolist(), strict=True))


def texts(judged: JudgedSystems, cells: Cells, preset: str) -> list[Pair]:
    """Return candidates with their references, and their contexts if the preset reads any."""
    candidates = judged.candidates or ()
    before = None
    if preset == CONTEXT:
        if not judged.documents:
            raise InputError(
                f"{preset} reads the sentences before a segment in its document, and there are no documents."
            )
        before = preceding_sentences(judged.references[0], judged.documents, CONTEXT_SENTENCES)
    pairs: list[Pair] = []
    for system, segment in cells:
        context = None if before is None else before[segment] or None
        output, *references = in_context(
            [candidates[system][segment] or "", *judged.references[system][segment]], context, "context"
        )
        pairs.append((output, references))
    return pairs


# These functions run in child processes.


def export_bundle(
    source: str, name: str, precision: Precision, num_layers: int | None, output: Path, offline: str
) -> str:
    """Export a model at a layer, or with all of them for None; return the reason if that is not possible."""
    os.environ["HF_HUB_OFFLINE"] = offline  # before anything imports huggingface_hub
    from bertscore_onnx_export.pipeline import export_model

    depth: dict[str, Any] = {"all_layers": True} if num_layers is None else {"num_layers": num_layers}
    depth["name"] = name if Path(source).is_dir() else None
    modes: tuple[TokenizerMode, ...] = ("slow", "fast")
    reason = FAST
    for mode in modes:
        if FAST in reason:
            try:
                export_model(source, precision=precision, tokenizer_mode=mode, output=output, **depth)
                reason = ""
            except BertScoreOnnxError as error:
                reason = str(error)
    return reason


def correlate_layers(bundle: Path, judgements: JudgementSet, preset: str, device: str) -> Record:
    """Score a set at every layer, correlate each with the judgements, and test which is best."""
    manifest = read_manifest(bundle)
    with BERTScorer(bundle, all_layers=True, device=device, matching=preset) as scorer:
        scores = [_scores(one, scorer, preset) for one in judgements.language_pairs]
    judged = judgements.language_pairs
    layers = [_correlated(judged, [of_pair[layer] for of_pair in scores]) for layer in range(len(manifest.layers))]
    return Record(
        judgements.title,
        origin=judgements.origin,
        tokenizer=manifest.tokenizer_mode,
        max_length=manifest.max_length,
        left_out=judgements.left_out,
        counts={one.language_pair: _counts(one) for one in judged},
        has_documents=all(one.documents for one in judged),
        layers=layers,
        best=_best(judged, scores, layers),
    )


def measure_speed(bundle: Path, layer: int, preset: str, sample: Sequence[Pair], device: str) -> Speed:
    """Score pairs at a layer, several times; the rate is that of the median."""
    is_cut = not read_manifest(bundle).all_layers
    chosen = None if is_cut else layer
    seconds: list[float] = []
    with BERTScorer(bundle, device=device, matching=preset, num_layers=chosen) as scorer:
        for _ in scorer.stream(sample[:32]):
            pass  # warming up
        while len(seconds) < SPEED_ROUNDS and sum(seconds) < SPEED_SECONDS:
            started = time.perf_counter()
            for _ in scorer.stream(sample):
                pass
            seconds.append(time.perf_counter() - started)
    size = sum(file.stat().st_size for file in bundle.iterdir()) / 1e6
    return Speed(is_cut, len(sample), len(sample) / float(np.median(seconds)), peak_memory(), size)


def _scores(judged: JudgedSystems, scorer: BERTScorer, preset: str) -> NDArray[np.float64]:
    """Return F of the judged outputs, (layers, systems, segments), NaN elsewhere."""
    cells = judged_cells(judged)
    pairs = texts(judged, cells, preset)
    f1 = np.full((len(scorer.manifest.layers), len(judged.systems), len(judged.segments)), np.nan)
    for (system, segment), score in zip(cells, scorer.stream(pairs), strict=True):
        f1[:, system, segment] = score.F
    return f1


def _correlated(judged: Sequence[JudgedSystems], f1: Sequence[Floats]) -> dict[str, dict[str, Value]]:
    """Return the measures of one layer by language pair, and their means."""
    scores = [{BERTSCORE: MetricScores(mean_by_system(of_pair), of_pair)} for of_pair in f1]
    found = meta_evaluate([replace(one, metrics=metrics) for one, metrics in zip(judged, scores, strict=True)])
    values: dict[str, dict[str, Value]] = {}
    for one in found.language_pairs:
        [metric] = one.metrics
        measures: Mapping[str, Measure] = {
            **(metric.segment.measures if metric.segment else {}),
            **({"spa": metric.system["spa"]} if metric.system else {}),
        }
        values[one.language_pair] = {name: _value(measures[name]) for name in MEASURES if name in measures}
    [mean] = found.means
    return values | {MEAN: {name: _value(mean["segment_pearson" if name == "pearson" else name]) for name in MEASURES}}


def _value(measure: Measure) -> Value:
    return Value(measure.value, measure.low, measure.high)


def _counts(judged: JudgedSystems) -> tuple[int, int, int]:
    """Return the number of judged outputs, of segments, and of documents; segments if these are not known."""
    is_judged = ~np.isnan(np.asarray(judged.human_segment))
    segments = is_judged.any(axis=0)
    return int(is_judged.sum()), int(segments.sum()), int(judged.unit_numbers(segments).max()) + 1


def _best(
    judged: Sequence[JudgedSystems], scores: Sequence[Floats], layers: Sequence[Mapping[str, Mapping[str, Value]]]
) -> dict[str, Best]:
    """Return the best layer of each language pair and of their mean, by the test of `tune-layers`."""
    rng = np.random.default_rng(SEED)
    resampled = {}
    for one, f1 in zip(judged, scores, strict=True):
        systems, segments = np.nonzero(~np.isnan(np.asarray(one.human_segment)))
        units = np.unique(np.array(one.documents or one.segments)[segments], return_inverse=True)[1]
        human = np.asarray(one.human_segment)[systems, segments]
        resampled[one.language_pair] = resampled_pearson(human, f1[:, systems, segments], rng, NUM_RESAMPLES, units)
    sizes = {one.language_pair: _counts(one)[2] for one in judged}
    resampled[MEAN], sizes[MEAN] = np.mean([*resampled.values()], axis=0), sum(sizes.values())
    r = {name: np.array([layer[name]["pearson"].value for layer in layers], dtype=np.float64) for name in resampled}
    return {name: _tested(r[name], resampled[name], sizes[name]) for name in resampled}


def _tested(r: Floats, resampled: Floats, num_units: int) -> Best:
    """Return the best of the layers, (layers,), and those that may be as good; resampled is (resamples, layers)."""
    if np.isnan(r).all():
        raise InputError("F is the same for all outputs at every layer, so that none correlates.")
    best = int(np.nanargmax(r))
    resampled = resampled[np.isfinite(resampled[:, np.isfinite(r)]).all(axis=1)]
    if not len(resampled):
        return Best(best, None, ())
    p, loss = p_values(r, resampled), loss_bounds(resampled, num_units)
    as_good = (layer for layer in range(len(r)) if layer != best and p[layer] >= SIGNIFICANT)
    others = (Loss(layer, float(p[layer]), float(r[best] - r[layer]), float(loss[layer])) for layer in as_good)
    return Best(best, optimism(r, resampled), tuple(others))
