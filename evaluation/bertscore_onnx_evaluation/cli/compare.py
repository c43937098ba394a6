"""`bertscore-onnx compare`: compares systems, and tests whether their scores differ significantly."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.inputs import InputFile, check_standard_input, check_tables, input_file
from bertscore_onnx.cli.options import FilesFormat, check_contexts, check_effects, check_model, shared_options
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import NO_COLUMNS, columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo, print_table, write_utf8
from bertscore_onnx.tables.aligned import terminal_width
from bertscore_onnx.tables.columns import roles_of_command
from bertscore_onnx.tables.sources import format_of, open_source, read_whole_rows
from bertscore_onnx_evaluation.cli.options import (
    ContextSentences,
    Figure,
    Html,
    Metrics,
    given_settings,
    metrics_of,
    sentences_before,
    test_option,
)

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.tables.sources import Dialect
    from bertscore_onnx.tables.whole_table import WholeTable
    from bertscore_onnx_evaluation.systems.comparison import Comparison
    from bertscore_onnx_evaluation.systems.comparison_record import Example
    from bertscore_onnx_evaluation.systems.join import Column

_ROLES = roles_of_command("compare")


@shared_options(without=("all_layers",), needs_model=False)
def compare(
    cand: Annotated[
        list[str] | None,
        typer.Option("-c", "--cand", metavar="FILE...", help="Texts of each system, the baseline first."),
    ] = None,
    ref: Annotated[
        list[str] | None,
        typer.Option("-r", "--ref", metavar="FILE...", help="References; of several, the best one counts."),
    ] = None,
    *,
    settings: "ScorerSettings",
    scores: Annotated[
        list[str] | None,
        typer.Option("--scores", metavar="FILE...", help="Scores of segments by other metrics, or logs."),
    ] = None,
    systems: Annotated[
        list[str] | None,
        typer.Option("--systems", metavar="NAME...", help="Columns, values or files to compare; or all."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="The system to compare with.  [default: the first]")
    ] = None,
    missing: Annotated[
        Literal["raise", "drop"], typer.Option("--missing", help="Segments that a file lacks.")
    ] = "raise",
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    input_format: FilesFormat = None,
    lower_better: Annotated[
        list[str] | None, typer.Option("--lower-better", metavar="NAME...", help="Metrics of which less is better.")
    ] = None,
    higher_better: Annotated[
        list[str] | None, typer.Option("--higher-better", metavar="NAME...", help="Metrics of which more is better.")
    ] = None,
    metric: Metrics = None,
    resamples: Annotated[int, test_option("--resamples", metavar="N", min=1, help="Number of swaps.")] = 10_000,
    seed: Annotated[int, test_option("--seed", metavar="N", min=0, help="Seed of the swaps.")] = 12345,
    all_pairs: Annotated[bool, test_option("--all-pairs", help="Also test every pair of systems.")] = False,
    documents: Annotated[
        str | None, typer.Option("--documents", metavar="FILE", help="The documents, which tests take as wholes.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Also compare within each group of segments.")
    ] = None,
    context_sentences: ContextSentences = None,
    margin: Annotated[
        float | None, test_option("--margin", metavar="D", help="Also test whether a system is at most D worse.")
    ] = None,
    worst: Annotated[
        float | None, test_option("--worst", metavar="SCORE", help="Worst possible score, for --margin.  [default: 0]")
    ] = None,
    fail_if_worse: Annotated[
        bool, test_option("--fail-if-worse", help="Exit with 1 if a system is worse, 2 on errors.")
    ] = False,
    output_format: Annotated[
        Literal["text", "json", "tsv", "latex"],
        typer.Option("--format", metavar="FORMAT", help="text, json, tsv or latex."),
    ] = "text",
    methods: Annotated[bool, typer.Option("--methods", help="Also print a paragraph for a paper, and BibTeX.")] = False,
    html: Html = None,
    figure: Figure = None,
    examples: Annotated[
        int | None, typer.Option("--examples", metavar="N", min=0, help="Show the N segments that differ most.")
    ] = None,
    quiet: bool,
) -> None:
    """Compare systems, with tests of their differences.

    Every system is compared with the first, the baseline; one system alone has its score with an interval. p is the
    probability of a difference at least this large if both were equally good; * is a p below 0.05, of several systems
    after Holm's correction. Needs the extra `evaluation`. docs/which_system.md explains the output,
    docs/command_line.md the options.

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
    cand, ref, scores, systems = cand or [], ref or [], scores or [], _several(systems, "--systems")
    from bertscore_onnx_evaluation.metric_scores import BERTSCORE, is_bertscore, metric_options

    default = [] if scores and not (settings["model_type"] or settings["lang"]) else [BERTSCORE]
    metrics = metrics_of(metric or default)
    has_bertscore = any(map(is_bertscore, metrics))
    if metric:
        metric_options(metrics)  # raises for an unknown metric
    if not cand and not scores:
        raise typer.BadParameter("give the texts of the systems, or --scores.", param_hint="--cand")
    if not ref and (len(cand) > 1 or (metrics and not cand)):
        own = f"; if {cand[0]} has them too, -r {cand[0]}" if cand and format_of(cand[0]) != "text" else ""
        raise typer.BadParameter(f"give at least one file of references{own}.", param_hint="--ref")
    if has_bertscore:
        check_model(settings["model_type"], settings["lang"])
    check_effects(
        *((option, not has_bertscore, "without --metric bertscore; add it") for option in given_settings(settings)),
        ("--context-sentences", bool(context_sentences) and not has_bertscore, "without --metric bertscore; add it"),
        ("--lower-better", bool(lower_better) and not scores, "without --scores; add it"),
        ("--higher-better", bool(higher_better) and not scores, "without --scores; add it"),
        ("--ref", bool(ref) and not cand, "without --cand; add it"),
        ("--examples", bool(examples) and not cand, "without --cand; add it"),
        ("--examples", bool(examples) and not html and output_format in ("tsv", "latex"), "on TSV or LaTeX"),
        ("--worst", worst is not None and margin is None, "without --margin; add it"),
        ("--methods", methods and output_format != "text", "with --format; JSON has the paragraph as methods"),
    )
    num_context = sentences_before(settings, context_sentences)
    if has_bertscore and not num_context:
        check_contexts(settings, "give --context-sentences 1 or more, with --documents")
    dialect = dialect_of(input_format)
    given = _named_files(cand, "--cand")
    names = [*chain(*given.values()), *ref, *([documents] if documents is not None else ())]
    sources = [*names, *scores]
    check_standard_input(sources, "--cand, --ref, --documents, --scores")
    files = {name: input_file(name, (), dialect) for name in names}
    of_scores = [input_file(name, (), dialect) for name in chain(*_named_files(scores, "--scores").values())]
    check_tables([*files.values(), *of_scores], dialect, NO_COLUMNS if scores else named)

    from bertscore_onnx.errors import check_installed
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx_evaluation.column_roles import Roles
    from bertscore_onnx_evaluation.report.figures import check_figure, save_figure
    from bertscore_onnx_evaluation.score_files import WMT
    from bertscore_onnx_evaluation.systems.compare_systems import compare as compare_systems

    check_figure(figure)
    needed = {"scipy": True, "sacrebleu": not all(map(is_bertscore, metrics)), "jinja2": html is not None}
    check_installed((package for package, is_needed in needed.items() if is_needed), "evaluation", "Comparing systems")
    candidates: Any = {name: [_read(files[one]) for one in of_name] for name, of_name in given.items()} or None
    if len(cand) == 1 and not _has_name(cand[0]) and files[cand[0]].format != "text":  # a table by itself
        [[candidates]] = candidates.values()
    references = [_read(files[name]) for name in ref]
    units = None if documents is None else _read(files[documents])
    tables, notes, directions = _read_scores(scores, dialect)
    if len(scores) == 1 and directions is None and not _has_name(scores[0]) and WMT not in scores[0]:
        [(name, [table])] = tables.items()
        roles = Roles(named)
        if roles.of(table, "system"):  # its metric is called after the column of scores, as in several files
            tables = {[*roles.of(table, "score"), name][0]: [table]}
    lower, higher = [*(lower_better or ())], [*(higher_better or ())]
    if directions is not None:
        logs = tables[""]
        if not (cand or systems or baseline):
            baseline = logs.keys("system")[0]
        for name, is_higher in directions.items():
            if name not in (*lower, *higher):
                (higher if is_higher else lower).append(name)
    check_destination(html, sources, "--html")
    check_destination(figure, sources, "--figure")
    with BERTScorer(**settings) if has_bertscore else nullcontext() as scorer, _interruptible():
        comparison = compare_systems(
            candidates,
            references or None,
            scores=tables or None,
            systems=systems if systems != ["all"] else "all",
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
            worst=worst,
            num_examples=3 * (html is not None or output_format == "json") if examples is None else examples,
            verbose=False if quiet else None,
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
    for name in names or ():
        if "," in name and len(names or ()) == 1:
            shown = shlex.join(part.strip() for part in name.split(","))
            raise typer.BadParameter(f"{name!r} is one name; separate several by spaces: {shown}.", param_hint=option)
    return None if names is None else [*names]


def _named_files(given: Sequence[str], option: str) -> dict[str, list[str]]:
    """Return the files of each name: that before the =, or the file's without folder and suffix."""
    from bertscore_onnx_evaluation.score_files import names_of_files

    files = [name.partition("=")[::2] if _has_name(name) else ("", name) for name in given]
    for position, (_, name) in enumerate(files):
        if any(_is_same_file(name, other) for _, other in files[:position]):
            raise typer.BadParameter(f"{name} is given twice; each file counts once.", param_hint=option)
    stems = iter(names_of_files([file for name, file in files if not name]))
    named: dict[str, list[str]] = {}
    for name, file in files:
        named.setdefault(name or next(stems), []).append(file)
    return named


def _has_name(given: str) -> bool:
    name, equals, _ = given.partition("=")
    return bool(name and equals) and not os.path.exists(given) and os.sep not in name


def _is_same_file(name: str, other: str) -> bool:
    return name == other or (os.path.isfile(name) and os.path.isfile(other) and Path(name).samefile(other))


def _read(file: InputFile) -> "Column | WholeTable":
    """Return a table, or the lines of a text."""
    from bertscore_onnx.tables.whole_table import read_table
    from bertscore_onnx_evaluation.systems.join import column_of_lines

    if file.format != "text":
        return read_table(file.name, file.dialect)
    with open_source(file.name) as source:
        lines = [line for [line], _ in read_whole_rows(file.rows(source), source.title, itemgetter(0))]
    return column_of_lines(source.title, lines)


def _read_scores(
    given: Sequence[str], dialect: "Dialect"
) -> "tuple[dict[str, Any], list[str], dict[str, bool] | None]":
    """Return the tables of scores by their names, notes on logs, and whether higher scores of their metrics are better.

    Logs are one table without a name, and the last is None if there are none.
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
            elif len(of_name) > 1:
                raise typer.BadParameter(f"{file} is a log, whose runs are its epochs.", param_hint="--scores")
            else:
                logs.append(log if system is None else replace(log, system=system))
    if not logs:
        return tables, [], None
    log_table, higher_is_better, notes = join_logs(logs)
    return tables | {"": log_table}, notes, higher_is_better


@contextmanager
def _interruptible() -> Iterator[None]:
    """Note that an interrupt left nothing compared."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        interruption.add_note("Interrupted; nothing was compared.")
        raise


def _print_inputs(comparison: "Comparison") -> None:
    """Print on standard error what was taken from the files, and how many segments were left out."""
    for sentence in comparison.inputs:
        echo(sentence)
    if dropped := comparison.dropped:
        shown = ", ".join(map(str, dropped[:10])) + (", …" if len(dropped) > 10 else "")
        number = len(dropped) + comparison.num_segments
        echo(f"Left out {len(dropped)} of {number} segments, which some file lacks: {shown}.")


def print_comparison(
    comparison: "Comparison", output_format: Literal["text", "json", "tsv", "latex"], *, with_examples: bool
) -> None:
    """Print a comparison in a format, as text also with the segments that differ most."""
    write_utf8()
    if output_format == "json":
        print(comparison.to_json(), flush=True)
    else:
        print(comparison.table(output_format))
    if output_format == "text" and with_examples:
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
