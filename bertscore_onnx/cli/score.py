"""`bertscore-onnx score`: scores candidates against references.

Both are read from files, and scores are written into files.
"""

import math
import shlex
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from bertscore_onnx.cli.inputs import choose_inputs
from bertscore_onnx.cli.options import FORMAT_HELP, check_contexts, check_effects, shared_options
from bertscore_onnx.cli.outputs import check_destination, full, opened_lines, replacing
from bertscore_onnx.cli.pairs import OpenFile, TextPairs, open_pairs
from bertscore_onnx.cli.specs import columns_of, columns_option
from bertscore_onnx.cli.terminal import echo, print_table, write_utf8
from bertscore_onnx.errors import InputError, one_line
from bertscore_onnx.tables.aligned import aligned, terminal_width
from bertscore_onnx.tables.formats import FORMATS, FileFormat
from bertscore_onnx.tables.order import natural_key
from bertscore_onnx.tables.roles import roles_of_command
from bertscore_onnx.tables.score_columns import SCORE_NAMES, check_score_names

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.scores import Score
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.tables.readers import RawRow
    from bertscore_onnx.tables.writers import RowsToWrite

SAVE_SECONDS = 8.0
"""The time that pairs may take which are scored together, so that rows are written every 10
seconds.
"""

_DIGITS = 6
"""Of the means that are printed."""

_ROLES = roles_of_command("score")

OutputFormat = Literal["tsv", "csv", "jsonl", "json", "parquet"]


@shared_options()
def score(
    cand: Annotated[
        list[str],
        typer.Option("-c", "--cand", metavar="FILE", help="Lines of text, or a table; - is stdin."),
    ],
    ref: Annotated[
        list[str] | None,
        typer.Option(
            "-r", "--ref", metavar="FILE...", help="References; of several, the best one counts."
        ),
    ] = None,
    *,
    settings: "ScorerSettings",
    idf_counts: str | None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context", metavar="FILE", help="Context of each pair, encoded but not matched."
        ),
    ] = None,
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    input_format: Annotated[
        list[str] | None, typer.Option("--input-format", metavar="FORMAT...", help=FORMAT_HELP)
    ] = None,
    seg_level: Annotated[
        bool, typer.Option("-s", "--seg-level", help="Print P, R and F1 of every pair.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the rows with their scores."),
    ] = None,
    output_format: Annotated[
        OutputFormat | None,
        typer.Option("--format", metavar="FORMAT", help="tsv, csv, jsonl, json or parquet."),
    ] = None,
    min_f1: Annotated[
        float | None,
        typer.Option(
            "--min-f1",
            metavar="X",
            min=0,
            max=1,
            help="Exit with 1 if the mean F1, or that of a group, is below X.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMN", help="Also print the means of each group."),
    ] = None,
    quiet: bool,
) -> None:
    """Score candidates against their references.

    Text is UTF-8, one text per line; tables are TSV, CSV, JSON lines or Parquet. What is a good
    score depends on the model and the task: compare systems on the same references with the same
    signature. docs/command_line.md describes every option and format, `bertscore-onnx models` lists
    the models.

    Examples:
        # Score lines of text with the default model of a language
        bertscore-onnx score --lang en -c cand.txt -r ref.txt
        # Score a CSV, and keep its columns beside the scores
        bertscore-onnx score --lang en -c pairs.csv -o scored.csv
        # Name its columns; of several references, the best one counts
        bertscore-onnx score -m BUNDLE -c a.csv --columns candidate=mt reference=r1+r2
        # Rescale, so that unrelated sentences score about 0
        bertscore-onnx score --lang en -c cand.txt -r ref.txt --rescale-with-baseline
        # Average by domain, a column of the table
        bertscore-onnx score -m BUNDLE -c pairs.csv --by domain
        # Fail in a continuous build if the mean F1 is below a bound
        bertscore-onnx score -m BUNDLE -c cand.txt -r ref.txt --min-f1 0.8
        # Print the scores of each pair in a pipe
        bertscore-onnx score -m BUNDLE -c - --input-format tsv -s < pairs.tsv
    """
    all_layers = settings["all_layers"]
    reason = "with --all-layers; choose one with --num-layers"
    check_effects(
        ("--min-f1", min_f1 is not None and all_layers, reason),
        ("--by", by is not None and all_layers, reason),
    )
    if context is None:
        check_contexts(settings, "add --context FILE")
    names = columns_of(columns, *_ROLES)
    result = choose_output(
        seg_level=seg_level,
        file=output,
        output_format=output_format,
        names=check_score_names(names.scores),
        all_layers=all_layers,
        has_groups=by is not None,
    )
    inputs = choose_inputs(
        cand,
        ref or (),
        columns=names,
        output="scores of each pair" if result.has_pairs else "means alone",
        input_formats=input_format or (),
        context=context,
        added=result.names if result.with_texts else (),
        by=by,
    )
    num_before = int(settings["idf"] is True)
    repeats = None
    if min_f1 is not None:
        from bertscore_onnx.tables.repeats import RepeatCounter  # costs start-up time

        repeats = RepeatCounter()
    needs_columns = (
        result.with_texts
        and inputs[0].has_columns_by_row
        and not result.row_format.has_columns_by_row
    )
    keeps: Literal["rows"] | None = None
    if result.with_texts:
        keeps = "rows"
    with open_pairs(
        inputs,
        keeps,
        num_before=num_before,
        repeats=repeats,
        to_read_again=num_before > 0 or needs_columns,
    ) as pairs:
        check_destination(result.file, [*(file.name for file in inputs), idf_counts])
        if not quiet:
            for line in pairs.joins:
                echo(line)
        of_rows: Sequence[str] | pyarrow.Schema = ()
        if needs_columns:
            of_rows = _columns_of(pairs.files[0], has_types=not result.row_format.has_lines)
        from bertscore_onnx.scorer import BERTScorer

        with BERTScorer(**settings) as scorer:
            lang = settings["lang"]
            means, groups = write_scores(
                scorer, pairs, result, of_rows, lang=lang, min_f1=min_f1, quiet=quiet
            )
    if repeats is not None:
        repeats.warn()
    gates = {"": means.gate()}
    for name, of_group in groups.items():
        gates[f" of the group {one_line(name)}"] = of_group.gate()
    has_failed = False
    for title, gate in gates.items():
        if gate is None:
            continue
        if gate.has_failed or not quiet:
            echo(gate.sentence(title))
        has_failed |= gate.has_failed
    if has_failed:
        raise typer.Exit(1)


def _columns_of(opened: OpenFile, *, has_types: bool) -> "Sequence[str] | pyarrow.Schema":
    """Read a table to its end, and return its columns: their names, or a schema with types."""
    table = opened.file.open_table(opened.source)
    if not has_types:
        return list(dict.fromkeys(name for _, record in table.records() for name in record))
    types = table.column_types()
    texts = opened.file.texts_among(types.names)
    remedy = ("Write .jsonl, which keeps every value as it is.",)
    return types.schema(types.names, texts, remedy)


@dataclass(frozen=True, slots=True)
class Output:
    """The format and the destination of the output."""

    file: str | None = None
    """The file of the pairs; None for standard output."""

    format: str | None = None
    """None if only the means are printed, as text."""

    has_pairs: bool = False
    """Whether the pairs are written; otherwise the means alone, or the means of groups as TSV."""

    with_texts: bool = False
    """Whether the pairs are written as rows of their table, or with their texts; otherwise scores
    alone.
    """

    names: Sequence[str] = SCORE_NAMES

    @property
    def row_format(self) -> FileFormat:
        """The format of the rows; those of one JSON object are JSON lines."""
        return FORMATS["jsonl" if self.format == "json" else self.format or "tsv"]

    @property
    def summary_stream(self) -> Literal["stdout", "stderr"] | None:
        """Where the line of means goes.

        Not among rows, and nowhere if it would repeat the JSON on standard output.
        """
        if self.file is not None or self.format is None:
            return "stdout"
        return None if self.format == "json" else "stderr"


def choose_output(
    *,
    seg_level: bool,
    file: str | None,
    output_format: str | None,
    names: Sequence[str],
    all_layers: bool,
    has_groups: bool = False,
) -> Output:
    """Return the output.

    typer.BadParameter is raised if the options exclude each other.
    """
    from bertscore_onnx.files import is_stdout

    if output_format is None and file is not None:
        output_format = _format_of(file)
    formats_of_means = [None, "json"]
    if has_groups:
        formats_of_means.append("tsv")
    has_pairs = seg_level or file is not None or output_format not in formats_of_means
    if file is not None and is_stdout(file):
        file = None
    if all_layers and has_pairs:
        raise typer.BadParameter(
            "pairs have the scores of one layer; leave out --all-layers, print only the means of "
            "each layer, or use BERTScorer.stream in Python.",
            param_hint="--seg-level, --output, --format",
        )
    if has_pairs:
        output_format = output_format or "tsv"
    output = Output(file, output_format, has_pairs, has_pairs and not seg_level, names)
    if file is None and not output.row_format.has_lines:
        name = output.row_format.name.capitalize()
        raise typer.BadParameter(f"{name} needs a file; add -o FILE.", param_hint="--format")
    return output


def _format_of(file: str) -> str:
    suffix = PurePath(file.lower()).suffix
    if suffix in ("", ".txt"):
        return "tsv"
    if suffix[1:] in (*FORMATS, "json"):
        return suffix[1:]
    if suffix == ".gz":
        plain = shlex.quote(file[: -len(suffix)])
        raise typer.BadParameter(
            f"Cannot write .gz. Write -o {plain}, then compress it: `gzip {plain}`.",
            param_hint="--output",
        )
    raise typer.BadParameter(
        f"Cannot write {suffix}. Name the file .csv, .tsv, .jsonl, .json or .parquet, or add "
        "--format.",
        param_hint="--output",
    )


def write_scores(
    scorer: "BERTScorer",
    pairs: TextPairs,
    output: Output,
    columns: "Sequence[str] | pyarrow.Schema" = (),
    *,
    lang: str | None,
    min_f1: float | None,
    quiet: bool,
) -> "tuple[Means, Groups]":
    """Score pairs, and write each as soon as it is scored.

    Then print their means, and return them, also of groups.
    """
    unrelated = None if pairs.has_contexts else scorer.unrelated_scores(lang)
    means = Means(unrelated, all_layers=scorer.manifest.all_layers, min_f1=min_f1)
    groups: defaultdict[str, Means] = defaultdict(lambda: Means(unrelated, min_f1=min_f1))
    if output.with_texts and output.file is None:
        write_utf8()

    def signature() -> str:
        numbers = pairs.numbers_of_references or {1}
        of_references = scorer.signature.with_references(min(numbers), max(numbers))
        return str(of_references.in_context() if pairs.has_contexts else of_references)

    def rows() -> "RowsToWrite":
        from bertscore_onnx.tables.score_columns import ScoreColumns, check_free
        from bertscore_onnx.tables.writers import RowsToWrite

        has_best = pairs.may_have_several_references and (
            output.with_texts or output.row_format.has_columns_by_row
        )
        added = ScoreColumns(scores=tuple(output.names), has_best=has_best)
        if pairs.table is not None:
            of_json = columns if isinstance(columns, Sequence) else columns.names
            check_free(pairs.table.names or of_json, added.names, pairs.table.place)
        return RowsToWrite(pairs.table, added, columns, output.with_texts)

    def scored_rows() -> Iterator[ScoredRow]:
        # no progress bar between scores on a terminal
        prints_pairs = output.has_pairs and output.file is None and sys.stdout.isatty()
        shown = False if quiet or prints_pairs else None
        max_seconds = None
        if output.has_pairs:
            max_seconds = SAVE_SECONDS
        for score in scorer.stream(pairs, verbose=shown, max_seconds=max_seconds):
            means.add(score)
            row, group = pairs.take()
            if group:
                groups[group].add(score)
            yield score, row
        if pairs.is_blank:
            raise InputError("Nothing was scored: every pair has a blank side. Check the files.")

    scored = scored_rows()
    try:
        if output.file is not None and not output.row_format.has_lines:
            _write_file(output, output.file, scored, rows, signature)
        else:
            with opened_lines(output.file) as write:
                for text in lines(output, scored, rows, means, signature, groups):
                    write(text)
    except KeyboardInterrupt as interruption:
        were_scored = "pair was scored" if means.pairs == 1 else "pairs were scored"
        interruption.add_note(f"Interrupted; {means.pairs} {were_scored}.")
        raise
    if output.summary_stream == "stdout":
        _print_means(signature(), means, groups, sys.stdout)
    elif output.summary_stream == "stderr" and not quiet:
        has_written_groups = output.format == "tsv" and not output.has_pairs
        _print_means(signature(), means, {} if has_written_groups else groups, sys.stderr)
    if (
        output.summary_stream
        and output.format != "jsonl"
        and not (means.all_layers or quiet)
        and sys.stderr.isatty()
    ):
        for line in interpretation(scorer, means, unrelated, lang):
            echo(line)
    return means, groups


class Means:
    """The means of scores, without keeping the scores."""

    def __init__(
        self,
        unrelated: "NDArray[np.float64] | None" = None,
        *,
        all_layers: bool = False,
        min_f1: float | None = None,
    ) -> None:
        """Count pairs above unrelated ones too, given quantiles of their F1.

        The quantiles are (quantiles,) or (layers, quantiles).
        """
        self.all_layers = all_layers
        self.min_f1 = min_f1
        self.pairs = 0
        self.truncated = 0
        self._sums: Any = 0.0  # (3, layers)
        self._squares: Any = 0.0  # of F1, (layers,)
        self._above: Any = 0.0  # pairs that score higher than 99 % of unrelated ones, (layers,)
        self.high: Any = None
        """The F1 that 99 % of unrelated pairs do not exceed, (layers,) or a number, if known."""
        if unrelated is not None:
            from bertscore_onnx.matching.rescaling import high_unrelated

            self.high = high_unrelated(unrelated)

    def add(self, score: "Score") -> None:
        """Include the scores of a pair."""
        import numpy as np  # costs start-up time

        values = np.reshape(np.array(list(score), dtype=np.float64), (3, -1))
        self._sums = self._sums + values
        self._squares = self._squares + values[2] ** 2
        if self.high is not None:
            self._above = self._above + (values[2] > self.high)
        self.pairs += 1
        self.truncated += score.truncated

    def by_layer(self) -> list[list[float]]:
        """Return the means of P, R and F1 for each layer."""
        return (self._sums / self.pairs).T.tolist()

    def above_unrelated(self) -> list[float] | None:
        """Return for each layer the share of pairs above unrelated ones.

        These score higher than 99 % of unrelated pairs; None if those are unknown.
        """
        if self.high is None:
            return None
        return (self._above / self.pairs).tolist()

    def to_dict(self) -> dict[str, Any]:
        """Return the means, and the counts of pairs.

        The means are of each layer if there are several.
        """
        shares = self.above_unrelated()
        layers: list[dict[str, Any]] = []
        for number, means in enumerate(self.by_layer()):
            layer: dict[str, Any] = {"layer": number} if self.all_layers else {}
            layer |= zip(SCORE_NAMES, means, strict=True)
            if shares is not None:
                layer["f1_above_unrelated"] = shares[number]
            layers.append(layer)
        counts = {"pairs": self.pairs, "truncated": self.truncated}
        if self.all_layers:
            return {"layers": layers, **counts}
        gate = self.gate()
        return layers[0] | counts | (gate.to_dict() if gate is not None else {})

    def gate(self) -> "Gate | None":
        """Return the bound of the mean F1 with the interval of the mean; None without a bound."""
        if self.min_f1 is None:
            return None
        f1 = self.by_layer()[0][2]
        freedom = self.pairs - 1
        if freedom == 0:
            return Gate(self.min_f1, self.pairs, round(f1, _DIGITS))
        # rounding may make it negative
        variance = max(float(self._squares[0]) / self.pairs - f1**2, 0)
        margin = student_t(freedom) * math.sqrt(variance / freedom)
        low = f1 - margin
        high = min(f1 + margin, max(f1, 1))  # F1 is at most 1, but for rounding
        ends = [round(value, _DIGITS) for value in (f1, low, high)]
        return Gate(self.min_f1, self.pairs, *ends)


@dataclass(frozen=True, slots=True)
class Gate:
    """A mean F1 with its 95 % interval, and the bound that it must reach."""

    min_f1: float
    pairs: int
    f1: float

    low: float | None = None
    """None for a single pair, which has no interval."""

    high: float | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the mean is below the bound."""
        return self.f1 < self.min_f1

    @property
    def unseen_failures(self) -> float:
        """The largest share of pairs that may fail though, by 2.5 %, none of these has failed."""
        return 1 - 0.025 ** (1 / self.pairs)

    def to_dict(self) -> dict[str, float | None]:
        """Return the interval, and the share of failures that may not have shown."""
        return {
            "f1_low": self.low,
            "f1_high": self.high,
            "unseen_failures": self.unseen_failures,
        }

    def sentence(self, title: str) -> str:
        """Return the result of the gate, for the mean of a group with this title."""
        verdict = "Failed" if self.has_failed else "Passed"
        relation = "below" if self.has_failed else "at least"
        interval = "one pair has no 95 % interval"
        if self.low is not None:
            interval = f"95 % interval {self.low:.{_DIGITS}f} to {self.high:.{_DIGITS}f}"
            interval += f" (Student's t, {self.pairs:,} pairs, if independent)"
        mean = f"the mean F1{title} is {self.f1:.{_DIGITS}f}"
        unseen = f"failures of up to {100 * self.unseen_failures:.2g} in 100 pairs"
        return (
            f"{verdict}: {mean}, {relation} {self.min_f1} (--min-f1); {interval}; "
            f"{unseen} may not have shown."
        )


_STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5 % quantiles of Student's t with 1 to 9 degrees of freedom."""


def student_t(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t.

    The series is Abramowitz and Stegun's, Handbook of Mathematical Functions, 26.7.5. With it the
    interval needs sums alone: no scores in memory, and neither SciPy nor the extra `evaluation`.
    """
    if freedom <= len(_STUDENT_T):
        return _STUDENT_T[freedom - 1]
    return 1.95996 + 2.37227 / freedom + 2.82250 / freedom**2 + 2.55585 / freedom**3


Groups = Mapping[str, Means]
"""The means of the pairs of each group, by its name."""


def _means_of_groups(groups: Groups, title: str) -> list[dict[str, Any]]:
    """Return the means of each group in the natural order of their names, called by a title."""
    return [{title: name, **groups[name].to_dict()} for name in sorted(groups, key=natural_key)]


def _print_means(signature: str, means: Means, groups: Groups, file: TextIO) -> None:
    """Print a line with the signature and the means.

    With all layers or groups, a table of their means follows below.
    """
    rows = [["layer", "P", "R", "F1"]]
    for layer, of_layer in enumerate(means.by_layer()):
        rows.append([str(layer), *(f"{mean:.{_DIGITS}f}" for mean in of_layer)])
    if means.all_layers:
        print(signature, file=file)
        print_table(rows, file=file)
    else:
        _, precision, recall, f1 = rows[1]
        line = f"{signature} P: {precision} R: {recall} F1: {f1}"
        if file.isatty() and len(line) > terminal_width():
            line = line.replace(" P: ", "\nP: ")
        print(line, file=file)
    if groups:
        print(f"\n{_table_of_groups(groups)}", file=file)


def _table_of_groups(groups: Groups) -> str:
    """Return the table of the means of groups, within the width of the terminal."""
    rows = [["group", "pairs", "P", "R", "F1"]]
    for means in _means_of_groups(groups, "group"):
        scores = [f"{means[name]:.{_DIGITS}f}" for name in SCORE_NAMES]
        rows.append([means["group"], f"{means['pairs']:,}", *scores])
    numbers = range(1, len(rows[0]))
    lines = aligned(rows, terminal_width(), right=numbers, whole=numbers, has_rule=True)
    return "\n".join(lines)


# What is written: TSV or CSV under a header, JSON lines, one JSON object, or Parquet.


ScoredRow = tuple["Score", "RawRow"]


def lines(
    output: Output,
    scored: Iterator[ScoredRow],
    rows: Callable[[], "RowsToWrite"],
    means: Means,
    signature: Callable[[], str],
    groups: Groups,
) -> Iterator[str]:
    """Yield the lines to write, each as soon as its pair is scored.

    All pairs are scored at the end. `rows` describes the rows once the first was read, `signature`
    the scores once all were.
    """
    if not output.has_pairs:
        deque(scored, maxlen=0)
        if output.format == "json":
            yield _summary(signature(), means, groups) + "\n"
        elif output.format == "tsv":
            from bertscore_onnx.tables.delimited import delimited

            rows_of_groups = _means_of_groups(groups, "group")
            yield delimited(list(rows_of_groups[0]), "\t") + "\n"
            for row_of_group in rows_of_groups:
                yield delimited(list(row_of_group.values()), "\t") + "\n"
        return
    writer = None
    between = "," if output.format == "json" else ""
    for score, row in scored:
        start = between
        if writer is None:
            # The rows are known only now, since the first was read.
            writer = output.row_format.load_writer()(rows(), output.row_format.name)
            start = '{"segments": [\n' if output.format == "json" else writer.head
        yield start + writer.line(row, score)
    if output.format == "json":
        # The object goes on after its segments.
        yield "], " + _summary(signature(), means, groups).removeprefix("{") + "\n"


def _write_file(
    output: Output,
    file: str,
    scored: Iterator[ScoredRow],
    rows: Callable[[], "RowsToWrite"],
    signature: Callable[[], str],
) -> None:
    """Write a file without lines; after an error it has the rows that were scored."""
    with replacing(file) as opened_file:
        writer = None
        try:
            try:
                for score, row in scored:
                    if writer is None:
                        writer_class = output.row_format.load_writer()
                        writer = writer_class(opened_file, rows(), signature())
                    writer.add(row, score)
            finally:
                if writer is not None:
                    writer.close()
        except OSError as error:
            raise full(file, error, "It cannot be read. Make room, and score again.") from error


def _summary(signature: str, means: Means, groups: Groups) -> str:
    """Return the means as a JSON object."""
    import json  # costs start-up time

    summary = {"signature": signature, **means.to_dict()}
    if groups:
        summary["groups"] = _means_of_groups(groups, "name")
    return json.dumps(summary, allow_nan=False, ensure_ascii=False)


# Interpreting F1: the share of pairs above unrelated ones, or a note that unrelated pairs score
# high too.


HIGH_SCORE = 0.8
"""A raw F1 above this looks good to those who do not know the scores of unrelated texts."""

HIGH_BASELINE = 0.7
"""If unrelated pairs get more than this on average, a high score means little."""

LARGE_SIZE = 1024
"""Without a known baseline, models of this hidden size or more are assumed to give all texts a high
F1: it is that of roberta-large, whose unrelated pairs get 0.83."""


def interpretation(
    scorer: "BERTScorer", means: Means, unrelated: "NDArray[np.float64] | None", lang: str | None
) -> list[str]:
    """Return lines that put the F1 of one layer into perspective.

    There are none if there is nothing to add.
    """
    if unrelated is not None:
        import numpy as np

        middle = np.median(unrelated)
        [share] = means.above_unrelated() or [0.0]
        return [
            f"{share:.1%} of the pairs have an F1 above {means.high:.4f}, which 99 % of unrelated "
            f"pairs do not exceed; half of these get less than {middle:.4f}."
        ]
    if scorer.signature.rescale != "no" or means.by_layer()[0][2] <= HIGH_SCORE:
        return []
    return _advice(scorer, lang)


def _advice(scorer: "BERTScorer", lang: str | None) -> list[str]:
    """Return how to rescale, if unrelated texts get high scores too."""
    manifest = scorer.manifest
    code = (lang or "").lower()
    means = {language: baselines[0].f1 for language, baselines in manifest.baselines.items()}
    is_high = manifest.hidden_size >= LARGE_SIZE
    if means:
        is_high = max(means.values()) > HIGH_BASELINE
    if not is_high:
        return []
    measure = (
        f"  bertscore-onnx baseline --model {shlex.quote(str(scorer.bundle.path))} --corpus FILE "
        "--into-bundle "
    )
    rescale = "  bertscore-onnx score ... --rescale-with-baseline --lang "
    wanted = [code] if code else ["en", *means]
    language = next((name for name in wanted if name in means), None)
    if language is None:
        note = "Large models give unrelated texts a high F1 too. First measure it, then rescale:"
        return [note, measure + (code or "CODE"), rescale + (code or "CODE")]
    rescale += language
    if manifest.baseline_precision(language) != scorer.signature.precision:
        rescale += " --allow-fp32-baseline"
    return [
        f"This model gives unrelated texts a high F1 too: {means[language]:.2f} on average "
        f"({language}). Rescale, or measure what texts like yours get:",
        rescale,
        measure + language,
    ]
