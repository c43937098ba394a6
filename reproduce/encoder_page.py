"""The results of `reproduce.correlations`, and the tables of docs/which_encoder.md made of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.stats import kendalltau

from bertscore_onnx_evaluation.metrics.correlation import Floats, Measure, correlate_pairs
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SEED, bootstrap_counts
from harness.results import table, with_figures

MEAN = "mean"
MEASURES = {
    "pearson": "Pearson's r",
    "kendall": "Kendall's τ_b",
    "acc_eq": "acc\\*_eq",
    "spa": "SPA",
}
"""Names in `meta`, and on the page."""

KENDALL, PEARSON, OF_SYSTEMS, PEARSON_OF_SYSTEMS = (
    f"{level} {coefficient}"
    for level in ("summary", "system")
    for coefficient in ("kendall", "pearson")
)
PEER = "chrF3++"
"""The metric that others are compared with: EuroEval took it instead of BERTScore."""
RESAMPLES = 1000
BUSY = "**The machine was busy with other work: these speeds are too low, and cannot be compared.**"
LOAD = "load at the start"
"""The fact that differs between runs on one machine."""


class Value(msgspec.Struct, frozen=True, array_like=True):
    """A measure with its 95 % interval; None if it has no value, or no interval."""

    value: float | None
    low: float | None
    high: float | None


class Best(msgspec.Struct, frozen=True):
    """What a bundle at the best layer reaches, in a process of its own."""

    is_cut: bool  # whether the bundle holds that layer alone; otherwise the whole model runs
    pairs_per_second: float
    peak_mb: float
    bundle_mb: float
    measures: dict[str, dict[str, Value]]  # by language pair, and their mean


class Agreement(msgspec.Struct, frozen=True):
    """How a metric of summaries agrees with annotators, with one kind of reference."""

    reference: str
    metric: str  # P, R or F of a model, or the name of another
    layer: int | None
    aspects: dict[str, dict[str, float | None]]  # by aspect and measure
    means: dict[str, Value]  # over the aspects
    # τ_b within each article, by aspect; None where annotators' scores are alike
    within: dict[str, list[float | None]]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model on a set of judgements, or the reason why there is no result."""

    judgements: str  # the title of the set
    model: str = ""
    precision: str = ""
    made: str = ""
    machine: dict[str, str] = {}
    reason: str = ""
    origin: str = ""  # of the set
    left_out: tuple[str, ...] = ()  # language pairs
    has_documents: bool = False
    max_length: int | None = None
    tuning: dict[str, Any] = {}  # as `tune-layers --format json` prints it
    best: Best | None = None
    of_summaries: bool = False
    agreements: list[Agreement] = []  # with annotators of summaries


def kendall(human: Floats, metric: Floats) -> Measure:
    """Return Kendall's τ_b of two rows of scores, NaN where nobody judged; where r has no value,
    the same reason.
    """
    measure, is_judged = correlate_pairs(human, metric), ~np.isnan(human)
    if measure.value is None:
        return measure
    return replace(measure, value=float(kendalltau(human[is_judged], metric[is_judged]).statistic))


def described(record: Record) -> str:
    """Return what a record is about, in one line."""
    return ", ".join(filter(None, (record.model, record.precision, record.judgements)))


def write_page(page: Path, records: Sequence[Record]) -> None:
    """Replace the figures of the page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(with_figures(text, [as_markdown(records)]), encoding="utf-8")


def as_markdown(records: Sequence[Record]) -> str:
    """Return the tables: all models at a glance, each set, summaries, and what is missing."""
    measured = [record for record in records if not record.reason]
    judged = [record for record in measured if not record.of_summaries]
    summaries = [record for record in measured if record.of_summaries]
    parts = [_at_a_glance(judged, summaries)] if judged else []
    parts += _machines(measured, judged)
    for of_set in _by(judged, "judgements").values():
        parts += _of_set(of_set)
    for of_set in _by(summaries, "judgements").values():
        parts += _of_summaries(of_set, judged)
    parts += _not_measured([record for record in records if record.reason])
    return "\n\n".join(parts) + "\n"


def _by(records: Iterable[Record], field: str) -> dict[str, list[Record]]:
    """Group records by a field."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(getattr(record, field), []).append(record)
    return groups


def _machines(measured: Iterable[Record], judged: Sequence[Record]) -> Iterator[str]:
    """Yield the facts of each machine, and whether it was busy when the speeds at a glance were
    measured.
    """
    groups: dict[str, list[Record]] = {}
    for record in measured:
        facts = "; ".join(
            f"{name}: {value}" for name, value in record.machine.items() if name != LOAD
        )
        groups.setdefault(facts, []).append(record)
    for facts, group in groups.items():
        days = ", ".join(sorted({record.made.partition(" ")[0] for record in group}))
        yield f"Measured {days}. Machine: {facts}."
    if any(
        _was_busy(record.machine) for record in judged if record.judgements == judged[0].judgements
    ):
        yield BUSY


def _was_busy(machine: Mapping[str, str]) -> bool:
    """Return whether other processes used more than a quarter of the processors."""
    return float(machine[LOAD]) > float(machine["cores usable"]) / 4


def _at_a_glance(judged: Sequence[Record], summaries: Sequence[Record]) -> str:
    """Return a row for each model and precision: size and speed on the first set, and agreement on
    all sets.
    """
    sets = [*_by(judged, "judgements")]
    found = {
        (record.model, record.precision, record.judgements): record
        for record in [*judged, *summaries]
    }
    titles = [*sets, *_by(summaries, "judgements")]
    rows = []
    for model, precision in dict.fromkeys((record.model, record.precision) for record in judged):
        first = next(record for title in sets if (record := found.get((model, precision, title))))
        cells = [_at_its_layer(found.get((model, precision, title)), judged) for title in titles]
        rows.append((model, precision, *_costs(first), *cells))
    header = ("model", "precision", "pairs/s", "memory", "bundle", "tokens", *titles)
    return table(header, rows)


def _costs(record: Record) -> Sequence[str]:
    """Return speed, memory, size on disk, and the maximum length of a text."""
    tokens = "any" if record.max_length is None else f"{record.max_length:,}"
    if not (best := record.best):
        return "-", "-", "-", tokens
    rate = f"{best.pairs_per_second:,.0f}" + ("" if best.is_cut else " (whole model)")
    return rate, f"{best.peak_mb:,.0f} MB", f"{best.bundle_mb:,.0f} MB", tokens


def _at_its_layer(record: Record | None, judged: Sequence[Record]) -> str:
    """Return a model's agreement with a set, and its layer: r, or τ_b with the first kind of
    reference of summaries.
    """
    if record is None:
        return "-"
    if not record.of_summaries:
        return f"{record.tuning['best_pearson']:.3f} at {record.tuning['best_layer']}"
    layer = _layer_for_summaries(record, judged)
    first = next(one for one in record.agreements if (one.metric, one.layer) == ("F", layer))
    return f"{_cell(_plain(first.means[KENDALL]))} at {layer}"


def _of_set(records: Sequence[Record]) -> Iterator[str]:
    """Yield a set, and the measures of all models at their best layers, in fp32 where that was
    measured.
    """
    records = _in_fp32(records)
    yield f"## {records[0].judgements}"
    yield _set_in_words(records[0])
    names = [
        name
        for name in MEASURES
        if any(_at_best(record, name).value is not None for record in records)
    ]
    header = (
        "model",
        "precision",
        "layer",
        "perhaps as good",
        "gain",
        *(MEASURES[name] for name in names),
    )
    ordered = sorted(records, key=lambda record: -record.tuning["best_pearson"])
    yield table(header, [_overview(record, names) for record in ordered])


def _in_fp32(records: Sequence[Record]) -> list[Record]:
    """Return the records without reduced precision of models that were also measured in fp32."""
    in_fp32 = {record.model for record in records if record.precision == "fp32"}
    return [
        record
        for record in records
        if record.precision in ("", "fp32") or record.model not in in_fp32
    ]


def _set_in_words(record: Record) -> str:
    counts = {
        name: of for name, of in record.tuning["language_pairs"].items() if not of["left_out"]
    }
    languages = ", ".join(f"{name} {of['n']:,}" for name, of in counts.items())
    units = (
        f"{sum(of['units'] for of in counts.values()):,} "
        f"{'documents' if record.has_documents else 'segments'}"
    )
    parts = [
        f"{sum(of['n'] for of in counts.values()):,} judged outputs ({languages}); intervals draw "
        f"{units}."
    ]
    if min(of["units"] for of in counts.values()) < MIN_UNITS:
        parts.append(f"**Fewer than {MIN_UNITS} are too few: the intervals are too narrow.**")
    if record.origin:
        parts.append(f"Source: {record.origin}.")
    unjudged = [
        f"{name} ({of['left_out']})"
        for name, of in record.tuning["language_pairs"].items()
        if of["left_out"]
    ]
    if left_out := [*record.left_out, *unjudged]:
        parts.append(f"Left out: {', '.join(left_out)}.")
    return " ".join(parts)


def _overview(record: Record, names: Sequence[str]) -> Sequence[str]:
    tuning = record.tuning
    layer = f"{tuning['best_layer']} of {len(tuning['layers']) - 1}"
    others = ", ".join(map(str, tuning["not_worse"])) or "none"
    gain = "-" if tuning["optimism"] is None else f"{tuning['optimism']:.3f}"
    return (
        record.model,
        record.precision,
        layer,
        others,
        gain,
        *(_cell(_at_best(record, name)) for name in names),
    )


# Summaries.


def _of_summaries(records: Sequence[Record], judged: Sequence[Record]) -> Iterator[str]:
    """Yield a table of all metrics: τ_b within articles with each kind of reference, and how far
    above the peer's.
    """
    yield f"## {records[0].judgements}"
    yield f"Source: {records[0].origin}."
    metrics: dict[str, dict[str, Agreement]] = {}
    for record in _in_fp32(records):
        layer = _layer_for_summaries(record, judged)
        for one in record.agreements:
            if one.layer == layer:
                name = (
                    one.metric
                    if layer is None
                    else f"{one.metric} of {record.model}, layer {layer}"
                )
                metrics.setdefault(name, {})[one.reference] = one
    kinds = [*dict.fromkeys(kind for of_metric in metrics.values() for kind in of_metric)]
    ordered = sorted(
        metrics.items(), key=lambda item: -(item[1][kinds[0]].means[KENDALL].value or 0)
    )
    peer = metrics.get(PEER, ordered[0][1])
    rows = []
    for name, of_kind in ordered:
        cells = []
        for kind in kinds:
            above = "-" if of_kind is peer else _ahead(of_kind[kind], peer[kind])
            cells += [_cell(_plain(of_kind[kind].means[KENDALL])), above]
        rows.append((name, *cells))
    above = f"above {peer[kinds[0]].metric}"
    yield table(("mean τ_b", *(title for kind in kinds for title in (kind, above))), rows)


def _layer_for_summaries(record: Record, judged: Sequence[Record]) -> int | None:
    """Return the layer that is best on the first set of translations, or else here; None without
    layers.
    """
    of_f1 = [one for one in record.agreements if one.metric == "F" and one.layer is not None]
    for other in judged:
        if of_f1 and (other.model, other.precision) == (record.model, record.precision):
            layer: int = other.tuning["best_layer"]
            return layer
    return max(of_f1, key=lambda one: one.means[KENDALL].value or -1).layer if of_f1 else None


def _ahead(one: Agreement, peer: Agreement) -> str:
    """Return by how much the mean τ_b is above that of another metric, with an interval from the
    same articles.
    """
    # (aspects, articles)
    first, other = (np.array([*of.within.values()], dtype=np.float64) for of in (one, peer))
    low, high = interval_of_mean(first - other)
    ahead = float(np.nanmean(first - other, axis=1).mean())
    return f"{ahead:+.3f} ({_signed(low)} to {_signed(high)})"


def interval_of_mean(values: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean over articles and then aspects, (aspects, articles), NaN
    for no value.
    """
    has_value = ~np.isnan(values)
    known = np.where(has_value, values, 0)
    means = [
        np.einsum("ra,pa->rp", counts, known)
        / np.maximum(np.einsum("ra,pa->rp", counts, has_value), 1)
        for counts in bootstrap_counts(np.random.default_rng(SEED), values.shape[-1], RESAMPLES)
    ]
    low, high = np.quantile(np.concatenate(means).mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _plain(value: Value) -> Value:
    return Value(value.value, None, None)


def _at_best(record: Record, name: str) -> Value:
    """Return a measure at the best layer by Pearson's r, the mean over language pairs."""
    return record.best.measures[MEAN][name] if record.best else Value(None, None, None)


def _cell(value: Value) -> str:
    if value.value is None:
        return "-"
    interval = (
        ""
        if value.low is None or value.high is None
        else f" ({_short(value.low)} to {_short(value.high)})"
    )
    return f"{value.value:.3f}{interval}"


def _short(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1)


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".", 1)


def _not_measured(records: Sequence[Record]) -> Iterator[str]:
    """Yield a table with a row for each reason."""
    if not records:
        return
    reasons = dict.fromkeys(record.reason for record in records)
    rows = []
    for reason in reasons:
        group = [record for record in records if record.reason == reason]
        columns = zip(*((one.model, one.precision, one.judgements) for one in group), strict=True)
        cells = ("; ".join(dict.fromkeys(filter(None, column))) or "all" for column in columns)
        rows.append((*cells, reason.replace("|", "/")))  # a bar would end the cell
    yield "## Not measured"
    yield table(("model", "precision", "judgements", "reason"), rows)
