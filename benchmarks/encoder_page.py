"""The results of `benchmarks.correlations`, and the tables of docs/which_encoder.md made of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx.evaluation.corpus_scores import MIN_UNITS
from harness.results import table, with_figures

MEAN = "mean"
MEASURES = {"pearson": "Pearson's r", "kendall": "Kendall's τ_b", "acc_eq": "acc\\*_eq", "spa": "SPA"}
"""Names in `meta`, and on the page."""

PLAIN = "bertscore"
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


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model on a set of judgements, or the reason why there is no result."""

    judgements: str  # the title of the set
    model: str = ""
    precision: str = ""
    matching: str = PLAIN
    key: str = ""  # of what the result depends on
    made: str = ""
    machine: dict[str, str] = {}
    reason: str = ""
    origin: str = ""  # of the set
    left_out: tuple[str, ...] = ()  # language pairs
    has_documents: bool = False
    max_length: int | None = None
    tuning: dict[str, Any] = {}  # as `tune-layers --format json` prints it
    best: Best | None = None


def described(record: Record) -> str:
    """Return what a record is about, in one line."""
    matching = "" if record.matching == PLAIN else record.matching
    return ", ".join(filter(None, (record.model, record.precision, matching, record.judgements)))


def write_page(page: Path, records: Sequence[Record]) -> None:
    """Replace the figures of the page."""
    page.write_text(with_figures(page.read_text(encoding="utf-8"), [as_markdown(records)]), encoding="utf-8")


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
            yield "**The machine was busy with other work: these speeds are too low, and cannot be compared.**"


def _was_busy(machine: Mapping[str, str]) -> bool:
    """Return whether other processes used more than a quarter of the processors."""
    return float(machine[LOAD]) > float(machine["cores usable"]) / 4


def _of_set(records: Sequence[Record], measured: Sequence[Record]) -> Iterator[str]:
    """Yield the tables of a set: all models, and then each one by layer; `measured` are those of all sets."""
    yield f"### {records[0].judgements}"
    yield _set_in_words(records[0])
    names = [name for name in MEASURES if any(_at_best(record, name).value is not None for record in records)]
    titles = [MEASURES[name] for name in names]
    of_layer, of_bundle = ("layer", "perhaps as good", "gain"), ("pairs/s", "memory", "bundle", "tokens")
    header = ("model", "precision", *of_layer, *titles, *of_bundle)
    ordered = sorted(records, key=lambda record: -record.tuning["best_pearson"])
    yield table(header, [_overview(record, names) for record in ordered])
    for record in ordered:
        yield f"#### {_name(record)}, {record.precision}: {record.judgements}"
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
    return _name(record), record.precision, layer, others, gain, *measures, rate, peak, size, tokens


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
        is_same = (other.model, other.precision, other.matching) == (record.model, record.precision, record.matching)
        if is_same and other.judgements != record.judgements:
            layer = other.tuning["best_layer"]
            r = _mean(record.tuning["layers"][layer])
            yield f"Layer {layer}, the best on {other.judgements}, has r = {r} here."


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


def _name(record: Record) -> str:
    return record.model if record.matching == PLAIN else f"{record.model} with {record.matching}"


def _variant(record: Record) -> str:
    return record.precision if record.matching == PLAIN else f"{record.precision} with {record.matching}"


def _not_measured(records: Sequence[Record]) -> Iterator[str]:
    """Yield a table with a row for each reason."""
    if not records:
        return
    reasons = dict.fromkeys(record.reason for record in records)
    columns: tuple[Callable[[Record], str], ...] = (lambda one: one.model, _variant, lambda one: one.judgements)
    rows = []
    for reason in reasons:
        group = [record for record in records if record.reason == reason]
        cells = ("; ".join(dict.fromkeys(filter(None, map(column, group)))) or "all" for column in columns)
        rows.append((*cells, reason.replace("|", "/")))  # a bar would end the cell
    yield "### Not measured"
    yield table(("model", "precision", "judgements", "reason"), rows)
