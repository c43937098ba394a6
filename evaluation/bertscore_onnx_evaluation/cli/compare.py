"""`bertscore-onnx compare`: compares systems, and tests whether their scores differ significantly."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from itertools import groupby
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.inputs import (
    InputFile,
    candidate_column,
    check_standard_input,
    check_tables,
    input_file,
    reference_columns,
)
from bertscore_onnx.cli.options import (
    FilesFormat,
    check_contexts,
    check_effects,
    check_model,
    shared_options,
)
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import ColumnNames, columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo, print_table, write_utf8
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.aligned import terminal_width
from bertscore_onnx.tables.sources import open_source, read_whole_rows
from bertscore_onnx_evaluation.cli.options import (
    ContextSentences,
    Html,
    Metrics,
    given_settings,
    metrics_of,
    sentences_before,
)

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.tables.sources import Dialect
    from bertscore_onnx.tables.whole_table import WholeTable
    from bertscore_onnx_evaluation.harness_logs import HarnessLog
    from bertscore_onnx_evaluation.systems.comparison import Comparison, Example
    from bertscore_onnx_evaluation.systems.join import Missing, SegmentColumns

BERTSCORE = "bertscore"
_ROLES = ("candidate", "reference", "id")


@shared_options(without=("all_layers",), needs_model=False)
def compare(
    cand: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--cand",
            metavar="FILE...",
            help="The texts of each system: one per line, or the column candidate of a table; or one table with a "
            "column for each system. The first is the baseline.",
        ),
    ] = None,
    ref: Annotated[
        list[str] | None,
        typer.Option(
            "-r", "--ref", metavar="FILE...", help="References; with several, the best one counts for each segment."
        ),
    ] = None,
    *,
    settings: "ScorerSettings",
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            metavar="FILE...",
            help="Segment scores that other metrics, or people, gave: tables with a column for each system, or with "
            "the columns system, segment and score; or logs of lm-evaluation-harness or Inspect. With -c they "
            "stand beside our metrics, otherwise alone.",
        ),
    ] = None,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--systems",
            metavar="NAME...",
            help="The systems to compare: columns of a table, or names of files.  [default: all; of a table those "
            "whose columns are not ids, languages, documents, human judgements or sizes]",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="The system to compare with.  [default: the first]")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="N",
            min=2,
            help="Every N files of -c, and of --scores, are runs of one system, or of one metric. A table may have a "
            "column run instead.",
        ),
    ] = None,
    missing: Annotated[
        Literal["raise", "drop"],
        typer.Option("--missing", help="Refuse a segment that some file lacks, or leave it out for all systems."),
    ] = "raise",
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    input_format: FilesFormat = None,
    lower_better: Annotated[
        list[str] | None,
        typer.Option(
            "--lower-better", metavar="NAME...", help="The metrics in --scores whose lower scores are better."
        ),
    ] = None,
    metric: Metrics = None,
    test: Annotated[
        Literal["permutation", "mid-p", "sacrebleu-bs", "sacrebleu-ar"],
        typer.Option(
            "--test",
            help="A paired permutation test; its mid-p, for scores of few grades; or one of sacreBLEU's tests, to the "
            "digit.",
            rich_help_panel="Tests",
        ),
    ] = "permutation",
    resamples: Annotated[
        int | None,
        typer.Option(
            "--resamples",
            metavar="N",
            min=1,
            help="Number of swaps.  [default: 10,000; sacrebleu-bs: 1,000 resamples]",
            rich_help_panel="Tests",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the resamples.", rich_help_panel="Tests")
    ] = 12345,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Also test every pair of systems.", rich_help_panel="Tests")
    ] = False,
    documents: Annotated[
        str | None,
        typer.Option(
            "--documents",
            metavar="FILE",
            help="The document of each segment: lines, or the column document of a table. Tests take whole documents.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Also compare the systems within each group of segments, such as a domain or a language.",
        ),
    ] = None,
    context_sentences: ContextSentences = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            metavar="D",
            help="Also test whether a system is at most D worse than the baseline.",
            rich_help_panel="Tests",
        ),
    ] = None,
    power: Annotated[
        list[float] | None,
        typer.Option(
            "--power",
            metavar="D...",
            help="Also print how often a true difference of D is found, and with how many segments.",
            rich_help_panel="Tests",
        ),
    ] = None,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit with 1 if a system is significantly worse than the baseline; with --margin, unless all are "
            "shown to be not worse by it.",
            rich_help_panel="Tests",
        ),
    ] = False,
    output_format: Annotated[
        Literal["text", "json", "tsv", "latex"],
        typer.Option(
            "--format",
            help="Print text, one JSON object, a row for each metric and system with all digits, or a table for LaTeX.",
        ),
    ] = "text",
    methods: Annotated[
        bool, typer.Option("--methods", help="Also print a paragraph on the test for a paper, and its BibTeX entries.")
    ] = False,
    html: Html = None,
    examples: Annotated[
        int,
        typer.Option(
            "--examples", metavar="N", min=0, help="For each system, show the N segments with the largest differences."
        ),
    ] = 3,
    quiet: bool,
) -> None:
    """Compare systems, with tests of their differences.

    Every system is compared with the first, the baseline. p is the probability of a difference at least this large if
    both systems were equally good; a * marks values below 0.05. With three systems or more, p is corrected for their
    number by Holm's method, and the * goes by that. The last columns are the numbers of segments that the system wins,
    loses and ties, and of those on which the two differ.

    Rows of tables belong together if their ids are the same; lines of text files go by position.

    Needs the extra `evaluation`.

    Examples:
        # Compare a system with a baseline, the first file
        bertscore-onnx compare --lang en -r ref.txt -c base.txt other.txt
        # Compare three systems by documents, and write a page with charts
        bertscore-onnx compare -m BUNDLE -r ref.txt -c a b c --documents docs.txt
        bertscore-onnx compare -m BUNDLE -r ref.txt -c a b c --html report.html
        # Compare columns of a table, which has a column of documents
        bertscore-onnx compare -m BUNDLE -c all.csv --systems a b --documents all.csv
        # Compare by BLEU, with a test of sacreBLEU
        bertscore-onnx compare --metric bleu --test sacrebleu-ar -r ref.txt -c a b
        # Compare scores that another metric gave
        bertscore-onnx compare --scores comet.csv --baseline base --missing drop
        # Compare two evaluation runs
        bertscore-onnx compare --scores old.eval new.eval
        # Fail in a continuous build if the new system is worse
        bertscore-onnx compare --scores comet.csv --baseline old --fail-if-worse
    """
    named = columns_of(columns, *_ROLES)
    id_column = named("id")
    default = [] if scores and not (settings["model_type"] or settings["lang"]) else [BERTSCORE]
    metrics = metrics_of(metric or default)
    has_bertscore = BERTSCORE in metrics
    if not cand and not scores:
        raise typer.BadParameter("give the texts of the systems, or --scores.", param_hint="--cand")
    if not ref and (len(cand or ()) > 1 or (metrics and not cand)):
        raise typer.BadParameter("give at least one file of references.", param_hint="--ref")
    if has_bertscore:
        check_model(settings["model_type"], settings["lang"])
    check_effects(
        *((option, not has_bertscore, "without --metric bertscore; add it") for option in given_settings(settings)),
        ("--context-sentences", bool(context_sentences) and not has_bertscore, "without --metric bertscore; add it"),
        ("--lower-better", bool(lower_better) and not scores, "without --scores; add it"),
        ("--ref", bool(ref) and not cand, "without --cand; add it"),
        ("--methods", methods and output_format != "text", "with --format; JSON has the paragraph as methods"),
    )
    num_context = sentences_before(settings, context_sentences)
    if num_context and documents is None:
        raise typer.BadParameter(
            "give --documents FILE: the sentences before a segment are those of its document.",
            param_hint="--context-sentences" if context_sentences else "--matching",
        )
    if has_bertscore and not num_context:
        check_contexts(settings, "give --context-sentences 1 or more, with --documents")
    dialect = dialect_of(input_format)
    files, of_references, of_documents = _choose_systems(
        cand or (),
        ref or (),
        documents,
        columns=named,
        dialect=dialect,
    )

    from bertscore_onnx.errors import check_installed
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx_evaluation.harness_logs import join_logs
    from bertscore_onnx_evaluation.systems.compare_systems import compare as compare_systems
    from bertscore_onnx_evaluation.systems.join import DOCUMENT, text_columns

    needed = {
        "sacrebleu": bool(metrics.keys() - {BERTSCORE}),
        "jinja2": html is not None,
    }
    check_installed((package for package, is_needed in needed.items() if is_needed), "evaluation", "Comparing systems")
    texts: Any = systems
    references: list[SegmentColumns] = []
    table_of = cache(_table)
    if files:
        texts, references = _read_texts(files, of_references, systems, runs or 1, id_column, by, missing, table_of)
    names = [_read(file, id_column, missing, table_of) for file in of_documents]
    given, logs = _read_scores(scores or (), runs or 1, dialect)
    notes: list[str] = []
    if logs:
        log, lower, notes = join_logs(logs)
        given[log.title] = log
        lower_better = [*(lower_better or ()), *lower]
        texts = texts or [*dict.fromkeys(log.keys("system"))]
        if not names and "document" in log.names:
            names = [text_columns(log, DOCUMENT, missing=missing)]
    check_destination(html, [*(cand or ()), *(ref or ()), *(scores or ()), documents], "--html")
    with BERTScorer(**settings) if has_bertscore else nullcontext() as scorer:
        comparison = compare_systems(
            texts,
            references or None,
            scores=given or None,
            lower_is_better=lower_better or (),
            baseline=baseline,
            id_column=id_column,
            missing=missing,
            scorer=scorer,
            metrics=metrics or None,
            test=test,
            num_resamples=resamples,
            seed=seed,
            all_pairs=all_pairs,
            documents=names[0] if names else None,
            by=by,
            context_sentences=num_context,
            margin=margin,
            power=power or (),
            num_examples=examples,
            verbose=False if quiet else None,
        )
    if not quiet:
        for note in notes:
            echo(note)
        _print_choices(comparison)
    try:
        print_comparison(comparison, output_format)
        if methods:
            print(f"\n{comparison.methods}\n\n{comparison.bibtex}")
    finally:  # the scores are the costly part, and do not depend on who reads the table
        if html is not None:
            write_whole(html, comparison.to_html())
    if fail_if_worse and (regressions := comparison.regressions):
        for sentence in regressions:
            echo(f"Failed: {sentence}")
        raise typer.Exit(1)


def _choose_systems(
    systems: Sequence[str],
    references: Sequence[str],
    documents: str | None,
    *,
    columns: ColumnNames,
    dialect: "Dialect",
) -> tuple[dict[str, InputFile], list[InputFile], list[InputFile]]:
    """Return the file of each system by the system's name, those of references, and of documents.

    A system is called after its file, without folder and suffixes, or as it was given if two would have that name. A
    single file has to be a table, of all systems.
    """
    named = [documents] if documents is not None else []
    check_standard_input([*systems, *references, *named], "--cand, --ref, --documents")
    for position, name in enumerate(systems):
        if any(_is_same_file(name, other) for other in systems[:position]):
            raise typer.BadParameter(f"{name} is given twice; each system counts once.", param_hint="--cand")
    column, of_reference = (candidate_column(columns),), reference_columns(columns)
    of_text = column if len(systems) > 1 else column + of_reference
    stems = [PurePath(PurePath(name.removesuffix(".gz")).stem).name for name in systems]
    of_systems = {
        stem if stems.count(stem) == 1 and stem not in systems else name: input_file(name, of_text, dialect)
        for name, stem in zip(systems, stems, strict=True)
    }
    is_one_text = len(systems) == 1 and next(iter(of_systems.values())).format == "text"
    if is_one_text or (references and not systems):
        raise typer.BadParameter(
            f"there is {'one' if systems else 'no'} system; expected a baseline and at least one to compare with it, "
            "such as -c BASE -c OTHER, or a table with a column for each system.",
            param_hint="--cand",
        )
    of_references = [input_file(name, of_reference, dialect) for name in references]
    of_documents = [input_file(name, (), dialect) for name in named]
    files = [*of_systems.values(), *of_references, *of_documents]
    check_tables(files, columns)
    return of_systems, of_references, of_documents


def _is_same_file(name: str, other: str) -> bool:
    return name == other or (os.path.isfile(name) and os.path.isfile(other) and Path(name).samefile(other))


def _read_texts(
    files: Mapping[str, InputFile],
    references: Sequence[InputFile],
    systems: Sequence[str] | None,
    runs: int,
    id_column: str | None,
    by: str | None,
    missing: "Missing",
    table_of: "Callable[[InputFile], WholeTable]",
) -> "tuple[SegmentColumns | dict[str, Any], list[SegmentColumns]]":
    """Return the texts of the systems, in one table or by name, and the references."""
    from bertscore_onnx_evaluation.systems.join import system_texts, text_columns

    of_references = [_read(file, id_column, missing, table_of) for file in references]
    if len(files) == 1:
        [file] = files.values()
        table, (candidate, *columns) = table_of(file), file.columns
        texts = system_texts(
            table,
            systems=systems,
            candidate=candidate,
            references=columns,
            id_column=id_column,
            by=by,
            missing=missing,
        )
        return texts, of_references or [text_columns(table, columns, id_column=id_column, missing=missing)]
    groups = _names_of_runs([*files], runs)
    for name in systems or ():
        if name not in groups:
            raise InputError(f"There is no file of the system {name!r}; there are {', '.join(groups)}.")
    read = partial(_read, id_column=id_column, missing=missing, table_of=table_of)
    of_systems = {name: [*map(read, (files[run] for run in groups[name]))] for name in systems or groups}
    return {name: of_runs if runs > 1 else of_runs[0] for name, of_runs in of_systems.items()}, of_references


def _names_of_runs(names: Sequence[str], runs: int) -> dict[str, Sequence[str]]:
    """Return every so many names by what they have in common; or each by itself."""
    if len(names) % runs:
        raise typer.BadParameter(
            f"there are {len(names)} files, which are no multiple of {runs} runs; expected as many of each.",
            param_hint="--runs",
        )
    groups = [names[start : start + runs] for start in range(0, len(names), runs)]
    prefixes = [os.path.commonprefix(one) for one in groups]  # noqa: RUF071 -- characters in common are meant
    titles = [
        one[0] if runs == 1 else prefix.rstrip("._-") or one[0] for one, prefix in zip(groups, prefixes, strict=True)
    ]
    return {title if titles.count(title) == 1 else one[0]: one for title, one in zip(titles, groups, strict=True)}


def _read(
    file: InputFile, id_column: str | None, missing: "Missing", table_of: "Callable[[InputFile], WholeTable]"
) -> "SegmentColumns":
    """Return the texts, the lists of references, or the documents in a file."""
    from bertscore_onnx_evaluation.systems.join import DOCUMENT, SegmentColumns, text_columns

    if file.format != "text":
        column = file.columns if len(file.columns) > 1 else file.columns[0] if file.columns else DOCUMENT
        return text_columns(table_of(file), column, id_column=id_column, missing=missing)
    with open_source(file.name) as source:
        lines = [line for [line] in read_whole_rows(file.rows(source), source.title)]
    title = source.title
    return SegmentColumns(title, {title: lines}, place=lambda row: f"{title}, line {row + 1}", unit="line")


def _table(file: InputFile) -> "WholeTable":
    from bertscore_onnx.tables.whole_table import read_table

    return read_table(file.name, file.dialect)


def _read_scores(
    names: Sequence[str], runs: int, dialect: "Dialect"
) -> "tuple[dict[str, WholeTable], list[HarnessLog]]":
    """Return the tables of scores by their names, without folder and suffixes, which metrics have; and the logs."""
    from bertscore_onnx.tables.columns import ID_COLUMNS
    from bertscore_onnx.tables.whole_table import WholeTable, read_table
    from bertscore_onnx_evaluation.harness_logs import read_log
    from bertscore_onnx_evaluation.systems.join import RUN

    tables: dict[str, WholeTable] = {}
    logs: list[HarnessLog] = []
    for name in names:
        if dialect.format is None and (log := read_log(name)) is not None:
            logs.append(log)
            continue
        metric = PurePath(name.removesuffix(".gz")).stem
        if metric in tables:
            raise InputError(f"{name} has scores of {metric}, which {tables[metric].title} has too. Rename one.")
        tables[metric] = read_table(name, dialect)
    if logs and runs > 1:
        raise typer.BadParameter(f"{logs[0].title} is a log, whose runs are its epochs.", param_hint="--runs")
    if runs > 1:
        tables = {
            name: WholeTable.of_runs([tables[one] for one in of_runs], RUN, ID_COLUMNS)
            for name, of_runs in _names_of_runs([*tables], runs).items()
        }
    return tables, logs


def _print_choices(comparison: "Comparison") -> None:
    """Print on standard error which columns were taken for systems, and how many segments were left out."""
    for choice in comparison.choices:
        echo(choice)
    if comparison.choices:
        echo(f"The baseline is {comparison.systems[0]}. --systems and --baseline choose others.")
    if dropped := comparison.dropped:
        shown = ", ".join(map(str, dropped[:10])) + (", …" if len(dropped) > 10 else "")
        number = len(dropped) + comparison.num_segments
        echo(f"Left out {len(dropped)} of {number} segments, which some file lacks: {shown}.")


def print_comparison(comparison: "Comparison", output_format: Literal["text", "json", "tsv", "latex"]) -> None:
    """Print a comparison in a format, with the segments that differ most as text."""
    write_utf8()
    if output_format == "json":
        print(comparison.to_json(), flush=True)
    else:
        print(comparison.table(output_format))
    if output_format == "text":
        for system, examples in groupby(comparison.examples, key=lambda example: example.system):
            print(f"\nSegments on which {system} and {comparison.systems[0]} differ most:")
            print_table([row for example in examples for row in _rows(comparison, example)], width=terminal_width())


def _rows(comparison: "Comparison", example: "Example") -> Iterator[tuple[str, str, str]]:
    segment = example.segment
    system = comparison.systems.index(example.system)
    yield f"{comparison.segments[segment]}", f"{example.delta:+.4f}", ""
    for name, texts in ((example.system, system), (comparison.systems[0], 0)):
        yield "", name, comparison.candidates[texts][segment]
    for reference in comparison.references[segment]:
        yield "", "reference", reference
