"""The systems that a task judges metrics by: from an EvalSet or a table, with the scores that were asked for."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from bertscore_onnx.cli.judgements import Table, read_table
from bertscore_onnx.cli.meta_options import MetaOptions
from bertscore_onnx.cli.options import check_effects
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats, mean_by_system
from bertscore_onnx.evaluation.eval_set import EvalSet, check_names, read_eval_set
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.evaluation.metrics import MetricScores, score_systems
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.sources import STANDARD_INPUT

# The scores that a task judges, one per row: columns of the table, and metrics of its texts.


CANDIDATE_COLUMNS = ("candidate",)
REFERENCE_COLUMNS = ("reference", "references")


def scores_of_rows(
    options: MetaOptions,
    table: Table,
    candidate_columns: Sequence[str] = CANDIDATE_COLUMNS,
    reference_columns: Sequence[str] = REFERENCE_COLUMNS,
) -> dict[str, Floats]:
    """Return the scores of each metric that was asked for, those of columns first; higher ones are better.

    Args:
        options: which metrics.
        table: the rows.
        candidate_columns, reference_columns: what the columns of texts may be called where no option says it.

    Raises:
        typer.BadParameter: no metric was asked for, or two have one name.
        InputError: a column is missing, or holds something else than scores or texts.
    """
    if not options.scores and not options.metrics:
        raise typer.BadParameter(
            "name columns of scores, --score COLUMN, or score the texts, --model MODEL or --metric bleu.",
            param_hint="--score, --model, --metric",
        )
    if both := sorted({*options.scores} & {*options.metrics}):
        raise typer.BadParameter(
            f"{both[0]!r} is both a column and a metric of --metric; rename the column.", param_hint="--score"
        )
    given = {name: table.numbers(table.find(name, "--score")) for name in options.scores}
    if not options.metrics:
        return given
    candidates = table.texts(table.find(options.columns.candidate or candidate_columns, "--candidate-column"))
    references = references_of_rows(options, table, reference_columns)
    with scorer_of(options) as scorer:
        metrics, verbose = sacrebleu_options(options), False if options.quiet else None
        own = score_systems(metrics, [candidates], [references], scorer=scorer, verbose=verbose)
    return given | {name: np.asarray(scores.negated.segment)[0] for name, scores in own.items()}


def references_of_rows(
    options: MetaOptions, table: Table, columns: Sequence[str] = REFERENCE_COLUMNS
) -> list[list[str]]:
    """Return the references of each row, one or more.

    Raises:
        InputError: a column is missing, or holds something else than texts.
    """
    wanted = options.columns.reference or (columns,)
    lists = [table.lists(table.find(names, "--reference-column")) for names in wanted]
    return [[text for texts in row for text in texts] for row in zip(*lists, strict=True)]


@contextmanager
def scorer_of(options: MetaOptions) -> Iterator[BERTScorer | None]:
    """Open the scorer for as long as the block lasts; None where no model was named."""
    if "bertscore" not in options.metrics:
        yield None
        return
    with BERTScorer(options.model, options.num_layers, device=options.device, nthreads=options.num_threads) as scorer:
        yield scorer


def sacrebleu_options(options: MetaOptions) -> Mapping[str, Mapping[str, Any]]:
    """Return the metrics with the options of sacreBLEU's classes."""
    told: Mapping[str, Mapping[str, Any]] = {
        "bleu": {"smooth_method": options.bleu_smooth},
        "chrf": {"word_order": options.chrf_word_order},
    }
    return {metric: told.get(metric, {}) for metric in options.metrics}


# Systems from a table of judgements: a row for each output of a system, or for each system.


LANGUAGE_PAIR_COLUMNS = ("lang_pair",)
SYSTEM_COLUMNS = ("system",)
SEGMENT_COLUMNS = ("segment", "segment_id")
HUMAN_COLUMNS = ("human", "human_score")


def systems_of_table(table: Table, options: MetaOptions, *, several_judgements: bool = False) -> list[JudgedSystems]:
    """Return the systems of each language pair, with the scores that the options name.

    Args:
        table: its columns `lang_pair`, `system`, `segment` and `human`. A single `--language-pair` stands for the first
            of these where it is not there; without `segment` each row is a whole system. A column of systems that is
            empty throughout stands for one system without a name.
        options: which columns and language pairs.
        several_judgements: whether an output may have several rows, each with a judgement, of which the mean counts.

    Raises:
        InputError: a column is missing, with the nearest names; a value is not what its column holds, or a system is
            there twice for one segment, or with another text or score the second time, with the line.
    """
    rows = _Rows.read(table, options)
    wanted = options.language_pairs or tuple(dict.fromkeys(rows.language_pairs))
    for name in wanted:
        if name not in rows.language_pairs:
            there = ", ".join(dict.fromkeys(rows.language_pairs))
            raise InputError(f"{table.title} has no rows of the language pair {name!r}; it has {there}.")
    pairs = np.array(rows.language_pairs, dtype=object)
    return [
        _language_pair(table, rows, name, np.flatnonzero(pairs == name), several_judgements)
        for name in dict.fromkeys(wanted)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The columns of the table that are needed."""

    language_pairs: list[str]
    systems: list[str]
    segments: list[str] | None
    human: Floats
    scores: dict[str, Floats]
    candidates: list[str] | None
    references: list[list[str]]

    @classmethod
    def read(cls, table: Table, options: MetaOptions) -> "_Rows":
        columns = options.columns
        segment = _segment_column(table, columns.segment)
        human_column = table.find(columns.human or HUMAN_COLUMNS, "--human-column")
        human = table.numbers(human_column)
        scores = {name: table.numbers(table.find(name, "--score")) for name in dict.fromkeys(options.scores)}
        for name, values in scores.items():
            for row in np.flatnonzero(np.isnan(values) & ~np.isnan(human)):
                raise InputError(
                    f"{table.place(int(row))}: the column {name!r} holds no score, and {human_column!r} a judgement. "
                    "Add the score, or leave out the judgement."
                )
        if options.metrics and segment is None:
            raise InputError(
                f"{table.title} has no column of segments, so that each row is a whole system, which has no text to "
                "score. Name the column with --segment-column."
            )
        candidates = None
        if options.metrics:
            candidates = table.texts(table.find(columns.candidate or CANDIDATE_COLUMNS, "--candidate-column"))
        return cls(
            _language_pairs(table, options),
            _systems(table, table.find(columns.system or SYSTEM_COLUMNS, "--system-column")),
            None if segment is None else table.keys(segment),
            human,
            scores,
            candidates,
            references_of_rows(options, table) if options.metrics else [],
        )

    def output(self, row: int) -> list[object]:
        """Return the text and the scores of a row, which are those of an output and not of its judgement."""
        texts = [] if self.candidates is None else [self.candidates[row], self.references[row]]
        scores = [None if np.isnan(values[row]) else float(values[row]) for values in self.scores.values()]
        return [*texts, *scores]


def _language_pairs(table: Table, options: MetaOptions) -> list[str]:
    asked = options.columns.language_pair
    if not asked and len(options.language_pairs) == 1 and not {*LANGUAGE_PAIR_COLUMNS} & {*table.names}:
        return [*options.language_pairs] * len(table)
    advice = "" if asked else ", or name the one language pair with --language-pair"
    return table.keys(table.find(asked or LANGUAGE_PAIR_COLUMNS, "--language-pair-column", advice))


def _segment_column(table: Table, asked: str | None) -> str | None:
    if not asked and not {*SEGMENT_COLUMNS} & {*table.names}:
        return None
    return table.find(asked or SEGMENT_COLUMNS, "--segment-column")


def _systems(table: Table, column: str) -> list[str]:
    return [""] * len(table) if table.is_blank(column) else table.keys(column)


def _language_pair(
    table: Table, rows: _Rows, name: str, chosen: NDArray[np.int64], several_judgements: bool
) -> JudgedSystems:
    systems = sorted({rows.systems[row] for row in chosen})
    segments = _in_order(rows.segments[row] for row in chosen) if rows.segments else [""]
    cells = _cells(table, rows, chosen, systems, segments, several_judgements)
    shape = (len(systems), len(segments))

    def arranged(values: Floats) -> Floats:
        matrix = np.full(shape, np.nan)
        matrix[tuple(cells.T)] = values[chosen]
        return matrix  # (systems, segments)

    human = _mean_judgements(rows.human[chosen], cells, shape)
    scores = {metric: arranged(values) for metric, values in rows.scores.items()}
    has_segments = rows.segments is not None
    candidates, references = _texts(rows, chosen, cells, shape)
    return JudgedSystems(
        name,
        tuple(systems),
        mean_by_system(human),
        human if has_segments else None,
        {
            metric: MetricScores(mean_by_system(values), values if has_segments else None)
            for metric, values in scores.items()
        },
        segments=tuple(segments) if has_segments else (),
        candidates=candidates,
        references=references,
    )


def _in_order(segments: Iterable[str]) -> list[str]:
    """Return each segment once: by number where all are whole numbers, and else as they come."""
    names = [*dict.fromkeys(segments)]
    return sorted(names, key=int) if all(re.fullmatch("[0-9]{1,18}", name) for name in names) else names


def _mean_judgements(human: Floats, cells: NDArray[np.int64], shape: tuple[int, int]) -> Floats:
    """Return the mean judgement of each output, (systems, segments), NaN where there is none."""
    is_judged = ~np.isnan(human)
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, tuple(cells[is_judged].T), human[is_judged])
    np.add.at(counts, tuple(cells[is_judged].T), 1)
    means: Floats = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    return means


def _cells(
    table: Table,
    rows: _Rows,
    chosen: NDArray[np.int64],
    systems: Sequence[str],
    segments: Sequence[str],
    several_judgements: bool,
) -> NDArray[np.int64]:
    """Return the system and the segment of each row, (rows, 2)."""
    system_at = {name: at for at, name in enumerate(systems)}
    segment_at = {name: at for at, name in enumerate(segments)}
    cells = [(system_at[rows.systems[row]], segment_at[rows.segments[row] if rows.segments else ""]) for row in chosen]
    first: dict[tuple[int, int], int] = {}
    for row, cell in zip(chosen.tolist(), cells, strict=True):
        earlier = first.setdefault(cell, row)
        if earlier == row:
            continue
        if not several_judgements:
            where = f"segment {rows.segments[row]!r}" if rows.segments else "it, and no column of segments is there"
            raise InputError(
                f"{table.place(row)}: the system {rows.systems[row]!r} is there a second time for {where}; the first "
                f"is {table.place(earlier)}. Expected one row for each, with the mean of several judgements."
            )
        if rows.output(row) != rows.output(earlier):
            raise InputError(
                f"{table.place(row)}: this judges the same output as {table.place(earlier)}, and has another text or "
                "score. Give both rows the same."
            )
    return np.array(cells, dtype=np.int64)


def _texts(
    rows: _Rows, chosen: NDArray[np.int64], cells: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[tuple[tuple[str | None, ...], ...] | None, tuple[tuple[tuple[str, ...], ...], ...]]:
    """Return the outputs, and the references of each, by system and segment; None where there are no texts."""
    if rows.candidates is None:
        return None, ()
    candidates: list[list[str | None]] = [[None] * shape[1] for _ in range(shape[0])]
    references: list[list[tuple[str, ...]]] = [[()] * shape[1] for _ in range(shape[0])]
    for row, (system, segment) in zip(chosen.tolist(), cells.tolist(), strict=True):
        candidates[system][segment] = rows.candidates[row]
        references[system][segment] = tuple(rows.references[row])
    return tuple(map(tuple, candidates)), tuple(map(tuple, references))


def read_systems(
    options: MetaOptions, *, unscored: Collection[str] = (), several_judgements: bool = False
) -> list[JudgedSystems]:
    """Return the systems of each language pair, with the scores that are there and then those of their texts.

    Args:
        options: what to read and to score.
        unscored: those of the metrics that the task computes itself from the texts.
        several_judgements: whether a table may have several rows for one output, of whose judgements the mean counts.

    Raises:
        typer.BadParameter: an option has no effect on what is read, or no metric was asked for.
        InputError: something was asked for that is not there or is not what it should be, or two scores have one name.
    """
    language_pairs = _of_eval_set(options) if is_eval_set(options) else _of_table(options, several_judgements)
    if options.output is not None:  # told now, before work is put into the scores
        for one in language_pairs:
            check_names(one.language_pair, one.systems, one.metrics)
    metrics = {name: told for name, told in sacrebleu_options(options).items() if name not in unscored}
    if not metrics:
        return language_pairs
    with scorer_of(options) as scorer:
        verbose = False if options.quiet else None
        return [
            _with_scores(one, score_systems(metrics, one.candidates, one.references, scorer=scorer, verbose=verbose))
            for one in language_pairs
            if one.candidates is not None
        ]


def is_eval_set(options: MetaOptions) -> bool:
    """Return whether the source is a folder."""
    return Path(options.source).is_dir()


def own_name(metric: str, judged: JudgedSystems) -> str:
    """Return what scores of texts are called: as those of an EvalSet are, with the reference at the end."""
    return f"{metric}-{judged.reference}" if judged.reference else metric


def _of_eval_set(options: MetaOptions) -> list[JudgedSystems]:
    of_tables = {"--score": options.scores, "--input-format": options.input_format}
    of_tables |= {f"--{name.replace('_', '-')}-column": value for name, value in asdict(options.columns).items()}
    check_effects(*((option, bool(value), "on a folder") for option, value in of_tables.items()))
    eval_set = EvalSet(options.source)
    chosen = options.language_pairs or [
        one for one in eval_set.language_pairs if options.gold in (None, *eval_set.golds(one))
    ]
    language_pairs = [
        read_eval_set(
            eval_set,
            one,
            gold=options.gold,
            reference=options.reference,
            metrics=_metrics_of(eval_set, one, options.metric_scores),
            with_texts=bool(options.metrics),
        )
        for one in dict.fromkeys(chosen or eval_set.language_pairs)
    ]
    for one in language_pairs:
        if not one.metrics and not options.metrics:
            there = ", ".join(eval_set.metrics(one.language_pair)) or "none at all"
            raise InputError(
                f"{options.source} has no scores of metrics of {one.language_pair} with the reference "
                f"{one.reference}; it has {there}. Name some with --metric-scores, or score the texts, with --model "
                "MODEL or --metric bleu."
            )
    return language_pairs


def _metrics_of(eval_set: EvalSet, language_pair: str, asked: Sequence[str]) -> list[str]:
    """Return those that were asked for, but not those that only another language pair has, with its reference."""
    here = eval_set.metrics(language_pair)
    elsewhere = {name for one in eval_set.language_pairs for name in eval_set.metrics(one)}.difference(here)
    return [name for name in asked if name not in elsewhere] or [*asked]


def _of_table(options: MetaOptions, several_judgements: bool) -> list[JudgedSystems]:
    of_folders = {"--gold": options.gold, "--reference": options.reference, "--metric-scores": options.metric_scores}
    check_effects(*((option, bool(value), "on a table") for option, value in of_folders.items()))
    if not options.scores and not options.metrics:
        raise typer.BadParameter(
            "name columns of scores, --score COLUMN, or score the texts, --model MODEL or --metric bleu.",
            param_hint="--score, --model, --metric",
        )
    if options.source != STANDARD_INPUT and not Path(options.source).exists():
        raise InputError(f"There is no folder or file {options.source!r}. Name an EvalSet or a table.")
    table = read_table(options.source, options.input_format)
    return systems_of_table(table, options, several_judgements=several_judgements)


def _with_scores(judged: JudgedSystems, scores: Mapping[str, MetricScores]) -> JudgedSystems:
    own = {own_name(name, judged): replace(one.negated, base_name=name) for name, one in scores.items()}
    for name in own:
        if name in judged.metrics:
            raise InputError(
                f"{judged.language_pair}: there are scores called {name!r} already. Give them another name, or leave "
                "out this `metric`."
            )
    return replace(judged, metrics={**judged.metrics, **own})
