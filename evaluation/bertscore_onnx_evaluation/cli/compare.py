"""`bertscore-onnx compare`.

It compares systems, and tests whether their scores differ significantly.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.inputs import InputFile, check_standard_input, check_tables
from bertscore_onnx.cli.options import (
    SETTINGS,
    FilesFormat,
    check_contexts,
    check_effects,
    check_model,
    option_name,
    shared_options,
)
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import NO_COLUMNS, columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo, print_table, write_utf8
from bertscore_onnx.tables.aligned import terminal_width
from bertscore_onnx.tables.formats import format_of
from bertscore_onnx.tables.roles import roles_of_command
from bertscore_onnx.tables.sources import open_source, read_whole_rows
from bertscore_onnx_evaluation.cli.options import (
    ContextSentences,
    Figure,
    Html,
    Metrics,
    metrics_of,
    sentences_before,
    test_option,
)

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.tables.formats import Dialect
    from bertscore_onnx.tables.whole_table import WholeTable
    from bertscore_onnx_evaluation.systems.comparison import Comparison
    from bertscore_onnx_evaluation.systems.comparison_record import Example
    from bertscore_onnx_evaluation.systems.input_reader import InputValues, Roles

_ROLES = roles_of_command("compare")


@shared_options(without=("all_layers",), needs_model=False)
def compare(
    cand: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--cand",
            metavar="FILE...",
            help="Texts of each system, the baseline first.",
        ),
    ] = None,
    ref: Annotated[
        list[str] | None,
        typer.Option(
            "-r",
            "--ref",
            metavar="FILE...",
            help="References; of several, the best one counts.",
        ),
    ] = None,
    *,
    settings: "ScorerSettings",
    given: frozenset[str],
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            metavar="FILE...",
            help="Scores of segments by other metrics, or logs.",
        ),
    ] = None,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--systems",
            metavar="NAME...",
            help="Columns, values or files to compare.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            help="The system to compare with.  [default: the first]",
        ),
    ] = None,
    missing: Annotated[
        Literal["raise", "drop"], typer.Option("--missing", help="Segments that a file lacks.")
    ] = "raise",
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    input_format: FilesFormat = None,
    lower_better: Annotated[
        list[str] | None,
        typer.Option("--lower-better", metavar="NAME...", help="Metrics of which less is better."),
    ] = None,
    higher_better: Annotated[
        list[str] | None,
        typer.Option("--higher-better", metavar="NAME...", help="Metrics of which more is better."),
    ] = None,
    metric: Metrics = None,
    resamples: Annotated[
        int,
        test_option(
            "--resamples",
            metavar="N",
            min=1,
            help="Number of swaps.",
        ),
    ] = 10_000,
    seed: Annotated[
        int,
        test_option(
            "--seed",
            metavar="N",
            min=0,
            help="Seed of the swaps.",
        ),
    ] = 12345,
    all_pairs: Annotated[
        bool,
        test_option(
            "--all-pairs",
            help="Also test every pair of systems.",
        ),
    ] = False,
    documents: Annotated[
        str | None,
        typer.Option(
            "--documents",
            metavar="FILE",
            help="The documents, which tests take as wholes.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMN", help="Also compare within each group of segments."),
    ] = None,
    context_sentences: ContextSentences = None,
    margin: Annotated[
        float | None,
        test_option("--margin", metavar="D", help="Also test whether a system is at most D worse."),
    ] = None,
    score_range: Annotated[
        tuple[float, float] | None,
        test_option(
            "--score-range",
            metavar="LOW HIGH",
            help="Lowest and highest possible score, for --margin.",
        ),
    ] = None,
    fail_if_worse: Annotated[
        bool, test_option("--fail-if-worse", help="Exit with 1 if a system is worse, 2 on errors.")
    ] = False,
    output_format: Annotated[
        Literal["text", "json", "tsv", "latex", "markdown"],
        typer.Option("--format", metavar="FORMAT", help="text, json, tsv, latex or markdown."),
    ] = "text",
    methods: Annotated[
        bool,
        typer.Option(
            "--methods",
            help="Also print a paragraph for a paper, and BibTeX.",
        ),
    ] = False,
    html: Html = None,
    figure: Figure = None,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            min=0,
            help="Show the N segments that differ most.",
        ),
    ] = None,
    quiet: bool,
) -> None:
    """Compare systems, with tests of their differences.

    Every system is compared with the first, the baseline; one system alone has its score with an
    interval. p is the probability of a difference at least this large if both were equally good; *
    is a p below 0.05, of several systems after Holm's correction. Needs the extra `evaluation`.
    docs/which_system.md explains the output, docs/command_line.md the options.

    Examples:
        # Compare a system with a baseline, the first file
        bertscore-onnx compare --lang en -r ref.txt -c base.txt other.txt
        # Compare columns of a table by whole documents, a column too
        bertscore-onnx compare -m BUNDLE -c t.csv --systems a b --columns document=doc
        # Compare by BLEU
        bertscore-onnx compare --metric bleu -r ref.txt -c a b
        # Compare given scores, and draw the differences for a paper
        bertscore-onnx compare --scores comet.csv --systems a b --figure diff.pdf
        # Fail in a continuous build if the new evaluation run is worse
        bertscore-onnx compare --scores old.eval new.eval --fail-if-worse
    """
    named = columns_of(columns, *_ROLES)
    cand = cand or []
    ref = ref or []
    scores = scores or []
    systems = _several(systems, "--systems")
    from bertscore_onnx_evaluation.metric_scores import BERTSCORE, is_bertscore, metric_options

    has_model = settings["model_type"] or settings["lang"]
    default = [BERTSCORE] if has_model or not scores else []
    metrics = metrics_of(metric or default)
    has_bertscore = any(map(is_bertscore, metrics))
    if metric:
        metric_options(metrics)  # raises for an unknown metric
    if not cand and not scores:
        message = "give the texts of the systems, or --scores."
        raise typer.BadParameter(message, param_hint="--cand")
    if not ref and (len(cand) > 1 or (metrics and not cand)):
        message = "give at least one file of references"
        if cand and format_of(cand[0]) != "text":
            message += f"; if {cand[0]} has them too, -r {cand[0]}"
        raise typer.BadParameter(f"{message}.", param_hint="--ref")
    if has_bertscore:
        check_model(settings["model_type"], settings["lang"])
    no_bertscore = "without --metric bertscore; add it"
    no_scores = "without --scores; add it"
    no_cand = "without --cand; add it"
    is_for_programs = output_format not in ("text", "json") and not html
    is_text = output_format == "text"
    check_effects(
        *(
            (option_name(name), not has_bertscore, no_bertscore)
            for name in SETTINGS
            if name in given
        ),
        (
            "--context-sentences",
            context_sentences is not None and not has_bertscore,
            no_bertscore,
        ),
        ("--lower-better", bool(lower_better) and not scores, no_scores),
        ("--higher-better", bool(higher_better) and not scores, no_scores),
        ("--ref", bool(ref) and not cand, no_cand),
        ("--examples", examples is not None and not cand, no_cand),
        ("--examples", examples is not None and is_for_programs, f"with --format {output_format}"),
        ("--score-range", score_range is not None and margin is None, "without --margin; add it"),
        ("--methods", methods and not is_text, "with --format; JSON has the paragraph as methods"),
    )
    num_context = sentences_before(settings, context_sentences)
    if has_bertscore and not num_context:
        check_contexts(settings, "give --context-sentences 1 or more, with --documents")
    dialect = dialect_of(input_format)
    of_systems = _named_files(cand, "--cand")
    names = [*chain.from_iterable(of_systems.values()), *ref]
    if documents is not None:
        names.append(documents)
    sources = names + scores
    check_standard_input(sources, "--cand, --ref, --documents, --scores")
    files = {name: InputFile(name, (), dialect) for name in names}
    names_of_scores = chain.from_iterable(_named_files(scores, "--scores").values())
    of_scores = [InputFile(name, (), dialect) for name in names_of_scores]
    check_tables([*files.values(), *of_scores], dialect, NO_COLUMNS if scores else named)

    from bertscore_onnx.errors import check_installed
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx_evaluation.report.figures import check_figure, save_figure
    from bertscore_onnx_evaluation.systems.compare_systems import compare as compare_systems
    from bertscore_onnx_evaluation.systems.input_reader import Roles

    check_figure(figure)
    packages = ["scipy"]
    if not all(map(is_bertscore, metrics)):
        packages.append("sacrebleu")
    if html is not None:
        packages.append("jinja2")
    check_installed(packages, "evaluation", "Comparing systems")
    candidates = _candidates(cand, of_systems, files)
    references = [_read(files[name]) for name in ref]
    units = None if documents is None else _read(files[documents])
    tables, notes, directions = _read_scores(scores, dialect)
    lower = list(lower_better or ())
    higher = list(higher_better or ())
    if directions is None:
        tables = _by_column(scores, tables, Roles(named))
    else:
        logs = tables[""]
        if not (cand or systems or baseline):
            baseline = logs.keys("system")[0]
        for name, is_higher in directions.items():
            if name not in (*lower, *higher):
                (higher if is_higher else lower).append(name)
    check_destination(html, sources, "--html")
    check_destination(figure, sources, "--figure")
    verbose = False if quiet else None
    num_examples = examples
    if num_examples is None:
        num_examples = 3 if html is not None or output_format == "json" else 0
    with BERTScorer(**settings) if has_bertscore else nullcontext() as scorer, _interruptible():
        comparison = compare_systems(
            candidates,
            references or None,
            scores=tables or None,
            systems=systems,
            columns=named,
            lower_is_better=lower,
            higher_is_better=higher,
            baseline=baseline,
            missing=missing,
            scorer=scorer,
            metrics=metrics or None,
            num_resamples=resamples,
            seed=seed,
            all_pairs=all_pairs,
            documents=units,
            by=by,
            context_sentences=num_context,
            margin=margin,
            score_range=score_range,
            num_examples=num_examples,
            verbose=verbose,
        )
    if not quiet:
        for note in notes:
            echo(note)
        _print_inputs(comparison)
    try:
        print_comparison(comparison, output_format, with_examples=examples is not None)
        if methods:
            print(f"\n{comparison.methods}\n\n{comparison.bibtex}")
    finally:  # the scores are the costly part, and do not depend on who reads the table
        if html is not None:
            write_whole(html, comparison.to_html())
        save_figure(comparison, figure)
    if fail_if_worse:
        regressions = comparison.regressions
        for sentence in regressions:
            echo(f"Failed: {sentence}")
        raise typer.Exit(1 if regressions else 0)


def _several(names: Sequence[str] | None, option: str) -> list[str] | None:
    """Return names; raise typer.BadParameter for a list in one of them."""
    if names is None:
        return None
    if len(names) == 1 and "," in names[0]:
        shown = shlex.join(name.strip() for name in names[0].split(","))
        message = f"{names[0]!r} is one name; separate several by spaces: {shown}."
        raise typer.BadParameter(message, param_hint=option)
    return list(names)


def _named_files(given: Sequence[str], option: str) -> dict[str, list[str]]:
    """Return the files of each name.

    The name is that before the =, or the file's without folder and suffix.
    """
    from bertscore_onnx_evaluation.systems.input_reader import names_of_files

    files: list[tuple[str, str]] = []
    for argument in given:
        name = ""
        file = argument
        if _has_name(argument):
            name, _, file = argument.partition("=")
        if any(_is_same_file(file, other) for _, other in files):
            message = f"{file} is given twice; each file counts once."
            raise typer.BadParameter(message, param_hint=option)
        files.append((name, file))
    stems = iter(names_of_files([file for name, file in files if not name]))
    named: dict[str, list[str]] = {}
    for name, file in files:
        named.setdefault(name or next(stems), []).append(file)
    return named


def _has_name(given: str) -> bool:
    name, equals, _ = given.partition("=")
    return bool(name and equals) and not os.path.exists(given) and os.sep not in name


def _is_same_file(name: str, other: str) -> bool:
    if name == other:
        return True
    return os.path.isfile(name) and os.path.isfile(other) and Path(name).samefile(other)


def _candidates(
    given: Sequence[str],
    named: Mapping[str, Sequence[str]],
    files: Mapping[str, InputFile],
) -> Any:
    """Return the texts of systems by their names, each of one or several runs.

    A single table without a name is returned by itself: it may have several systems.
    """
    candidates = {}
    for name, of_name in named.items():
        candidates[name] = [_read(files[file]) for file in of_name]
    if len(given) == 1 and not _has_name(given[0]) and files[given[0]].format != "text":
        [[table]] = candidates.values()
        return table
    return candidates or None


def _read(file: InputFile) -> "InputValues | WholeTable":
    """Return a table, or the lines of a text."""
    from bertscore_onnx.tables.joins import Rows
    from bertscore_onnx.tables.whole_table import read_table
    from bertscore_onnx_evaluation.systems.input_reader import InputValues

    if file.format != "text":
        return read_table(file.name, file.dialect)
    with open_source(file.name) as source:
        rows = read_whole_rows(file.rows(source), source.title, itemgetter(0))
        lines = [line for [line], _, _ in rows]
    title = source.title
    numbered = Rows(title, len(lines), lambda row: f"{title}, line {row + 1}", "line")
    return InputValues(title, numbered, lines)


def _read_scores(
    given: Sequence[str], dialect: "Dialect"
) -> "tuple[dict[str, Any], list[str], dict[str, bool] | None]":
    """Return the tables of scores by their names, and what logs tell beside.

    These are notes, and whether higher scores of their metrics are better. Logs are one table
    without a name, and the last is None if there are none.
    """
    from bertscore_onnx_evaluation.harness_logs import join_logs, read_log
    from bertscore_onnx_evaluation.score_files import read_scores

    tables: dict[str, Any] = {}
    logs = []
    for name, of_name in _named_files(given, "--scores").items():
        for file in of_name:
            log = read_log(file) if dialect.format is None else None
            system = name if f"{name}={file}" in given else None
            if log is None:
                tables.setdefault(name, []).append(read_scores(file, dialect, system))
                continue
            if len(of_name) > 1:
                message = f"{file} is a log, whose runs are its epochs."
                raise typer.BadParameter(message, param_hint="--scores")
            if system is not None:
                log = replace(log, system=system)
            logs.append(log)
    if not logs:
        return tables, [], None
    log_table, higher_is_better, notes = join_logs(logs)
    return tables | {"": log_table}, notes, higher_is_better


def _by_column(given: Sequence[str], tables: dict[str, Any], roles: "Roles") -> dict[str, Any]:
    """Name the metric of a single unnamed long table after its column of scores."""
    from bertscore_onnx_evaluation.systems.input_reader import WMT

    # The metric has the same name in several files; a file keeps a name from the user or WMT.
    if len(given) != 1 or _has_name(given[0]) or WMT in given[0]:
        return tables
    [(name, [table])] = tables.items()
    if not roles.of(table, "system"):
        return tables
    metrics = [*roles.of(table, "score"), name]
    return {metrics[0]: [table]}


@contextmanager
def _interruptible() -> Iterator[None]:
    """Note that an interrupt left nothing compared."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        interruption.add_note("Interrupted; nothing was compared.")
        raise


def _print_inputs(comparison: "Comparison") -> None:
    """Print on standard error how the files were read, and how many segments were left out."""
    for sentence in comparison.inputs:
        echo(sentence)
    dropped = comparison.dropped
    if dropped:
        shown = ", ".join(map(str, dropped[:10]))
        if len(dropped) > 10:
            shown += ", …"
        number = len(dropped) + comparison.num_segments
        echo(f"Left out {len(dropped)} of {number} segments, which some file lacks: {shown}.")


def print_comparison(
    comparison: "Comparison",
    output_format: Literal["text", "json", "tsv", "latex", "markdown"],
    *,
    with_examples: bool,
) -> None:
    """Print a comparison, as text also with the segments that differ most."""
    write_utf8()
    if output_format == "json":
        print(comparison.to_json(), flush=True)
        return
    print(comparison.table(output_format))
    if output_format != "text" or not with_examples:
        return
    baseline = comparison.systems[0]
    for system, examples in groupby(comparison.examples, key=attrgetter("system")):
        print(f"\nSegments on which {system} and {baseline} differ most:")
        rows = [row for example in examples for row in _rows(comparison, example)]
        print_table(rows, width=terminal_width())


def _rows(comparison: "Comparison", example: "Example") -> Iterator[tuple[str, str, str]]:
    segment = example.segment
    system = comparison.systems.index(example.system)
    yield f"{comparison.segments[segment]}", f"{example.delta:+.4f}", ""
    for name, texts in ((example.system, system), (comparison.systems[0], 0)):
        yield "", name, comparison.candidates[texts][segment]
    for reference in comparison.references[segment]:
        yield "", "reference", reference
