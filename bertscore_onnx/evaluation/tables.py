"""Tables of text, aligned by tabulate."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.evaluation.challenge_sets import Condition
from bertscore_onnx.evaluation.hybrid import Estimate

if TYPE_CHECKING:
    from bertscore_onnx.evaluation.auc import AucResult
    from bertscore_onnx.evaluation.challenge_sets import PhenomenaResult
    from bertscore_onnx.evaluation.hybrid import HybridOfLanguagePair, HybridOfMetric, HybridResult
    from bertscore_onnx.evaluation.relative_ranking import DarrOfLanguagePair, DarrOfMetric, DarrResult


def tabulated(
    rows: Sequence[Sequence[str]], header: Sequence[str], *, names: Sequence[int] = (0,), table_format: str = "simple"
) -> str:
    """Align rows, numbers to the right.

    Args:
        rows: cells, written as they are.
        header: the names of the columns.
        names: the columns that hold names, which are aligned to the left.
        table_format: as tabulate calls it.

    Raises:
        MissingExtraError: tabulate is not installed.
    """
    with needs_extra("evaluation", "Writing a table"):
        from tabulate import tabulate
    alignment = ["left" if column in names else "right" for column in range(len(header))]
    return str(tabulate(rows, header, tablefmt=table_format, colalign=alignment, disable_numparse=True))


# The results of the tasks as tables to read, or as TSV with all digits and the names that JSON has.


TableFormat = Literal["text", "tsv"]

MISSING = "-"
"""Stands for a value that is missing, whose reason is told below the table."""

ALL = "(all)"
"""Stands for all examples where categories do."""


def auc_table(result: "AucResult", table_format: TableFormat) -> str:
    """Write a row for each metric.

    Raises:
        InputError: there is no such format; likewise of the functions below.
        MissingExtraError: tabulate is not installed; likewise.
    """
    if _is_tsv(table_format):
        return _tsv([{"metric": name, **values} for name, values in result.to_dict()["metrics"].items()])
    rows = [
        [
            one.metric,
            f"{one.n:,}",
            f"{one.positive:,}",
            _number(one.roc_auc.value),
            _number(one.average_precision.value),
        ]
        for one in result.metrics
    ]
    header = ["metric", "pairs", "positive", "ROC AUC", "average precision"]
    return _with_notes(tabulated(rows, header), [_reason(one.metric, one.reason) for one in result.metrics])


def darr_table(result: "DarrResult", table_format: TableFormat) -> str:
    """Write a table for each language pair, or one for all as TSV."""
    if _is_tsv(table_format):
        return _tsv(_by_language_pair(result.to_dict()))
    header = ["metric", "tau", "pairs", "concordant", "discordant", "ties", "tau without ties"]
    blocks = [
        _with_notes(
            f"{_title(pair)}\n" + tabulated([_darr_row(one) for one in pair.metrics], header),
            [_reason(one.metric, one.reason) for one in pair.metrics],
        )
        for pair in result.language_pairs
    ]
    points = f"Pairs are outputs of one segment whose judgements differ by {result.threshold:g} or more."
    return "\n\n".join([*blocks, f"{points}\nA tie of the metric counts as discordant."])


def _darr_row(one: "DarrOfMetric") -> list[str]:
    counts = one.counts
    if counts is None:
        return [one.metric, *[MISSING] * 6]
    numbers = (counts.pairs, counts.concordant, counts.discordant, counts.ties)
    return [one.metric, _signed(counts.tau), *(f"{number:,}" for number in numbers), _signed(counts.tau_without_ties)]


def hybrid_table(result: "HybridResult", table_format: TableFormat) -> str:
    """Write two tables for each language pair, or one of all metrics as TSV."""
    if _is_tsv(table_format):
        return _tsv(_by_language_pair(result.to_dict()))
    settings = result.settings
    blocks = [block for pair in result.language_pairs for block in _hybrid_blocks(pair, settings.num_hybrids)]
    choice = f"the best of {settings.num_candidates:,} hybrids is chosen, {settings.num_trials:,} times"
    return "\n\n".join(
        [*blocks, f"Hits@1, MRR and Diff where {choice};\nintervals of 95 %. p is one-sided, by Williams' test."]
    )


def _hybrid_blocks(pair: "HybridOfLanguagePair", num_hybrids: int) -> list[str]:
    title = f"{_title(pair)}, {num_hybrids:,} hybrids of {pair.num_segments:,} segments"
    rows = [_hybrid_row(one) for one in pair.metrics]
    table = tabulated(rows, ["metric", "score", "Pearson", "Hits@1", "MRR", "Diff"])
    notes = [_reason(one.metric, one.pearson.reason) for one in pair.metrics]
    notes += [_reason(f"{test.better} and {test.worse}", test.williams.reason) for test in pair.pairs]
    blocks = [_with_notes(f"{title}\n{table}", notes)]
    if pair.pairs:
        tests = [[test.better, test.worse, _number(test.williams.t, 2), _p(test.williams.p)] for test in pair.pairs]
        blocks.append(tabulated(tests, ["metric", "better than", "t", "p"], names=(0, 1)))
    return blocks


def _hybrid_row(one: "HybridOfMetric") -> list[str]:
    chosen = one.selection
    estimates = [None] * 3 if chosen is None else [chosen.hits_at_1, chosen.mrr, chosen.diff]
    score = "corpus" if one.is_corpus_score else "mean"
    return [one.metric, score, _signed(one.pearson.value), *map(_with_interval, estimates)]


def phenomena_table(result: "PhenomenaResult", table_format: TableFormat) -> str:
    """Write a table for each metric, or one of all metrics and categories as TSV."""
    if _is_tsv(table_format):
        return _tsv(
            [
                {"metric": metric, "category": category, **_flat(conditions)}
                for metric, values in result.to_dict()["metrics"].items()
                for category, conditions in {ALL: values["conditions"], **values["categories"]}.items()
            ]
        )
    blocks = []
    for one in result.metrics:
        asked = (one.conditions.i, one.conditions.ii, one.conditions.iii)
        categories = (ALL, *sorted({name for condition in asked for name in condition.categories}))
        rows = [[name, *(cell for condition in asked for cell in _cells(condition, name))] for name in categories]
        header = ["category", "i: mean", "of", "ii: right", "of", "iii: right", "of"]
        notes = [_reason(name, condition.reason) for name, condition in zip(("i", "ii", "iii"), asked, strict=True)]
        blocks.append(_with_notes(f"{one.metric} ({one.signature})\n{tabulated(rows, header)}", notes))
    return "\n\n".join(
        [
            *blocks,
            "i: the mean score of good translations. ii: a good one scores above every bad one.\n"
            "iii: bad ones score in their order, from better to worse. Categories of fewer than\n"
            f"{result.min_examples} examples are not shown, and count in {ALL}.",
        ]
    )


def _cells(condition: Condition, category: str) -> tuple[str, str]:
    """Return the value of a category and its number of examples."""
    value, n = condition.categories.get(category, (None, 0))
    if category == ALL:
        value, n = condition.value, condition.n
    if value is None:
        return MISSING, MISSING
    return (_number(value, 3) if condition.right is None else f"{value:.1%}"), f"{n:,}"


def _is_tsv(table_format: TableFormat) -> bool:
    if table_format not in get_args(TableFormat):
        raise InputError(f"There is no format {table_format!r}. Choose one of {', '.join(get_args(TableFormat))}.")
    return table_format == "tsv"


def _by_language_pair(whole: Mapping[str, Any]) -> list[dict[str, object]]:
    return [
        {"lang_pair": language_pair, "metric": metric, **_flat(values)}
        for language_pair, of_pair in whole["language_pairs"].items()
        for metric, values in of_pair["metrics"].items()
    ]


def _flat(values: Mapping[str, Any]) -> dict[str, object]:
    """Return what is nested by names such as `ii_right` and `mrr_low`."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}_{inner}": one for inner, one in value.items()}
        elif name.endswith("_interval"):
            low, high = value or (None, None)
            flat |= {name.replace("interval", "low"): low, name.replace("interval", "high"): high}
        else:
            flat[name] = value
    return flat


def _tsv(rows: Sequence[Mapping[str, object]]) -> str:
    header = list(dict.fromkeys(name for row in rows for name in row))
    cells = [["" if row.get(name) is None else str(row[name]) for name in header] for row in rows]
    return "\n".join("\t".join(line) for line in [header, *cells])


def _with_notes(table: str, notes: Sequence[str]) -> str:
    return "\n".join([table, *(note for note in notes if note)])


def _title(pair: "DarrOfLanguagePair | HybridOfLanguagePair") -> str:
    without = f", without {', '.join(pair.people)}, who are people" if pair.people else ""
    return f"{pair.language_pair}: {len(pair.systems)} system{'s' * (len(pair.systems) != 1)}{without}"


def _reason(name: str, reason: str) -> str:
    return f"{name}: {reason}" if reason else ""


def _number(value: float | None, digits: int = 4) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _p(value: float | None) -> str:
    return "<.0001" if value is not None and value < 0.00005 else _number(value).removeprefix("0")


def _signed(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.4f}"


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return MISSING
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
