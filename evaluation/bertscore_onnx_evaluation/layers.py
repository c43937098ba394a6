"""Correlate the scores of every layer with human scores, as bert-score's `tune_layers.py` does, and test the best."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import InputError, UnknownLayerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.table import TableFormat, number
from bertscore_onnx.text.texts import Reference, Text
from bertscore_onnx_evaluation.metrics.correlation import (
    CLOSE,
    Floats,
    correlate_pairs,
    finite,
    pearson_of_moments,
    scipy_module,
)
from bertscore_onnx_evaluation.metrics.statistics import NORMAL, UnitSums, sum_by_unit
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, NUM_RESAMPLES, SEED, SIGNIFICANT, bootstrap_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def layer_sums(human: Floats, metrics: NDArray[np.floating], units: NDArray[np.int64] | None = None) -> UnitSums:
    """Return Pearson's r of metrics, (metrics, rows), as a function of sums over units; NaN where a side is constant.

    Human scores, (rows,), are not constant. Units are numbers from 0, (rows,); None if each row is a unit.
    """
    units = np.arange(len(human)) if units is None else units
    human = (human - human.mean()) / human.std()
    constant = np.stack([np.ones_like(human), human, human**2])
    sums = [sum_by_unit(constant, units)]
    for row in metrics:  # one after the other, which bounds memory
        metric = row.astype(np.float64) - row.mean(dtype=np.float64)
        metric /= metric.std() or 1.0
        sums.append(sum_by_unit(np.stack([metric, metric**2, metric * human]), units))
    return UnitSums(np.concatenate(sums, axis=1), _pearson_of_layers)


def _pearson_of_layers(totals: Floats) -> Floats:
    human = np.moveaxis(totals[..., :3, None], -2, 0)
    metrics = np.moveaxis(totals[..., 3:].reshape(*totals.shape[:-1], -1, 3), -1, 0)
    return pearson_of_moments((*human, *metrics), of_constant=np.nan)


def resampled_pearson(sums: UnitSums, rng: np.random.Generator, num_resamples: int) -> Floats:
    """Return the r of each metric in draws of units with replacement, (resamples, metrics)."""
    drawn = bootstrap_counts(rng, len(sums.sums), num_resamples)
    return np.concatenate([sums.statistic(counts @ sums.sums) for counts in drawn])


# The result: how each layer of a model correlates with human scores, and which is best.


MIN_JUDGEMENTS = 100
"""Below it the best layer is largely luck: on WMT16 the choice by 30 judgements loses 0.014 of r, by 100 0.003."""


@dataclass(frozen=True, slots=True)
class LayerCorrelation:
    """The correlation of P, R or F at one layer with human scores: Pearson's r, the mean over language pairs."""

    pearson: float | None
    """None where the scores are constant in a language pair, and so have no correlation."""
    low: float | None
    """The lower end of the 95 % interval by bootstrap, widened for few units as Student's t is; None where no resample
    has a value."""
    high: float | None
    """The upper end."""
    language_pairs: Mapping[str, float | None]
    """Pearson's r in each language pair."""


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer."""

    layer: int | str
    """Its number; 0 is the embeddings. Of a further scorer also its matching: `3 by code-bert-score`."""
    precision: LayerCorrelation
    recall: LayerCorrelation
    f1: LayerCorrelation
    p: float | None
    """The p-value of F's distance to the best layer, tested against the maximum over all layers; None for that layer
    itself, and without a value."""
    loss: float | None
    """How much lower F's correlation is than the best layer's, 0 for the best; None without a value."""
    loss_high: float | None
    """How much lower it may be than any other layer's: the upper bound at 95 % for a layer named beforehand; for a
    layer that was chosen on these judgements, as the best layer was, the bound is too low more often."""


@dataclass(frozen=True, slots=True)
class LayerTuning(Result):
    """The correlations of each layer with human scores; as a table in TSV."""

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("tsv",)

    signature: str
    """How the scores were made."""
    num_resamples: int
    seed: int
    language_pairs: Mapping[str, int]
    """How many rows have a human score, by language pair."""
    units: Mapping[str, int]
    """How many units were drawn from: documents, segments or references."""
    left_out: Mapping[str, str]
    """The language pairs that are left out of all means, with the reason why they have no correlation."""
    layers: tuple[LayerResult, ...]
    """Every layer, from 0; then the layers of further scorers."""
    best_layer: int | str
    """The layer with the highest correlation of F; the first of equals."""
    best_pearson: float
    """Its correlation."""
    optimism: float | None
    """By how much that correlation is too high, because the layer was chosen for it: the mean over resamples of the
    best layer's correlation in the resample minus its correlation in all rows. It is too small: in simulations of
    equally good layers about two thirds of the gain. None without resamples."""
    export_command: str
    """The command that exports the model at that layer."""

    @property
    def best(self) -> LayerResult:
        """The result of the best layer."""
        return next(result for result in self.layers if result.layer == self.best_layer)

    @property
    def not_worse(self) -> tuple[int | str, ...]:
        """The other layers for which it is not significant that another is better: p is 0.05 or more."""
        return tuple(result.layer for result in self.layers if result.p is not None and result.p >= SIGNIFICANT)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the judgements: pairs left out, too few of them, or reversed ones."""
        warnings = [f"{name} is left out of all means: {reason}." for name, reason in self.left_out.items()]
        judged, units = (
            sum(n for name, n in counts.items() if name not in self.left_out)
            for counts in (self.language_pairs, self.units)
        )
        if judged < MIN_JUDGEMENTS or units < MIN_UNITS:
            warnings.append(
                f"{judged} judgements of {units} references, segments or documents are few. Below {MIN_JUDGEMENTS} and "
                f"{MIN_UNITS}, the best layer is largely luck, and intervals are too narrow."
            )
        if all(layer.f1.pearson is None or layer.f1.pearson < 0 for layer in self.layers):
            warnings.append("F correlates negatively with the judgements at every layer. Are higher judgements better?")
        return warnings

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        return {
            "signature": self.signature,
            "warnings": self.warnings,
            "resamples": self.num_resamples,
            "seed": self.seed,
            "best_layer": self.best_layer,
            "best_pearson": self.best_pearson,
            "optimism": self.optimism,
            "not_worse": list(self.not_worse),
            "language_pairs": {
                name: {"n": n, "units": self.units[name], "left_out": self.left_out.get(name)}
                for name, n in self.language_pairs.items()
            },
            "layers": [asdict(result) for result in self.layers],
            "export": self.export_command,
        }

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the correlation of F by layer, with the band of its intervals.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import layers_figure

        curve = [(str(one.layer), one.f1.pearson, one.f1.low, one.f1.high) for one in self.layers]
        return layers_figure(curve, self.layers.index(self.best), [" ".join(self.warnings), self.signature])

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        write, notes = number(6, missing=""), " ".join(self.warnings)
        for result in self.layers:
            values: dict[str, float | None] = {}
            for name, score in (("precision", result.precision), ("recall", result.recall), ("f1", result.f1)):
                values |= {name: score.pearson, f"{name}_low": score.low, f"{name}_high": score.high}
            values |= {"p": result.p, "loss": result.loss, "loss_high": result.loss_high}
            values |= {f"f1_{name}": value for name, value in result.f1.language_pairs.items()}
            written = {name: write(value) for name, value in values.items()}
            yield {"layer": result.layer, **written, "notes": notes}


def tune_layers(
    scorer: BERTScorer,
    candidates: Sequence[Text],
    references: Sequence[Reference],
    human: ArrayLike,
    language_pairs: Sequence[str] | None = None,
    *,
    units: Sequence[str] | None = None,
    others: Iterable[BERTScorer] = (),
    num_resamples: int = NUM_RESAMPLES,
    seed: int = SEED,
    verbose: bool | None = False,
) -> LayerTuning:
    """Correlate P, R and F at every layer with human scores, and find the best layer by F.

    The correlation is Pearson's r over all rows of a language pair, which often have one output of each segment, and
    then the mean over these. Units of rows are drawn
    with replacement within each language pair, the same for all layers: that gives the intervals, and a test of each
    layer i against the maximum over all layers j, p = (#{max_j[(r*_j − r*_i) − (r_j − r_i)] >= max_j r_j − r_i} + 1) /
    (resamples + 1), with r* in a resample. Judge the best layer on other data than those it was tuned on: its
    correlation is too high by the `optimism`.

    Each text is encoded once for all layers. Of the scores, 12 bytes are kept for each row and layer.

    Args:
        scorer: a scorer of every layer, `BERTScorer(…, all_layers=True)`.
        candidates: the texts that annotators judged, one for each row.
        references: for each row one reference, or a list of several, where the best counts.
        human: human scores, (rows,), higher is better; NaN where nobody judged, which leaves the row out.
        language_pairs: the language pair of each row, or any other group; None where all rows are one.
        units: the document or segment of each row; rows of one are dependent, and are drawn together. None takes rows
            with the same references together.
        others: further scorers of the same model, such as with other matchings, whose layers are candidates too:
            the best one, and the tests, are over all. They are taken one after the other.
        num_resamples: how many times units are drawn.
        seed: of these draws.
        verbose: show a progress bar on standard error; None for one on a terminal, where it takes longer.

    Returns:
        The correlations. A language pair with fewer than two human scores, or with equal ones alone, is left out of
        all means, with a reason.

    Raises:
        UnknownLayerError: the scorer has one layer.
        InputError: the rows do not fit together, no language pair has a correlation, or no layer has one.
        MissingExtraError: scipy is not installed.
    """
    manifest = scorer.manifest
    if not manifest.all_layers:
        raise UnknownLayerError(
            f"The bundle {scorer.bundle.path} holds layer {manifest.num_layers} only, and layers are compared here. "
            f"Export all of them: `{export_command(manifest)}`, and pass all_layers=True."
        )
    if num_resamples < 1 or seed < 0:
        raise InputError(f"num_resamples is {num_resamples} and seed {seed}; expected at least 1, and at least 0.")
    human = np.asarray(human, dtype=np.float64)
    names = ["all"] * len(candidates) if language_pairs is None else list(language_pairs)
    units = [str(reference) for reference in references] if units is None else list(units)
    lengths = {"references": len(references), "human": human.shape, "language_pairs": len(names), "units": len(units)}
    for side, length in lengths.items():
        if length not in (len(candidates), (len(candidates),)):
            raise InputError(
                f"{side} is {length} long, and candidates {len(candidates)}; expected one for each candidate."
            )
    if np.isinf(human).any():
        raise InputError(f"human is infinite in row {np.isinf(human).argmax()} (counted from 0); expected a number.")
    texts = map(str, candidates), map(str, references)
    content = [*zip(names, *texts, np.nan_to_num(human).tolist(), units, strict=True)]
    order = sorted(range(len(content)), key=content.__getitem__)  # the order of rows changes no sum
    candidates, references = [candidates[row] for row in order], [references[row] for row in order]
    names, units, human = [names[row] for row in order], [units[row] for row in order], human[order]
    judged_rows = {name: np.flatnonzero((np.array(names) == name) & ~np.isnan(human)) for name in dict.fromkeys(names)}
    reasons = {name: correlate_pairs(human[rows], rows.astype(np.float64)).reason for name, rows in judged_rows.items()}
    used = {name: rows for name, rows in judged_rows.items() if not reasons[name]}
    if not used:
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "there are no rows"
        raise InputError(f"No language pair has judgements to correlate with: {listed}.")
    labels: list[int | str] = [*manifest.layers]
    numbers = [*manifest.layers]
    rows_in_use = np.concatenate([*used.values()])
    parts = [_scores(scorer, candidates, references, rows_in_use, verbose)]
    for further in others:
        parts.append(_scores(further, candidates, references, rows_in_use, verbose))
        numbers += further.manifest.layers
        labels += [f"{layer} by {further.signature.matching or 'bertscore'}" for layer in further.manifest.layers]
    scores = np.concatenate(parts, axis=1)  # (3, layers of all scorers, rows)
    drawn = {name: np.unique(np.array(units)[rows], return_inverse=True)[1] for name, rows in judged_rows.items()}
    counts = {name: len(np.unique(numbers)) for name, numbers in drawn.items()}
    judged = [(human[rows], scores[:, :, rows], drawn[name]) for name, rows in used.items()]
    by_pair = {name: _correlations(human[rows], scores[:, :, rows]) for name, rows in used.items()}
    mean = np.mean([*by_pair.values()], axis=0)  # (3, layers)
    resampled = _resampled_means(judged, num_resamples, seed)
    resampled = resampled[np.isfinite(resampled[:, np.isfinite(mean)]).all(axis=1)]
    layers, best = _results(labels, by_pair, mean, resampled, sum(counts[name] for name in used))
    return LayerTuning(
        scorer.hash,
        num_resamples,
        seed,
        {name: len(rows) for name, rows in judged_rows.items()},
        counts,
        {name: reason for name, reason in reasons.items() if reason},
        layers,
        labels[best],
        float(mean[2, best]),
        optimism(mean[2], resampled[:, 2]) if len(resampled) else None,
        export_command(manifest, numbers[best]),
    )


def export_command(manifest: Manifest, num_layers: int | None = None) -> str:
    """Return the command that exports the model of a bundle at another layer, or with all of them.

    The model is named where a hub or the catalogue has it; else FOLDER stands for where its weights are.
    """
    model_id = shlex.quote(manifest.model_id)
    is_known = manifest.revision is not None or catalogue.find(manifest.model_id) is not None
    words = ["bertscore-onnx export --model", model_id if is_known else f"FOLDER --name {model_id}"]
    if manifest.revision is not None:
        words.append(f"--revision {shlex.quote(manifest.revision)}")
    words.append("--all-layers" if num_layers is None else f"--num-layers {num_layers}")
    if manifest.tokenizer_mode != "slow":
        words.append(f"--tokenizer-mode {manifest.tokenizer_mode}")
    if manifest.precision != "fp32":
        words.append(f"--precision {manifest.precision}")
    return " ".join(words)


def _scores(
    scorer: BERTScorer,
    candidates: Sequence[Text],
    references: Sequence[Reference],
    rows: NDArray[np.int64],
    verbose: bool | None,
) -> NDArray[np.float32]:
    """Return P, R and F of some rows, (3, layers, all rows); rows of equal references are scored side by side."""
    order = sorted(rows.tolist(), key=lambda row: str(references[row]))
    scores = np.full((3, len(scorer.manifest.layers), len(candidates)), np.nan, dtype=np.float32)
    stream = scorer.stream([(candidates[row], references[row]) for row in order], verbose=verbose)
    for row, score in zip(order, stream, strict=True):
        scores[:, :, row] = np.reshape(np.array(score), (3, -1))
    return scores


def _correlations(human: Floats, scores: NDArray[np.float32]) -> Floats:
    """Return Pearson's r of P, R and F at each layer, (3, layers); NaN where scores are constant."""
    values = [[correlate_pairs(human, layer.astype(np.float64)).value for layer in layers] for layers in scores]
    return np.array(values, dtype=np.float64)


def _resampled_means(
    judged: Sequence[tuple[Floats, NDArray[np.float32], NDArray[np.int64]]], num_resamples: int, seed: int
) -> Floats:
    """Return the means over language pairs in each resample, (resamples, 3, layers)."""
    rng = np.random.default_rng(seed)
    total = np.zeros((num_resamples, *judged[0][1].shape[:2]))
    for human, scores, units in judged:
        sums = layer_sums(human, scores.reshape(-1, len(human)), units)  # of (3 * layers, rows)
        total += resampled_pearson(sums, rng, num_resamples).reshape(total.shape)
    return total / len(judged)


def _results(
    labels: Sequence[int | str], by_pair: Mapping[str, Floats], mean: Floats, resampled: Floats, num_units: int
) -> tuple[tuple[LayerResult, ...], int]:
    """Return the result of each layer, and which is best; shapes are (3, layers), and (resamples, 3, layers)."""
    f1 = mean[2]
    if np.isnan(f1).all():
        raise InputError("F is the same in all rows at every layer, so that none correlates. Give other rows.")
    best = int(np.nanargmax(f1))
    p = np.where(np.arange(len(f1)) == best, np.nan, p_values(f1, resampled[:, 2]))
    low, high = intervals(resampled, num_units) if len(resampled) else np.full((2, *mean.shape), np.nan)
    loss_high = loss_bounds(resampled[:, 2], num_units) if len(resampled) else np.full(len(f1), np.nan)

    def correlation(*at: int) -> LayerCorrelation:
        each = {name: finite(values[at]) for name, values in by_pair.items()}
        return LayerCorrelation(finite(mean[at]), finite(low[at]), finite(high[at]), each)

    layers = [
        LayerResult(label, correlation(0, at), correlation(1, at), correlation(2, at), *map(finite, tests))
        for at, (label, *tests) in enumerate(zip(labels, p, f1[best] - f1, loss_high, strict=True))
    ]
    return tuple(layers), best


def tail_share(tail: float, num_units: int) -> float:
    """Return the share of resamples to cut off at an end of an interval, so that it holds in the population.

    Resamples of few units are too alike: Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section
    3.2.
    """
    freedom = max(1, num_units - 1)
    t = float(scipy_module("special").stdtrit(freedom, 1 - tail))
    widening = sqrt(1 + 1 / freedom)  # resampling makes a standard error too small by sqrt(n / (n - 1))
    return NORMAL.cdf(-t * widening)


def intervals(resampled: Floats, num_units: int) -> Floats:
    """Return the ends of 95 % intervals, (2, …), from (resamples, …)."""
    tail = tail_share(SIGNIFICANT / 2, num_units)
    return np.quantile(resampled, [tail, 1 - tail], axis=0)


def p_values(mean: Floats, resampled: Floats) -> Floats:
    """Test each layer against the maximum over all, (layers,); NaN without a value; resampled is (resamples, layers).

    J. C. Hsu, "Multiple Comparisons", 1996, chapter 4 (with the best); p is 1 for the best layer.
    """
    layers = np.flatnonzero(np.isfinite(mean) & (len(resampled) > 0))
    errors = resampled[:, layers] - mean[layers]  # (resamples, layers)
    p = np.full(len(mean), np.nan)
    for layer, error in zip(layers, errors.T, strict=True):
        exceeding = (errors.max(axis=1) - error >= np.nanmax(mean) - mean[layer] - CLOSE).sum()
        p[layer] = (exceeding + 1) / (len(resampled) + 1)
    return p


def loss_bounds(resampled: Floats, num_units: int) -> Floats:
    """Return how much worse than any other layer each is at most, (layers,), from (resamples, layers).

    The bounds hold at 95 % for a layer named beforehand, not for a layer chosen by the same resamples.
    """
    differences = (resampled - layer[:, None] for layer in resampled.T)
    return np.array(
        [np.nanmax(np.quantile(each, 1 - tail_share(SIGNIFICANT, num_units), axis=0)) for each in differences]
    )


def optimism(mean: Floats, resampled: Floats) -> float:
    """Return by how much the highest correlation is too high, from correlations (layers,) and (resamples, layers)."""
    winners = np.nanargmax(resampled, axis=1)
    return max(0.0, float((resampled[np.arange(len(resampled)), winners] - mean[winners]).mean()))


# Which language pairs a layer is tuned on: BERTScore sees texts of the target language alone.


def pairs_into_one_language(names: Iterable[str]) -> list[str]:
    """Return the language pairs into the language that more than half of them share; all where there is none.

    Candidates and references are of the target language, so pairs such as cs-en and de-en test the same
    ability of a model, and en-ru another. bert-score's `tune_layers.py` takes the pairs into English.

    Args:
        names: such as `cs-en`; the target follows the last hyphen.

    Returns:
        Their names, each once, in order.
    """
    targets = {name: name.rpartition("-")[2] for name in names}
    shared, count = Counter(targets.values()).most_common(1)[0] if targets else ("", 0)
    return [name for name, target in targets.items() if target == shared or 2 * count <= len(targets)]
