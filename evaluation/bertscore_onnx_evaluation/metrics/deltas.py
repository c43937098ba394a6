"""How often people agree with the sign of a metric's difference between two systems, by the size of the difference.

The question is that of Kocmi et al., "Navigating the Metrics Maze", ACL 2024.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, log, tanh
from os import PathLike, fspath
from typing import Any, Literal

import msgspec
import numpy as np

from bertscore_onnx.errors import InputError, json_fault
from bertscore_onnx.files import read_named
from bertscore_onnx.tables.table import MISSING, Column, Table, count, listed, plural
from bertscore_onnx_evaluation.metrics.correlation import Floats, judged_scores, pair_signs
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.resampling import mean_interval
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.systems.corpus_scores import ROUNDING

MIN_PAIRS = 200
"""Curves of fewer pairs of systems have a warning."""

MIN_LANGUAGE_PAIRS = 4
"""From so many on, intervals leave out language pairs; of fewer, systems."""

SHARES = (0.7, 0.8, 0.9)
"""The agreements whose differences are printed."""

MAX_BYTES = 10_000_000
MAX_RATIO = 1e6
"""Differences beyond it, as multiples of the median one, count as this: their agreement is 1 either way."""

HELP = """\
The difference between the scores of two systems with whose sign people agree in
70, 80 or 90 of 100 pairs of systems, by a logistic curve through 50 at 0. Below
it are its interval of 95 %, and the smallest difference from which isotonic
regression, which assumes no curve, finds as much agreement. Half of the pairs
that people tie count as agreement. Beyond the largest difference the curve is
extrapolated. -: no difference is large enough."""


@dataclass(frozen=True, slots=True)
class DeltaAgreement:
    """How often people agree with the sign of a difference between two systems."""

    share: float
    """The share of pairs of systems with such a difference in which they do."""

    low: float
    """The low end of its 95 % interval."""

    high: float
    pairs: int
    """The number of pairs of systems that were measured."""

    is_beyond: bool
    """Whether the difference is larger than any measured one, whose share this is."""


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """A set of human scores."""

    language_pair: str
    gold: str
    reference: str
    """As `JudgedSystems` has the three."""
    systems: int
    """The number of systems with human scores."""


@dataclass(frozen=True, slots=True)
class IsotonicStep:
    """A step of the isotonic regression of agreement on |Δ|."""

    delta: float
    """The smallest |Δ| of the step."""
    agreement: float
    pairs: int


@dataclass(frozen=True, slots=True)
class DeltaCurve:
    """Agreement with people by the size of a metric's difference: 1 / (1 + exp(-slope · |Δ|))."""

    name: str
    signature: str
    """How the scores were made; NAME|scores:given where this is not known."""
    sets: tuple[JudgedSet, ...]
    units: Literal["language pairs", "systems"]
    """What the interval leaves out, one at a time: it is about others of these."""
    pairs: int
    """The pairs of systems within a language pair whose scores by the metric differ."""
    human_ties: int
    """Those with equal human scores; half of them count as agreement."""
    metric_ties: int
    """Pairs with equal scores by the metric, which are left out: their difference has no sign."""
    slope: float
    slope_low: float
    """The low end of its 95 % interval."""
    slope_high: float
    largest: float
    """The largest |Δ|."""
    steps: tuple[IsotonicStep, ...]
    """The isotonic regression, by rising |Δ|."""

    def agreement(self, delta: float) -> DeltaAgreement:
        """Return how often people agree with the sign of a difference of this size."""
        size = min(abs(delta), self.largest)
        share, low, high = ((1 + tanh(slope * size / 2)) / 2 for slope in (self.slope, self.slope_low, self.slope_high))
        return DeltaAgreement(share, low, high, self.pairs, abs(delta) > self.largest * (1 + ROUNDING))

    def deltas(self, share: float) -> dict[str, float | None]:
        """Return the |Δ| of an agreement above ½: of the `logistic` curve, `low`, `high`, and `isotonic`.

        None where no difference has such an agreement.
        """
        needed = log(share / (1 - share))
        slopes = {"logistic": self.slope, "low": self.slope_high, "high": self.slope_low}
        steps = (step.delta for step in self.steps if step.agreement >= share)
        found = {name: needed / slope if slope > 0 else inf for name, slope in slopes.items()}
        return {name: delta if delta < inf else None for name, delta in found.items()} | {"isotonic": next(steps, None)}


@dataclass(frozen=True, slots=True)
class Deltas(Result):
    """The curves of several metrics: the result of `fit_deltas`, and the content of the file of `meta --deltas`."""

    curves: tuple[DeltaCurve, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes and `read` reads, with the differences of 70, 80 and 90 % agreement."""
        curves = (
            {**asdict(one), "deltas": {f"{share:g}": one.deltas(share) for share in SHARES}} for one in self.curves
        )
        return {"curves": [*curves]}

    @classmethod
    def read(cls, file: str | PathLike[str]) -> "Deltas":
        """Read what `to_json` wrote.

        Raises:
            InputError: the file cannot be read, or holds something else.
        """
        name = fspath(file)
        try:
            content = msgspec.json.decode(read_named(name, MAX_BYTES), type=cls)
        except OSError as error:
            raise InputError(f"Cannot read {name!r} ({error.strerror}); expected a file of `meta --deltas`.") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(
                f"{name} does not hold agreement by difference ({json_fault(error)}). Write it with `bertscore-onnx "
                "meta --deltas`."
            ) from error
        if not content.curves or any(one.pairs < 1 or one.largest <= 0 for one in content.curves):
            raise InputError(f"{name} does not hold agreement by difference: a curve has no pairs. Measure it again.")
        return content

    def find(self, signatures: Mapping[str, str]) -> dict[str, DeltaCurve]:
        """Return the curves of metrics, from the signature of each by its name; versions and bundles may differ.

        Raises:
            InputError: there is no curve of any of them, or one of a metric with other settings.
        """
        found = {
            name: curve
            for name, signature in signatures.items()
            for curve in self.curves
            if _settings(curve.signature) == _settings(signature)
        }
        for name, signature in signatures.items():
            of_metric = [one.signature for one in self.curves if _kind(one.signature) == _kind(signature)]
            if name not in found and of_metric:
                raise _other_scores(of_metric, [signature])
        if signatures and not found:
            raise _other_scores([one.signature for one in self.curves], [*signatures.values()])
        return found

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for one in self.curves:
            for share in SHARES:
                yield {"metric": one.name, "pairs": one.pairs, "agreement": share, **one.deltas(share)}

    @property
    def warnings(self) -> list[str]:
        """A warning if there are few pairs of systems."""
        few = [f"{one.name} ({count(one.pairs)})" for one in self.curves if one.pairs < MIN_PAIRS]
        if not few:
            return []
        return [f"Fewer than {MIN_PAIRS} pairs of systems say little about others: {listed(few)}."]

    def _blocks(self) -> Iterator[str]:
        columns: list[Column] = [("agreement of people", "metric", str), ("pairs", "pairs", count)]
        columns += [("tied by\npeople", "human_ties", count), ("largest\ndifference", "largest", _size)]
        columns += [(f"{100 * share:.0f} %", f"{share}", _size) for share in SHARES]
        rows: list[dict[str, Any]] = []
        for one in self.curves:
            found = {f"{share}": one.deltas(share) for share in SHARES}
            rows.append(asdict(one) | {"metric": one.name} | {key: of["logistic"] for key, of in found.items()})
            rows += [
                {"metric": f"  {name}"} | {key: of[name] for key, of in found.items()}
                for name in ("low", "high", "isotonic")
            ]
        yield Table(columns, rows).text()
        measured: dict[str, list[str]] = {}
        for one in self.curves:
            measured.setdefault(_measured(one), []).append(one.name)
        sets = (f"{listed(names)}: {of_names}" for of_names, names in measured.items())
        yield "\n".join([*sets, *map("Warning: {}".format, self.warnings)])
        yield HELP


def fit_deltas(language_pairs: Sequence[JudgedSystems]) -> Deltas:
    """Fit how often people agree with the sign of the difference between two systems, for each metric.

    Every two systems of a language pair are a pair. The slope of the logistic curve has the maximum likelihood, with a
    further pair, a tie at the median |Δ|, which keeps it finite where people always agree. Pairs that share a system
    are dependent, and so are those of a language pair: the 95 % interval is that of a jackknife, which leaves out
    language pairs, or with fewer than four of them systems.

    Args:
        language_pairs: the systems of each, with metrics; systems without human scores are left out.

    Raises:
        InputError: a language pair is given twice, has no judged system, or a metric lacks a score that annotators
            judged; or no metric has different scores for any two systems.
        MissingExtraError: scipy is not installed.
    """
    names = [one.language_pair for one in language_pairs]
    if len({*names}) < len(names):
        raise InputError(f"The language pairs are {names}. Give each once.")
    found: dict[tuple[str, str], list[tuple[JudgedSystems, Floats]]] = {}
    for judged in (one.judged() for one in language_pairs):
        base_names = Counter(metric.base_name for metric in judged.metrics.values())
        for own_name, metric in judged.metrics.items():
            name = metric.base_name if metric.base_name and base_names[metric.base_name] == 1 else own_name
            if metric.system is not None:
                signature = metric.signature or f"{name}|scores:given"
                found.setdefault((name, signature), []).append((judged, metric.system))
    curves = (_curve(name, signature, sides) for (name, signature), sides in found.items())
    if not (fitted := tuple(filter(None, curves))):
        raise InputError(
            "No metric has different scores for two systems of a language pair. Give those of more systems."
        )
    return Deltas(fitted)


def _curve(name: str, signature: str, sides: Sequence[tuple[JudgedSystems, Floats]]) -> DeltaCurve | None:
    """Fit the curve of one metric from its scores of systems; None if no two of a language pair differ."""
    sets, rows, num_systems = [], [], 0
    for language_pair, (judged, scores) in enumerate(sides):
        is_judged = ~np.isnan(judged.human_system)
        human, metric = judged_scores(judged.human_system[is_judged], scores[is_judged], ndim=1)
        first, second = np.triu_indices(len(human), 1)
        delta, signs = np.abs(metric[first] - metric[second]), pair_signs(metric)
        agreed = np.where(signs == 0, np.nan, (1 + signs * pair_signs(human)) / 2)
        places = np.full(len(first), language_pair), num_systems + first, num_systems + second
        rows.append(np.stack([delta, agreed, *places]))
        sets.append(JudgedSet(judged.language_pair, judged.gold, judged.reference, len(human)))
        num_systems += len(human)
    pairs = np.hstack(rows)  # (5, pairs)
    delta, agreed, *units_of_pairs = pairs[:, ~np.isnan(pairs[1])]
    if not len(delta):
        return None
    is_enough = len(np.unique(units_of_pairs[0])) >= MIN_LANGUAGE_PAIRS
    units = np.stack(units_of_pairs[:1] if is_enough else units_of_pairs[1:])
    median = float(np.median(delta))
    sizes = np.minimum(delta / median, MAX_RATIO)
    slope = _slope(sizes, agreed)
    left_out = ((units != unit).all(axis=0) for unit in np.unique(units))
    slopes = np.array([_slope(sizes[kept], agreed[kept]) for kept in left_out])
    moved = (slope - slopes) * (len(slopes) - 1) / len(slopes)
    low, high = mean_interval(slope, np.where(np.abs(moved) > ROUNDING, moved, 0))
    return DeltaCurve(
        name,
        signature,
        tuple(sets),
        "language pairs" if is_enough else "systems",
        len(delta),
        int((agreed == 0.5).sum()),
        pairs.shape[1] - len(delta),
        slope / median,
        low / median,
        high / median,
        float(delta.max()),
        _isotonic(delta, agreed),
    )


def _slope(sizes: Floats, agreed: Floats) -> float:
    """Return the slope of maximum likelihood with a tie beside the pairs, from |Δ| as multiples of the median.

    Newton's method from 0 never passes it, as the derivative is convex on the way.
    """
    sizes, agreed = np.append(sizes, 1), np.append(agreed, 0.5)
    slope = 0.0
    for _ in range(200):
        shares = (1 + np.tanh(slope * sizes / 2)) / 2
        step = float((agreed - shares) @ sizes) / float((shares * (1 - shares)) @ sizes**2)
        slope += step
        if abs(step) <= ROUNDING * abs(slope):
            break
    return slope


def _isotonic(delta: Floats, agreed: Floats) -> tuple[IsotonicStep, ...]:
    """Return the steps of the isotonic regression, by pooling adjacent violators."""
    _, first, at = np.unique(np.round(delta / delta.max(), 12), return_index=True, return_inverse=True)
    blocks: list[tuple[float, float, int]] = []
    totals, numbers = np.bincount(at, agreed), np.bincount(at)
    for size, total, number in zip(delta[first].tolist(), totals.tolist(), numbers.tolist(), strict=True):
        while blocks and blocks[-1][1] * number >= total * blocks[-1][2]:
            size, below, others = blocks.pop()
            total, number = total + below, number + others
        blocks.append((size, total, number))
    return tuple(IsotonicStep(size, total / number, number) for size, total, number in blocks)


def _settings(signature: str) -> frozenset[str]:
    """Return the fields of a signature that change a difference.

    The digest of a bundle is none: it changes with the versions that exported it, and with a baseline.
    """
    others = ("version:", "bundle:", "negative:")
    return frozenset(field for field in signature.split("|") if not field.startswith(others))


def _kind(signature: str) -> str:
    """Return the metric of a signature: BERTScore, the name of given scores, or the settings that sacreBLEU names."""
    first = signature.partition("|")[0]
    return " ".join(sorted(field.partition(":")[0] for field in _settings(signature))) if ":" in first else first


def _other_scores(measured: Sequence[str], compared: Sequence[str]) -> InputError:
    """Return the error for signatures that were not measured; of one each, with the fields that differ."""
    other = ""
    if len(measured) == len(compared) == 1:
        fields = sorted({field.partition(":")[0] for field in _settings(measured[0]) ^ _settings(compared[0])})
        other = f" (other: {', '.join(fields)})"
    return InputError(
        f"The agreement by difference was measured for {' and '.join(measured)}, and these are scores of "
        f"{' and '.join(compared)}{other}. Measure it with the same settings (`bertscore-onnx meta --deltas`), or "
        "compare with those."
    )


def _size(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}"


def _measured(curve: DeltaCurve) -> str:
    """Return on what a curve was measured, and what its interval is about."""
    sets = [f"{one.language_pair}{f' ({one.gold})' if one.gold else ''}" for one in curve.sets]
    others = "language pairs" if curve.units == "language pairs" else "systems of these sets"
    num_systems = plural(sum(one.systems for one in curve.sets), "system")
    return f"{num_systems} of {listed(sets)}; the interval is about other {others}"
