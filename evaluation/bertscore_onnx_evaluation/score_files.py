"""Files of segment scores as tables.

They come from COMET, from WMT's metrics tasks, or have one number a line. They are recognised by
their content, and WMT's by their names. Everything else is a table, or a log of a harness.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from bertscore_onnx.errors import InputError, shortened
from bertscore_onnx.tables.formats import DEFAULT_DIALECT, Dialect, format_of
from bertscore_onnx.tables.sources import STANDARD_INPUT, lines_of
from bertscore_onnx.tables.whole_table import WholeTable, read_table
from bertscore_onnx_evaluation.systems.input_reader import WMT, names_of_files


def read_scores(
    name: str,
    dialect: Dialect = DEFAULT_DIALECT,
    system: str | None = None,
) -> WholeTable:
    """Read a file of segment scores; raise InputError for another form.

    Tables keep their columns. Scores of COMET and of WMT get the columns system, segment and score,
    and those of COMET metric; one number a line gets the column score. A single system in such a
    file may be given its name.
    """
    table_format = dialect.format or format_of(name)
    is_table = dialect.format not in (None, "text") or dialect.has_settings
    is_table = is_table or name == STANDARD_INPUT
    if not is_table and name.removesuffix(".gz").endswith(WMT):
        return _of_wmt(name, _lines(name), system)
    if dialect.format is None and table_format == "jsonl":
        table = _comet_json(name, system)
        if table is not None:
            return table
    if is_table or table_format != "text":
        table = read_table(name, dialect)
        if table_format in ("tsv", "csv") and dialect.has_header:
            _check_header(table)
        return table
    lines = _lines(name)
    if lines[0].startswith("{"):
        return read_table(name, replace(dialect, format="jsonl"))
    return _numbers(name, lines)


def _check_header(table: WholeTable) -> None:
    """Raise InputError if the first line has numbers, so that it is no header."""
    if not all(map(_is_number, table.names)):
        return
    shown = ", ".join(map(shortened, table.names[:3]))
    raise InputError(
        f"{table.title} has numbers in its first line, {shown}; expected names of columns. If it "
        "has no header, add --input-format header=no."
    )


def _numbers(name: str, lines: Sequence[str]) -> WholeTable:
    """Return the scores of a file with one number a line."""
    records: list[tuple[str, dict[str, object]]] = []
    for number, line in enumerate(lines, 1):
        records.append((f"{name}, line {number}", {"score": line}))
    table = WholeTable(name, ["score"], records)
    if "texts" not in table.content("score"):
        return table
    number, line = next(row for row in enumerate(lines, 1) if not _is_number(row[1]))
    raise InputError(
        f"{name}, line {number}: {shortened(line)!r} is no number; expected one in each line, a "
        "file of WMT's tools, or what `comet-score --to_json FILE` writes. The name of a "
        "table ends in .tsv, .csv or .jsonl, or add --input-format."
    )


def _is_number(line: str) -> bool:
    return "texts" not in WholeTable("", [""], [("", {"": line})]).content("")


def _lines(name: str) -> list[str]:
    lines = lines_of(name, "scores")
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return lines


def _long_table(
    name: str,
    metric: str | None,
    cells: Sequence[tuple[str, str, int, object]],
    system: str | None,
) -> WholeTable:
    """Return a table from places, files, segments and scores.

    Systems are called after their files.
    """
    files = list(dict.fromkeys(file for _, file, _, _ in cells))
    if system is not None and len(files) == 1:
        named = [system]
    elif metric is None:
        named = files
    else:
        named = names_of_files(files)
    systems = dict(zip(files, named, strict=True))
    of_metric = {} if metric is None else {"metric": metric}
    records = []
    for place, file, segment, score in cells:
        row = {"system": systems[file], "segment": segment, "score": score, **of_metric}
        records.append((f"{name}, {place}", row))
    return WholeTable(name, ["system", "segment", "score", *of_metric], records)


def _of_wmt(name: str, lines: Sequence[str], named: str | None) -> WholeTable:
    counts: dict[str, int] = {}
    cells = []
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != 2:
            given = f"there are {len(fields)} fields"
            raise InputError(
                f"{name}, line {number}: {given}; expected a system and its score.",
            )
        system, score = fields
        counts[system] = counts.get(system, 0) + 1
        cells.append((f"line {number}", system, counts[system], score))
    return _long_table(name, None, cells, named)


def _comet_json(name: str, system: str | None) -> WholeTable | None:
    """Return the scores in what `comet-score --to_json` writes, or None.

    This is an object with the segments of each file.
    """
    lines = _lines(name)
    if not lines[0].lstrip().startswith("{"):
        return None
    if len(lines) > 1 and lines[1].lstrip().startswith("{"):
        return None
    try:
        record = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return None
    lists = list(record.values()) if isinstance(record, dict) else []
    if not lists or not all(map(_is_list_of_objects, lists)):
        if len(lines) > 1:
            raise InputError(
                f"{name} is one JSON object; expected an object a line, what `comet-score "
                "--to_json` writes, or a log of lm-evaluation-harness or Inspect."
            )
        return None
    keys = {"COMET", "score"}.intersection(*chain.from_iterable(lists))  # that all segments have
    if not keys:
        raise InputError(
            f"{name} has lists of segments without a score; expected 'COMET' or 'score' in each.",
        )
    key = "COMET" if "COMET" in keys else "score"
    cells = []
    for file, segments in record.items():
        for segment, row in enumerate(segments):
            cells.append((f"{file}, segment {segment}", file, segment, row[key]))
    return _long_table(name, key, cells, system)


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)
