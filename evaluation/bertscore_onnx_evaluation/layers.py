"""Correlate the scores of every layer with human scores.

`tune_layers` does this as bert-score's `tune_layers.py`, and tests the best layer.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import InputError, UnknownLayerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.text.texts import Reference, Text
from bertscore_onnx_evaluation.layer_tuning import LayerCorrelation, LayerResult, LayerTuning
from bertscore_onnx_evaluation.metrics.correlation import (
    CLOSE,
    Floats,
    correlate_pairs,
    finite,
    pearson_of_moments,
    scipy_module,
)
from bertscore_onnx_evaluation.metrics.statistics import NORMAL, UnitSums, sum_by_unit
from bertscore_onnx_evaluation.systems.paired_tests import (
    NUM_RESAMPLES,
    SEED,
    SIGNIFICANT,
    bootstrap_counts,
)


def layer_sums(
    human: Floats,
    metrics: NDArray[np.floating],
    units: NDArray[np.int64] | None = None,
) -> UnitSums:
    """Return Pearson's r of metrics as a function of sums over units.

    r is NaN where a side is constant.

    Args:
        human: human scores, (rows,), not constant.
        metrics: (metrics, rows).
        units: numbers from 0, (rows,); None if each row is a unit.
    """
    if units is None:
        units = np.arange(len(human))
    human = (human - human.mean()) / human.std()
    of_human = np.stack([np.ones_like(human), human, human**2])
    sums = [sum_by_unit(of_human, units)]
    for scores in metrics:  # one after the other, which bounds memory
        metric = scores.astype(np.float64) - scores.mean(dtype=np.float64)
        metric /= metric.std() or 1.0
        of_metric = np.stack([metric, metric**2, metric * human])
        sums.append(sum_by_unit(of_metric, units))
    return UnitSums(np.concatenate(sums, axis=1), _pearson_of_layers)


def _pearson_of_layers(totals: Floats) -> Floats:
    human = np.moveaxis(totals[..., :3, None], -2, 0)
    metrics = np.moveaxis(totals[..., 3:].reshape(*totals.shape[:-1], -1, 3), -1, 0)
    return pearson_of_moments((*human, *metrics), of_constant=np.nan)


def resampled_pearson(sums: UnitSums, rng: np.random.Generator, num_resamples: int) -> Floats:
    """Return r in draws of units with replacement.

    Returns:
        The r of each metric, (resamples, metrics).
    """
    drawn = bootstrap_counts(rng, len(sums.sums), num_resamples)
    return np.concatenate([sums.statistic(counts @ sums.sums) for counts in drawn])


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
    """Find the layer whose F agrees best with human scores.

    P, R and F at every layer are correlated with human scores: Pearson's r over all rows of a
    language pair, which often have one output of each segment, and then the mean over these.

    Units of rows are drawn with replacement within each language pair, the same for all layers.
    That gives the intervals, and a test of each layer i against the maximum over all layers j,
    p = (#{max_j[(r*_j − r*_i) − (r_j − r_i)] >= max_j r_j − r_i} + 1) / (resamples + 1), with r* in
    a resample. Judge the best layer on other data than those it was tuned on: its correlation is
    too high by the `optimism`.

    Each text is encoded once for all layers. Of the scores, 12 bytes are kept for each row and
    layer.

    Args:
        scorer: a scorer of every layer, `BERTScorer(…, all_layers=True)`.
        candidates: the texts that annotators judged, one for each row.
        references: for each row one reference, or a list of several, where the best counts.
        human: human scores, (rows,), higher is better; NaN where nobody judged, which leaves the
            row out.
        language_pairs: the language pair of each row, or any other group; None where all rows are
            one.
        units: the document or segment of each row; rows of one are dependent, and are drawn
            together. None takes rows with the same references together.
        others: further scorers of the same model, such as with other matchings, whose layers are
            candidates too: the best one, and the tests, are over all. They are taken one after the
            other.
        num_resamples: how many times units are drawn.
        seed: of these draws.
        verbose: show a progress bar on standard error; None for one on a terminal, where it takes
            longer.

    Returns:
        The correlations. A language pair with fewer than two human scores, or with equal ones
        alone, is left out of all means, with a reason.

    Raises:
        UnknownLayerError: the scorer has one layer.
        InputError: the rows do not fit together, no language pair has a correlation, or no layer
            has one.
        MissingExtraError: scipy is not installed.
    """
    manifest = scorer.manifest
    if not manifest.all_layers:
        raise UnknownLayerError(
            f"The bundle {scorer.bundle.path} holds layer {manifest.num_layers} only, and layers "
            f"are compared here. Export all of them: `{export_command(manifest)}`, and pass "
            "all_layers=True."
        )
    if num_resamples < 1 or seed < 0:
        given = f"num_resamples is {num_resamples} and seed {seed}"
        raise InputError(f"{given}; expected at least 1, and at least 0.")
    rows = _rows_in_order(candidates, references, human, language_pairs, units)

    judged_rows: dict[str, NDArray[np.int64]] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(rows.language_pairs):
        is_of_pair = np.array(rows.language_pairs) == name
        of_pair = np.flatnonzero(is_of_pair & ~np.isnan(rows.human))
        judged_rows[name] = of_pair
        # The numbers of rows differ, so that only human scores can be a reason.
        reason = correlate_pairs(rows.human[of_pair], of_pair.astype(np.float64)).reason
        if reason:
            left_out[name] = reason
    used = [of_pair for name, of_pair in judged_rows.items() if name not in left_out]
    if not used:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        reasons = reasons or "there are no rows"
        raise InputError(f"No language pair has judgements to correlate with: {reasons}.")

    rows_in_use = np.concatenate(used)
    labels: list[int | str] = list(manifest.layers)
    layer_numbers = list(manifest.layers)
    by_scorer = [_scores(scorer, rows, rows_in_use, verbose)]
    for further in others:
        by_scorer.append(_scores(further, rows, rows_in_use, verbose))
        matching = further.signature.matching or "bertscore"
        for layer in further.manifest.layers:
            labels.append(f"{layer} by {matching}")
            layer_numbers.append(layer)
    scores = np.concatenate(by_scorer, axis=1)  # (3, layers of all scorers, rows)

    unit_names = np.array(rows.units)
    num_units: dict[str, int] = {}
    judged = []
    by_pair: dict[str, Floats] = {}
    for name, of_pair in judged_rows.items():
        different, unit_numbers = np.unique(unit_names[of_pair], return_inverse=True)
        num_units[name] = len(different)
        if name in left_out:
            continue
        human_of_pair = rows.human[of_pair]
        scores_of_pair = scores[:, :, of_pair]
        judged.append((human_of_pair, scores_of_pair, unit_numbers))
        by_pair[name] = _correlations(human_of_pair, scores_of_pair)
    mean = np.mean(list(by_pair.values()), axis=0)  # (3, layers)
    resampled = _resampled_means(judged, num_resamples, seed)
    # A resample may have equal scores alone, and so no correlation.
    has_values = np.isfinite(resampled[:, np.isfinite(mean)]).all(axis=1)
    resampled = resampled[has_values]
    num_used_units = sum(num_units[name] for name in by_pair)
    layers, best = _results(labels, by_pair, mean, resampled, num_used_units)
    num_judged = {name: len(of_pair) for name, of_pair in judged_rows.items()}
    gain = optimism(mean[2], resampled[:, 2]) if len(resampled) else None
    return LayerTuning(
        scorer.hash,
        num_resamples,
        seed,
        num_judged,
        num_units,
        "references" if units is None else "segments or documents",
        left_out,
        layers,
        labels[best],
        float(mean[2, best]),
        gain,
        export_command(manifest, layer_numbers[best]),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The judged texts, in an order that does not depend on the one given."""

    language_pairs: Sequence[str]
    candidates: Sequence[Text]
    references: Sequence[Reference]
    human: Floats
    units: Sequence[str]


def _rows_in_order(
    candidates: Sequence[Text],
    references: Sequence[Reference],
    human: ArrayLike,
    language_pairs: Sequence[str] | None,
    units: Sequence[str] | None,
) -> _Rows:
    """Check and sort the rows, so that their order changes no sum."""
    human = np.asarray(human, dtype=np.float64)
    names = ["all"] * len(candidates) if language_pairs is None else list(language_pairs)
    if units is None:
        units = [str(reference) for reference in references]
    lengths = {
        "references": len(references),
        "human": human.shape,
        "language_pairs": len(names),
        "units": len(units),
    }
    for side, length in lengths.items():
        if length not in (len(candidates), (len(candidates),)):
            given = f"{side} is {length} long, and candidates {len(candidates)}"
            raise InputError(f"{given}; expected one for each candidate.")
    is_infinite = np.isinf(human)
    if is_infinite.any():
        row = is_infinite.argmax()
        raise InputError(f"human is infinite in row {row} (counted from 0); expected a number.")
    texts = map(str, candidates)
    reference_texts = map(str, references)
    scores = np.nan_to_num(human).tolist()
    keys = list(zip(names, texts, reference_texts, scores, units, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    names = [names[row] for row in order]
    candidates = [candidates[row] for row in order]
    references = [references[row] for row in order]
    units = [units[row] for row in order]
    return _Rows(names, candidates, references, human[order], units)


def export_command(manifest: Manifest, num_layers: int | None = None) -> str:
    """Return the command that exports a bundle's model at another layer.

    Without a number it exports all layers. The model is named where a hub or the catalogue has it;
    else FOLDER stands for where its weights are.
    """
    model_id = shlex.quote(manifest.model_id)
    is_known = manifest.revision is not None or catalogue.find(manifest.model_id) is not None
    source = model_id if is_known else f"FOLDER --name {model_id}"
    command = ["bertscore-onnx export --model", source]
    if manifest.revision is not None:
        command.append(f"--revision {shlex.quote(manifest.revision)}")
    if num_layers is None:
        command.append("--all-layers")
    else:
        command.append(f"--num-layers {num_layers}")
    if manifest.tokenizer_mode != "slow":
        command.append(f"--tokenizer-mode {manifest.tokenizer_mode}")
    if manifest.precision != "fp32":
        command.append(f"--precision {manifest.precision}")
    return " ".join(command)


def _scores(
    scorer: BERTScorer,
    rows: _Rows,
    chosen: NDArray[np.int64],
    verbose: bool | None,
) -> NDArray[np.float32]:
    """Return P, R and F of the chosen rows, (3, layers, all rows)."""
    # Rows of equal references are scored side by side.
    order = sorted(chosen.tolist(), key=lambda row: str(rows.references[row]))
    pairs = [(rows.candidates[row], rows.references[row]) for row in order]
    shape = (3, len(scorer.manifest.layers), len(rows.candidates))
    scores = np.full(shape, np.nan, dtype=np.float32)
    stream = scorer.stream(pairs, verbose=verbose)
    for row, score in zip(order, stream, strict=True):
        scores[:, :, row] = np.reshape(np.array(score), (3, -1))
    return scores


def _correlations(human: Floats, scores: NDArray[np.float32]) -> Floats:
    """Return Pearson's r of P, R and F at each layer, (3, layers), NaN of constant scores."""
    values = []
    for layers in scores:
        layers = layers.astype(np.float64)
        values.append([correlate_pairs(human, layer).value for layer in layers])
    return np.array(values, dtype=np.float64)


def _resampled_means(
    judged: Sequence[tuple[Floats, NDArray[np.float32], NDArray[np.int64]]],
    num_resamples: int,
    seed: int,
) -> Floats:
    """Return the means over language pairs in each resample, (resamples, 3, layers)."""
    rng = np.random.default_rng(seed)
    total = np.zeros((num_resamples, *judged[0][1].shape[:2]))
    for human, scores, units in judged:
        sums = layer_sums(human, scores.reshape(-1, len(human)), units)  # of (3 * layers, rows)
        total += resampled_pearson(sums, rng, num_resamples).reshape(total.shape)
    return total / len(judged)


def _results(
    labels: Sequence[int | str],
    by_pair: Mapping[str, Floats],
    mean: Floats,
    resampled: Floats,
    num_units: int,
) -> tuple[tuple[LayerResult, ...], int]:
    """Return the result of each layer and which is best, from correlations of (3, layers)."""
    f1 = mean[2]
    if np.isnan(f1).all():
        constant = "F is the same in all rows at every layer"
        raise InputError(f"{constant}, so that none correlates. Give other rows.")
    # The first of equal layers is the best.
    best = int(np.nanargmax(f1))
    p = p_values(f1, resampled[:, 2])
    p[best] = np.nan
    if len(resampled):
        low, high = intervals(resampled, num_units)
        loss_high = loss_bounds(resampled[:, 2], num_units)
    else:
        low, high = np.full((2, *mean.shape), np.nan)
        loss_high = np.full(len(f1), np.nan)

    def correlation(score: int, layer: int) -> LayerCorrelation:
        place = (score, layer)
        of_pairs = {name: finite(values[place]) for name, values in by_pair.items()}
        return LayerCorrelation(
            finite(mean[place]),
            finite(low[place]),
            finite(high[place]),
            of_pairs,
        )

    layers = []
    for layer, label in enumerate(labels):
        layers.append(
            LayerResult(
                label,
                correlation(0, layer),
                correlation(1, layer),
                correlation(2, layer),
                finite(p[layer]),
                finite(f1[best] - f1[layer]),
                finite(loss_high[layer]),
            )
        )
    return tuple(layers), best


def tail_share(tail: float, num_units: int) -> float:
    """Return the share of resamples to cut off at an end of an interval.

    With it the interval holds in the population. Resamples of few units are too alike: Hesterberg,
    "What Teachers Should Know About the Bootstrap", 2015, section 3.2.
    """
    freedom = max(1, num_units - 1)
    t = float(scipy_module("special").stdtrit(freedom, 1 - tail))
    # Resampling makes a standard error too small by sqrt(n / (n - 1)).
    widening = sqrt(1 + 1 / freedom)
    return NORMAL.cdf(-t * widening)


def intervals(resampled: Floats, num_units: int) -> Floats:
    """Return the ends of 95 % intervals, (2, …), from (resamples, …)."""
    tail = tail_share(SIGNIFICANT / 2, num_units)
    return np.quantile(resampled, [tail, 1 - tail], axis=0)


def p_values(mean: Floats, resampled: Floats) -> Floats:
    """Test each layer against the maximum over all.

    J. C. Hsu, "Multiple Comparisons", 1996, chapter 4 (with the best); p is 1 for the best layer.

    Args:
        mean: (layers,).
        resampled: (resamples, layers).

    Returns:
        p, (layers,); NaN without a value.
    """
    layers = np.flatnonzero(np.isfinite(mean) & (len(resampled) > 0))
    errors = resampled[:, layers] - mean[layers]  # (resamples, layers)
    p = np.full(len(mean), np.nan)
    for layer, error in zip(layers, errors.T, strict=True):
        is_reached = errors.max(axis=1) - error >= np.nanmax(mean) - mean[layer] - CLOSE
        p[layer] = (is_reached.sum() + 1) / (len(resampled) + 1)
    return p


def loss_bounds(resampled: Floats, num_units: int) -> Floats:
    """Return how much worse than any other layer each is at most.

    The bounds hold at 95 % for a layer named beforehand, not for a layer chosen by the same
    resamples.

    Args:
        resampled: (resamples, layers).
        num_units: how many units were drawn from.

    Returns:
        The bounds, (layers,).
    """
    bounds = []
    for layer in resampled.T:
        differences = resampled - layer[:, None]
        tail = tail_share(SIGNIFICANT, num_units)
        bounds.append(np.nanmax(np.quantile(differences, 1 - tail, axis=0)))
    return np.array(bounds)


def optimism(mean: Floats, resampled: Floats) -> float:
    """Return by how much the highest correlation is too high.

    The correlations are (layers,) and (resamples, layers).
    """
    winners = np.nanargmax(resampled, axis=1)
    highest = resampled[np.arange(len(resampled)), winners]
    return max(0.0, float((highest - mean[winners]).mean()))


# Which language pairs a layer is tuned on: BERTScore sees texts of the target language alone.


def pairs_into_one_language(names: Iterable[str]) -> list[str]:
    """Return the language pairs into the language of more than half of them, else all pairs.

    Candidates and references are of the target language, so pairs such as cs-en and de-en test the
    same ability of a model, and en-ru another. bert-score's `tune_layers.py` takes the pairs into
    English.

    Args:
        names: such as `cs-en`; the target follows the last hyphen.

    Returns:
        Their names, each once, in order.
    """
    targets = {name: name.rpartition("-")[2] for name in names}
    if not targets:
        return []
    [(shared, count)] = Counter(targets.values()).most_common(1)
    if 2 * count <= len(targets):
        return list(targets)
    return [name for name, target in targets.items() if target == shared]
