"""Chooses what is written, where and in which format, from the options of the command line."""

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol, TextIO, cast, get_args

import numpy as np
import typer
from numpy.typing import NDArray

from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.cli.inputs import KeptPairs, TextPair
from bertscore_onnx.cli.interpretation import interpretation
from bertscore_onnx.cli.terminal import print_table, tell, terminal_width
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.comparison import Comparison, Example
from bertscore_onnx.files import unwritable
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Score

OutputFormat = Literal["tsv", "csv", "jsonl", "json"]
"""The formats of pairs; `json` has their means too."""

_STANDARD_OUTPUT = "-"


@dataclass(frozen=True, slots=True)
class Output:
    """What is to be written."""

    file: str | None = None
    """The file of the pairs; None for standard output."""

    format: OutputFormat | None = None
    """The format; None for the summary alone."""

    has_pairs: bool = False
    """Whether each pair is written."""

    with_texts: bool = False
    """Whether a pair is written with its texts."""

    @property
    def summary_stream(self) -> Literal["stdout", "stderr"] | None:
        """Where the summary goes: standard output, unless pairs go there; nowhere if JSON does, which has it."""
        if self.file is None and self.format == "json":
            return None
        return "stderr" if self.file is None and self.has_pairs else "stdout"


def choose_output(
    *,
    seg_level: bool,
    file: str | None,
    output_format: OutputFormat | None,
    as_json: bool,
    with_texts: bool,
    all_layers: bool,
) -> Output:
    """Return what is to be written.

    Args:
        seg_level: whether pairs are asked for; a file is one of pairs, and so are all formats but JSON.
        file: the file of the pairs; None or `-` for standard output.
        output_format: the format; None for the one that the end of the file's name says, else TSV.
        as_json: another way to ask for JSON.
        with_texts: whether pairs come with their texts.
        all_layers: whether there are scores of every layer, which are told as means alone.

    Raises:
        typer.BadParameter: the options do not fit together.
    """
    if as_json and output_format not in (None, "json"):
        raise typer.BadParameter("it is --output-format json; leave out one of them.", param_hint="--json")
    chosen: OutputFormat | None = "json" if as_json else output_format
    if chosen is None and file is not None:
        chosen = _format_of(file)
    has_pairs = seg_level or file is not None or chosen not in (None, "json")
    if with_texts and not has_pairs:
        raise typer.BadParameter("it has no effect without pairs; add -s, or -o FILE.", param_hint="--with-texts")
    if all_layers and has_pairs:
        raise typer.BadParameter(
            "a pair is printed with the scores of one layer; leave out --all-layers, print the means of each layer "
            "alone, or use BERTScorer.stream in Python.",
            param_hint="--seg-level, --output, --output-format",
        )
    return Output(
        None if file == _STANDARD_OUTPUT else file, chosen or ("tsv" if has_pairs else None), has_pairs, with_texts
    )


def chosen_format(**options: bool) -> str | None:
    """Return the one of some formats that is asked for; None for none of them.

    Args:
        options: whether each is asked for, such as `as_json` for --json.

    Raises:
        typer.BadParameter: more than one is.
    """
    asked = [name.removeprefix("as_") for name, is_asked in options.items() if is_asked]
    if len(asked) > 1:
        raise typer.BadParameter(
            "only one format can be printed; leave out the others.",
            param_hint=", ".join(f"--{name}" for name in asked),
        )
    return asked[0] if asked else None


def _format_of(file: str) -> OutputFormat:
    """Return the format that the end of a file's name says."""
    suffix = PurePath(file.lower()).suffix
    if suffix in ("", ".txt"):
        return "tsv"
    known: tuple[OutputFormat, ...] = get_args(OutputFormat)
    for name in known:
        if suffix == f".{name}":
            return name
    raise typer.BadParameter(
        f"{suffix} says no format that is written. Name the file .tsv, .csv, .jsonl or .json, or add --output-format.",
        param_hint="--output",
    )


# Where results are written: standard output, or a file.


def check_destination(file: str | None, inputs: Iterable[str], option: str = "--output") -> None:
    """Check that a file can be written, before work is put into what it will hold; it is not changed yet.

    Args:
        file: its name; None where nothing is written.
        inputs: the files that are to be read.
        option: the option that names it.

    Raises:
        InputError: it cannot be written, is one of the files that are to be read, or belongs to a bundle.
    """
    if file is None:
        return
    if os.path.isfile(file):
        path = Path(file)
        if any(os.path.isfile(name) and path.samefile(name) for name in inputs):
            raise InputError(f"{option} {path} is one of the files to read. Write to another file.")
        if path.resolve().with_name(MANIFEST).is_file():
            raise InputError(f"{option} {path} is in the folder of a bundle. Write to another file.")
        _open(file, "a").close()
    elif not os.path.lexists(file):
        _open(file, "x").close()
        Path(file).unlink()


@contextmanager
def open_destination(output: Output) -> Iterator[TextIO]:
    """Open what scores are written to, for as long as the block lasts; a file's old content is dropped.

    Texts are written in UTF-8, as they were read, whatever the encoding of standard output.

    Raises:
        InputError: it cannot be written.
    """
    if output.file is not None:
        with _open(output.file, "w") as file:
            yield file
        return
    if output.with_texts:
        write_utf8()
    yield sys.stdout


def write_utf8() -> None:
    """Let standard output be in UTF-8, as texts are, unless it is a terminal, which has its own encoding."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)


def _open(name: str, mode: str) -> TextIO:
    try:
        return cast(TextIO, Path(name).open(mode, encoding="utf-8", newline="\n"))
    except OSError as error:
        raise unwritable(name, error) from error


# Prints what a comparison of systems found.


def print_comparison(comparison: Comparison, output_format: str | None) -> None:
    """Print a comparison on standard output.

    Args:
        comparison: what was found.
        output_format: "json", "tsv" or "latex"; None for what is read on a terminal.
    """
    write_utf8()
    if output_format == "json":
        print(comparison.to_json(), flush=True)
    elif output_format is not None:
        print(comparison.table("latex" if output_format == "latex" else "tsv"))
    else:
        print(comparison.table())
        for system, examples in groupby(comparison.examples, key=lambda example: example.system):
            print(f"\nSegments on which {system} and {comparison.systems[0]} differ most:")
            print_table([row for example in examples for row in _rows(comparison, example)], width=terminal_width())


def _rows(comparison: Comparison, example: Example) -> Iterator[tuple[str, str, str]]:
    segment = example.segment
    system = comparison.systems.index(example.system)
    yield f"{segment + 1}", f"{example.delta:+.4f}", ""
    for name, texts in ((example.system, system), (comparison.systems[0], 0)):
        yield "", name, comparison.candidates[texts][segment]
    for reference in comparison.references[segment]:
        yield "", "reference", reference


# The means of scores, and the line that tells them.


class Means:
    """The means of scores, of which none is kept."""

    def __init__(self) -> None:
        """Start without scores."""
        self.pairs = 0
        """How many were added."""
        self._sums: NDArray[np.float64] = np.zeros((3, 1))  # (3, layers)

    def add(self, score: Score) -> None:
        """Count one more score."""
        self._sums = self._sums + np.reshape(np.array([*score], dtype=np.float64), (3, -1))
        self.pairs += 1

    def of_layers(self) -> list[list[float]]:
        """Return the means of P, R and F for each layer."""
        means: list[list[float]] = (self._sums / self.pairs).T.tolist()
        return means


def print_summary(signature: str, means: Means, *, all_layers: bool, file: TextIO) -> None:
    """Print a line with the signature and the means; with `all_layers` the means are a table below it."""
    rows = [[f"{mean:.6f}" for mean in layer] for layer in means.of_layers()]
    if all_layers:
        print(signature, file=file)
        print_table([["layer", "P", "R", "F1"], *([str(layer), *row] for layer, row in enumerate(rows))], file=file)
    else:
        print("{} P: {} R: {} F1: {}".format(signature, *rows[0]), file=file)


# Writes pairs as TSV or CSV, under a header, as numpy, pandas, polars and spreadsheets read it.


class DelimitedReport:
    """P, R and F1 of a pair in a row; with its texts too, where they are asked for."""

    def __init__(self, file: TextIO, delimiter: str) -> None:
        """Take what to write to, and what stands between fields."""
        self._file = file
        self._delimiter = delimiter
        self._has_header = False

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair, and before the first one the header; the reference is the one of the best F1."""
        row = [f"{value:.6f}" for value in score]
        names = ["precision", "recall", "f1"]
        if texts is not None:
            candidate, references = texts
            row += [candidate, references[score.best_reference]]
            names += ["candidate", "reference"]
        if not self._has_header:
            self._write(names)
            self._has_header = True
        self._write(row)

    def finish(self, means: Means) -> None:
        """Write nothing: a line of another kind would spoil the table."""

    def _write(self, fields: Sequence[str]) -> None:
        """Write a row in one piece."""
        row = io.StringIO()
        csv.writer(row, delimiter=self._delimiter, lineterminator="\r\n").writerow(fields)  # so that it quotes \r too
        self._file.write(row.getvalue().removesuffix("\r\n") + "\n")
        self._file.flush()


# Writes pairs as JSON lines, or as one JSON object with their means.


_FIELDS = ("precision", "recall", "f1")


class JsonLinesReport:
    """An object a pair, each in a line of its own, so that whatever ends the program, whole objects are left."""

    def __init__(self, file: TextIO) -> None:
        """Take what to write to."""
        self._file = file

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair."""
        _write_line(self._file, _dumped(_pair(score, texts)))

    def finish(self, means: Means) -> None:
        """Write nothing: all lines are of one kind."""


class JsonReport:
    """One JSON object; the pairs, where they are wanted, come before the means, one a line."""

    def __init__(
        self, file: TextIO, signature: str, unrelated: NDArray[np.float64] | None, *, all_layers: bool
    ) -> None:
        """Take what to write to and what the scores were made with.

        Args:
            file: what to write to.
            signature: how the scores were made.
            unrelated: F of unrelated pairs, as `BERTScorer.unrelated_scores` has it; then means of F1 come with the
                percentage of these that are lower.
            all_layers: whether there is a mean for each layer, in an array.
        """
        self._file = file
        self._signature = signature
        self._unrelated = unrelated
        self._all_layers = all_layers
        self._separator = ""

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair."""
        if not self._separator:
            _write_line(self._file, f'{{"signature": {_dumped(self._signature)}, "segments": [')
        _write_line(self._file, self._separator + _dumped(_pair(score, texts)))
        self._separator = ","

    def finish(self, means: Means) -> None:
        """Write the means, and whatever else completes the object."""
        layers: list[dict[str, Any]] = [dict(zip(_FIELDS, layer, strict=True)) for layer in means.of_layers()]
        if self._unrelated is not None:
            from bertscore_onnx.evaluation.percentiles import percentile

            for layer, unrelated in zip(layers, np.atleast_2d(self._unrelated), strict=True):
                layer["f1_percentile"] = float(percentile(layer["f1"], unrelated))
        rest: dict[str, Any] = {**layers[0], "pairs": means.pairs}
        if self._all_layers:
            rest = {"layers": [{"layer": number, **layer} for number, layer in enumerate(layers)], "pairs": means.pairs}
        if self._separator:
            _write_line(self._file, "], " + _dumped(rest).removeprefix("{"))
        else:
            _write_line(self._file, _dumped({"signature": self._signature, **rest}))


def _pair(score: Score, texts: TextPair | None) -> dict[str, Any]:
    scores = dict(zip((*_FIELDS, "best_reference"), (*score, score.best_reference), strict=True))
    return scores if texts is None else {**scores, "candidate": texts[0], "references": texts[1]}


def _dumped(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _write_line(file: TextIO, line: str) -> None:
    file.write(line + "\n")
    file.flush()


# What all reports of scores have in common, and which of them writes a format.


class Report(Protocol):
    """Writes scores in one format; a line in one piece, so that whole lines are left, whatever ends the program."""

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair, with its texts where they are given."""

    def finish(self, means: Means) -> None:
        """Write what comes after the last pair."""


def report_in(
    format_: OutputFormat,
    file: TextIO,
    signature: str,
    unrelated: NDArray[np.float64] | None = None,
    *,
    all_layers: bool,
) -> Report:
    """Return the report that writes a format to a file; `unrelated` are the scores of unrelated pairs, where known."""
    match format_:
        case "tsv" | "csv":
            return DelimitedReport(file, "\t" if format_ == "tsv" else ",")
        case "jsonl":
            return JsonLinesReport(file)
        case "json":
            return JsonReport(file, signature, unrelated, all_layers=all_layers)


# Scores pairs and writes each as soon as its score is known, and their means at the end.


def write_scores(
    scorer: BERTScorer,
    pairs: Iterable[TextPair],
    output: Output,
    *,
    lang: str | None,
    reads_twice: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    """Score pairs, and write what is wanted of them.

    Args:
        scorer: the scorer.
        pairs: what to score.
        output: what is wanted, and where it goes.
        lang: the language of the texts, where it is known.
        reads_twice: whether the scorer reads the pairs once for idf weights, before it scores them.
        verbose: show a progress bar at once.
        quiet: print nothing on standard error but errors.
    """
    all_layers = scorer.manifest.all_layers
    means, kept = Means(), KeptPairs(read_before=reads_twice)
    unrelated = scorer.unrelated_scores(lang)
    with open_destination(output) as file:
        report = output.format and report_in(output.format, file, scorer.hash, unrelated, all_layers=all_layers)
        watched = kept.keep(pairs) if output.with_texts else pairs
        try:
            for score in scorer.stream(watched, verbose=_is_bar_shown(output, verbose=verbose, quiet=quiet)):
                means.add(score)
                if report and output.has_pairs:
                    report.add(score, kept.take() if output.with_texts else None)
        except KeyboardInterrupt:
            tell(f"Interrupted; {means.pairs} {'pair was' if means.pairs == 1 else 'pairs were'} scored.")
            raise
        if report:
            report.finish(means)
    if output.summary_stream == "stdout":
        print_summary(scorer.hash, means, all_layers=all_layers, file=sys.stdout)
    elif output.summary_stream == "stderr" and not quiet:
        print_summary(scorer.hash, means, all_layers=all_layers, file=sys.stderr)
    if output.summary_stream and output.format != "jsonl" and not (all_layers or quiet) and sys.stderr.isatty():
        for line in interpretation(scorer, means.of_layers()[0][2], unrelated, lang):
            tell(line)


def _is_bar_shown(output: Output, *, verbose: bool, quiet: bool) -> bool | None:
    """Show no bar among scores on a terminal unasked; else leave it to the scorer."""
    on_terminal = output.has_pairs and output.file is None and sys.stdout.isatty()
    return verbose or (False if quiet or on_terminal else None)
