"""The results of `reproduce.correlations`, and the tables of docs/which_encoder.md made of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bertscore_onnx_evaluation.metrics.correlation import Floats
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SEED, bootstrap_counts
from harness.results import BEGIN, END, table, with_figures

MEAN = "mean"
MEASURES = {"pearson": "Pearson's r", "kendall": "Kendall's τ_b", "acc_eq": "acc\\*_eq", "spa": "SPA"}
"""Names in `meta`, and on the page."""

SUMMARY_MARKS = "<!-- summaries: begin -->", "<!-- summaries: end -->"
KENDALL, PEARSON, OF_SYSTEMS, PEARSON_OF_SYSTEMS = (
    f"{level} {coefficient}" for level in ("summary", "system") for coefficient in ("kendall_b", "pearson")
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
    within: dict[str, list[float | None]]  # τ_b within each article, by aspect; None where annotators' scores are alike


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


def described(record: Record) -> str:
    """Return what a record is about, in one line."""
    return ", ".join(filter(None, (record.model, record.precision, record.judgements)))


def write_page(page: Path, records: Sequence[Record]) -> None:
    """Replace the figures of the page, those of translations and those of summaries, where some are measured."""
    text = page.read_text(encoding="utf-8")
    for marks, show, of_summaries in (((BEGIN, END), as_markdown, False), (SUMMARY_MARKS, summaries_as_markdown, True)):
        chosen = [record for record in records if record.of_summaries == of_summaries]
        if not all(record.reason for record in chosen):
            text = with_figures(text, [show(chosen)], marks)
    page.write_text(text, encoding="utf-8")


def as_markdown(records: Sequence[Record]) -> str:
    """Return the machine, the tables of each set, and what was not measured."""
    measured = [record for record in records if not record.reason]
    parts = [*_machines(measured)]
    for judgements in dict.fromkeys(record.judgements for record in measured):
        parts += _of_set([record for record in measured if record.judgements == judgements], measured)
    parts += _not_measured([record for record in records if record.reason])
    return "\n\n".join(parts) + "\n"


def _machines(records: Iterable[Record]) -> Iterator[str]:
    """Yield the facts of each machine, with the days and the loads of its runs."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        facts = "; ".join(f"{name}: {value}" for name, value in record.machine.items() if name != LOAD)
        groups.setdefault(facts, []).append(record)
    for facts, group in groups.items():
        days = ", ".join(sorted({record.made.partition(" ")[0] for record in group}))
        loads = sorted({record.machine[LOAD] for record in group}, key=float)
        yield f"Measured {days}. Machine: {facts}; {LOAD} of a run: {', '.join(loads)}."
        if any(_was_busy(record.machine) for record in group):
            yield BUSY


def _was_busy(machine: Mapping[str, str]) -> bool:
    """Return whether other processes used more than a quarter of the processors."""
    return float(machine[LOAD]) > float(machine["cores usable"]) / 4


def _of_set(records: Sequence[Record], measured: Sequence[Record]) -> Iterator[str]:
    """Yield the tables of a set: all models, and then each one by layer, in fp32 where that was measured.

    `measured` are the records of all sets.
    """
    yield f"### {records[0].judgements}"
    yield _set_in_words(records[0])
    names = [name for name in MEASURES if any(_at_best(record, name).value is not None for record in records)]
    titles = [MEASURES[name] for name in names]
    of_layer = ("layer", "perhaps as good", "gain")
    header = ("model", "precision", *of_layer, *titles, "pairs/s", "memory", "bundle", "tokens")
    ordered = sorted(records, key=lambda record: -record.tuning["best_pearson"])
    yield table(header, [_overview(record, names) for record in ordered])
    in_fp32 = {record.model for record in records if record.precision == "fp32"}
    for record in ordered:
        if record.precision != "fp32" and record.model in in_fp32:
            continue
        yield f"#### {record.model}, {record.precision}: {record.judgements}"
        yield _layers(record)
        yield from _chosen_elsewhere(record, measured)


def _set_in_words(record: Record) -> str:
    counts = {name: of for name, of in record.tuning["language_pairs"].items() if not of["left_out"]}
    languages = ", ".join(f"{name} {of['n']:,}" for name, of in counts.items())
    units = f"{sum(of['units'] for of in counts.values()):,} {'documents' if record.has_documents else 'segments'}"
    parts = [f"{sum(of['n'] for of in counts.values()):,} judged outputs ({languages}); intervals draw {units}."]
    if min(of["units"] for of in counts.values()) < MIN_UNITS:
        parts.append(f"**Fewer than {MIN_UNITS} are too few: the intervals are too narrow.**")
    if record.origin:
        parts.append(f"Source: {record.origin}.")
    unjudged = [f"{name} ({of['left_out']})" for name, of in record.tuning["language_pairs"].items() if of["left_out"]]
    if left_out := [*record.left_out, *unjudged]:
        parts.append(f"Left out: {', '.join(left_out)}.")
    return " ".join(parts)


def _overview(record: Record, names: Sequence[str]) -> Sequence[str]:
    tuning, best = record.tuning, record.best
    rate, peak, size = "-", "-", "-"
    if best:
        rate = f"{best.pairs_per_second:,.0f}" + ("" if best.is_cut else " (whole model)")
        peak, size = f"{best.peak_mb:,.0f} MB", f"{best.bundle_mb:,.0f} MB"
    layer = f"{tuning['best_layer']} of {len(tuning['layers']) - 1}"
    others = ", ".join(map(str, tuning["not_worse"])) or "none"
    gain = "-" if tuning["optimism"] is None else f"{tuning['optimism']:.3f}"
    measures = [_cell(_at_best(record, name)) for name in names]
    tokens = "any" if record.max_length is None else f"{record.max_length:,}"
    return record.model, record.precision, layer, others, gain, *measures, rate, peak, size, tokens


def _layers(record: Record) -> str:
    """Return the table of F's correlation at each layer, the mean and that of each language pair."""
    layers = record.tuning["layers"]
    languages = [name for name in layers[0]["f1"]["language_pairs"] if len(layers[0]["f1"]["language_pairs"]) > 1]
    rows = [
        [
            str(one["layer"]),
            _mean(one),
            *(_cell(Value(one["f1"]["language_pairs"][name], None, None)) for name in languages),
            *(_cell(Value(one[name], None, None)) for name in ("loss", "loss_high")),
        ]
        for one in layers
    ]
    return table(("layer", "Pearson's r", *languages, "lower by", "at most"), rows)


def _mean(layer: Mapping[str, Any]) -> str:
    """Return the mean of a layer's r over language pairs."""
    return _cell(Value(*(layer["f1"][name] for name in ("pearson", "low", "high"))))


def _chosen_elsewhere(record: Record, measured: Sequence[Record]) -> Iterator[str]:
    """Yield how the layers do that are best on other sets, whose r here owes nothing to the choice."""
    for other in measured:
        is_same = (other.model, other.precision) == (record.model, record.precision)
        if is_same and other.judgements != record.judgements:
            layer = other.tuning["best_layer"]
            r = _mean(record.tuning["layers"][layer])
            yield f"Layer {layer}, the best on {other.judgements}, has r = {r} here."


# Summaries.


def summaries_as_markdown(records: Sequence[Record]) -> str:
    """Return the machine, a table of all metrics for each kind of reference, and one of each model by layer."""
    measured = [record for record in records if not record.reason]
    parts = [one for one in _machines(measured) if one != BUSY]  # no speeds are below
    for title in dict.fromkeys(record.judgements for record in measured):
        of_set = [record for record in measured if record.judgements == title]
        parts.append(f"Source: {of_set[0].origin}.")
        agreements = [one for record in of_set for one in record.agreements]
        for reference in dict.fromkeys(one.reference for one in agreements):
            parts.append(f"### {title}, compared with {_compared(reference)}")
            parts.append(_metrics_of_summaries(of_set, reference))
        parts += [part for record in of_set if record.precision for part in _layers_of_summaries(record)]
    parts += _not_measured([record for record in records if record.reason], "Summaries: not measured")
    return "\n\n".join(parts) + "\n"


def _compared(reference: str) -> str:
    return f"the {reference}" if reference == "article" else reference


def _metrics_of_summaries(records: Sequence[Record], reference: str) -> str:
    """Return a table of all metrics with a kind of reference, models at the best layer of F."""
    rows = []
    for record in records:
        of_kind = [one for one in record.agreements if one.reference == reference]
        layer = _best_layer_of_summaries(of_kind)
        for one in of_kind:
            if one.layer == layer:
                name = one.metric if layer is None else f"{one.metric} of {record.model}, {record.precision}"
                rows.append((one, (name, "-" if layer is None else str(layer))))
    rows.sort(key=lambda row: -(row[0].means[KENDALL].value or 0))
    peer = next((one for one, _ in rows if one.metric == PEER), rows[0][0])
    of_articles = ("mean τ_b", f"above {peer.metric}", "mean r")
    header = ("metric", "layer", *of_articles, "systems: mean τ_b", "systems: mean r")
    return table(
        header,
        [
            (
                *names,
                _cell(one.means[KENDALL]),
                "-" if one is peer else _ahead(one, peer),
                *(_cell(one.means[name]) for name in (PEARSON, OF_SYSTEMS, PEARSON_OF_SYSTEMS)),
            )
            for one, names in rows
        ],
    )


def _ahead(one: Agreement, peer: Agreement) -> str:
    """Return by how much the mean τ_b is above that of another metric, with an interval from the same articles."""
    first, other = (np.array([*of.within.values()], dtype=np.float64) for of in (one, peer))  # (aspects, articles)
    low, high = interval_of_mean(first - other)
    ahead = float(np.nanmean(first - other, axis=1).mean())
    return f"{ahead:+.3f} ({_signed(low)} to {_signed(high)})"


def interval_of_mean(values: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean over articles and then aspects, (aspects, articles), NaN for no value."""
    has_value = ~np.isnan(values)
    known = np.where(has_value, values, 0)
    means = [
        np.einsum("ra,pa->rp", counts, known) / np.maximum(np.einsum("ra,pa->rp", counts, has_value), 1)
        for counts in bootstrap_counts(np.random.default_rng(SEED), values.shape[-1], RESAMPLES)
    ]
    low, high = np.quantile(np.concatenate(means).mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _best_layer_of_summaries(agreements: Sequence[Agreement]) -> int | None:
    """Return the layer at which F agrees best within articles; None for a metric without layers."""
    of_f1 = [one for one in agreements if one.metric == "F"]
    return max(of_f1, key=lambda one: one.means[KENDALL].value or -1).layer if of_f1 else None


def _layers_of_summaries(record: Record) -> Iterator[str]:
    """Yield the table of a model by layer: τ_b within articles."""
    kinds = [*dict.fromkeys(one.reference for one in record.agreements)]
    layers = [*dict.fromkeys(one.layer for one in record.agreements)]
    found = {(one.reference, one.layer, one.metric): one for one in record.agreements}
    yield f"#### {record.model}, {record.precision}: {record.judgements} by layer"
    header = ("layer: mean τ_b", *(f"{metric}, {kind}" for kind in kinds for metric in "PRF"))
    rows = [
        (str(layer), *(_cell(_plain(found[kind, layer, metric].means[KENDALL])) for kind in kinds for metric in "PRF"))
        for layer in layers
    ]
    yield table(header, rows)


def _plain(value: Value) -> Value:
    return Value(value.value, None, None)


def _at_best(record: Record, name: str) -> Value:
    """Return a measure at the best layer by Pearson's r, the mean over language pairs."""
    return record.best.measures[MEAN][name] if record.best else Value(None, None, None)


def _cell(value: Value) -> str:
    if value.value is None:
        return "-"
    interval = "" if value.low is None or value.high is None else f" ({_short(value.low)} to {_short(value.high)})"
    return f"{value.value:.3f}{interval}"


def _short(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1)


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".", 1)


def _not_measured(records: Sequence[Record], title: str = "Not measured") -> Iterator[str]:
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
    yield f"### {title}"
    yield table(("model", "precision", "judgements", "reason"), rows)
