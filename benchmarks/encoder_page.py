"""The results of `benchmarks.correlations`, and the tables of docs/which_encoder.md made of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bertscore_onnx.evaluation.significance import MIN_UNITS
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


class Loss(msgspec.Struct, frozen=True):
    """A layer that may be as good as the best one."""

    layer: int
    p: float
    loss: float  # of Pearson's r
    loss_high: float  # at most, at 95 %


class Best(msgspec.Struct, frozen=True):
    """The layer with the highest Pearson's r."""

    layer: int
    optimism: float | None  # how much of its r comes from choosing it
    others: tuple[Loss, ...]  # p is 0.05 or more


class Speed(msgspec.Struct, frozen=True):
    """The speed of a bundle at the best layer, in a process of its own."""

    is_cut: bool  # whether the bundle holds that layer alone; otherwise the whole model runs
    pairs: int
    pairs_per_second: float
    peak_mb: float
    bundle_mb: float


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model on a set of judgements, or the reason why there is no result."""

    judgements: str  # the title of the set
    model: str = ""
    precision: str = ""
    preset: str = PLAIN
    key: dict[str, str] = {}  # what the result depends on
    made: str = ""
    machine: dict[str, str] = {}
    reason: str = ""
    origin: str = ""  # of the set
    tokenizer: str = ""
    max_length: int | None = None
    left_out: tuple[str, ...] = ()  # language pairs
    counts: dict[str, tuple[int, int, int]] = {}  # judged outputs, segments and documents of each language pair
    has_documents: bool = False
    layers: list[dict[str, dict[str, Value]]] = []  # by language pair and measure
    best: dict[str, Best] = {}
    speed: Speed | None = None


def write_page(page: Path, records: Sequence[Record]) -> None:
    """Replace the figures of the page."""
    page.write_text(with_figures(page.read_text(encoding="utf-8"), [as_markdown(records)]), encoding="utf-8")


def as_markdown(records: Sequence[Record]) -> str:
    """Return the machine, the tables of each set, and what was not measured."""
    measured = [record for record in records if not record.reason]
    parts = [*_machines(measured)]
    for judgements in dict.fromkeys(map(_scored, measured)):
        parts += _of_set([record for record in measured if _scored(record) == judgements], measured)
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


def _scored(record: Record) -> tuple[str, ...]:
    """Return what was scored: the title of a set, and which of its outputs."""
    return record.judgements, *(record.key.get(name, "") for name in ("judgements", "segments"))


def _of_set(records: Sequence[Record], measured: Sequence[Record]) -> Iterator[str]:
    """Yield the tables of a set: all models, and then each one by layer; `measured` are those of all sets."""
    yield f"### {records[0].judgements}"
    yield _described(records[0])
    names = [name for name in MEASURES if any(_at_best(record, name).value is not None for record in records)]
    titles = [MEASURES[name] for name in names]
    header = ("model", "precision", "layer", "perhaps as good", *titles, "pairs/s", "memory", "bundle", "tokens")
    ordered = sorted(records, key=lambda record: -(_at_best(record, "pearson").value or -2.0))
    yield table(header, [_overview(record, names) for record in ordered])
    detailed = {record.model: record for record in sorted(records, key=_detail)}
    for record in sorted(ordered, key=lambda record: (record.model, record is not detailed[record.model])):
        yield from _of_record(record, names, by_language=record is detailed[record.model])
        yield from _chosen_elsewhere(record, measured)


def _chosen_elsewhere(record: Record, measured: Sequence[Record]) -> Iterator[str]:
    """Yield how the layers do that are best on other sets, whose r here owes nothing to the choice."""
    for other in measured:
        is_same = (other.model, other.precision, other.preset) == (record.model, record.precision, record.preset)
        if is_same and other.judgements != record.judgements and len(other.layers) == len(record.layers):
            layer = other.best[MEAN].layer
            r = _cell(record.layers[layer][MEAN]["pearson"])
            yield f"Layer {layer}, the best on {other.judgements}, has r = {r} here."


def _detail(record: Record) -> tuple[bool, bool]:
    """Sort the plain results in fp32, whose languages are shown, to the end."""
    return record.precision == "fp32", record.preset == PLAIN


def _described(record: Record) -> str:
    languages = ", ".join(f"{name} {outputs:,}" for name, (outputs, _, _) in record.counts.items())
    outputs, segments, documents = (sum(column) for column in zip(*record.counts.values(), strict=True))
    units = f"{documents:,} documents" if record.has_documents else "segments"
    parts = [f"{outputs:,} judged outputs of {segments:,} segments ({languages}); intervals draw {units}."]
    if min(number for *_, number in record.counts.values()) < MIN_UNITS:
        parts.append(f"**Fewer than {MIN_UNITS} are too few: the intervals are too narrow.**")
    if record.origin:
        parts.append(f"Source: {record.origin}.")
    if (limit := record.key.get("segments", "all")) != "all":
        parts.append(f"Limited to about {limit} segments of each language pair.")
    if record.left_out:
        parts.append(f"Left out: {', '.join(record.left_out)}.")
    return " ".join(parts)


def _overview(record: Record, names: Sequence[str]) -> Sequence[str]:
    speed, best = record.speed, record.best[MEAN]
    rate, peak, size = "-", "-", "-"
    if speed:
        rate = f"{speed.pairs_per_second:,.0f}" + ("" if speed.is_cut else " (whole model)")
        peak, size = f"{speed.peak_mb:,.0f} MB", f"{speed.bundle_mb:,.0f} MB"
    measures = [_cell(_at_best(record, name)) for name in names]
    tokens = "any" if record.max_length is None else f"{record.max_length:,}"
    layers = f"{best.layer} of {len(record.layers) - 1}", ", ".join(str(one.layer) for one in best.others) or "none"
    return _name(record), record.precision, *layers, *measures, rate, peak, size, tokens


def _of_record(record: Record, names: Sequence[str], *, by_language: bool) -> Iterator[str]:
    """Yield the tables of a record: all measures, and then the language pairs, if there are several."""
    yield f"#### {_name(record)}, {record.precision}: {record.judgements}"
    languages = [name for name in record.layers[0] if name != MEAN]
    rows = [[str(at), *(_cell(layer[MEAN].get(name)) for name in names)] for at, layer in enumerate(record.layers)]
    yield table(("layer", *(MEASURES[name] for name in names)), rows)
    if not by_language:
        return
    if len(languages) > 1:
        for name in names:
            rows = [
                [str(at), *(_cell(layer[of].get(name)) for of in languages)] for at, layer in enumerate(record.layers)
            ]
            yield f"{MEASURES[name]} by language pair:\n\n{table(('layer', *languages), rows)}"
    rows = [
        _best_row(name, record.best[name], record.layers) for name in ([MEAN] if len(languages) > 1 else []) + languages
    ]
    yield table(("language pair", "best layer", "Pearson's r", "gain from choosing", "perhaps as good"), rows)


def _best_row(name: str, best: Best, layers: Sequence[Mapping[str, Mapping[str, Value]]]) -> list[str]:
    others = (f"{one.layer} (lower by {one.loss:.3f}, at most {one.loss_high:.3f})" for one in best.others)
    gain = "-" if best.optimism is None else f"{best.optimism:.3f}"
    return [name, str(best.layer), _cell(layers[best.layer][name]["pearson"]), gain, ", ".join(others) or "none"]


def _at_best(record: Record, name: str) -> Value:
    """Return a measure at the best layer by Pearson's r, the mean over language pairs."""
    return record.layers[record.best[MEAN].layer][MEAN].get(name, Value(None, None, None))


def _cell(value: Value | None) -> str:
    if value is None or value.value is None:
        return "-"
    interval = "" if value.low is None or value.high is None else f" ({_short(value.low)} to {_short(value.high)})"
    return f"{value.value:.3f}{interval}"


def _short(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1)


def _name(record: Record) -> str:
    return record.model if record.preset == PLAIN else f"{record.model} with {record.preset}"


def _variant(record: Record) -> str:
    return record.precision if record.preset == PLAIN else f"{record.precision} with {record.preset}"


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
