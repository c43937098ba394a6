"""Files of segment scores as tables: from COMET, from WMT's metrics tasks, and with one number a line.

They are recognised by their content, and WMT's by their names. Everything else is a table, or a log of a harness.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from bertscore_onnx.errors import InputError, shortened
from bertscore_onnx.tables.sources import (
    DEFAULT_DIALECT,
    STANDARD_INPUT,
    Dialect,
    format_of,
    open_source,
    read_lines,
    read_whole_rows,
)
from bertscore_onnx.tables.whole_table import WholeTable, read_table

WMT = ".seg.score"
"""The end of the names of files with a system and its score in each line, those of a system in order of segments."""

_COMET_LINE = re.compile(r"(?P<file>.+)\tSegment (?P<segment>\d+)\tscore: (?P<score>\S+)(\tvariance: \S+)?")
_COMET_MEAN = re.compile(r".+\tscore: \S+|Predictions saved in: .+")


def names_of_files(files: Sequence[str]) -> list[str]:
    """Return a name for each file: the file's without folder and suffix, or whole if two are alike."""
    stems = [PurePath(PurePath(name.removesuffix(".gz").removesuffix(WMT)).stem).name for name in files]
    return [
        stem if stems.count(stem) == 1 and stem not in files else name for name, stem in zip(files, stems, strict=True)
    ]


def read_scores(name: str, dialect: Dialect = DEFAULT_DIALECT, system: str | None = None) -> WholeTable:
    """Read a file of segment scores; raise InputError for a file of another form.

    Tables keep their columns. Scores of COMET and of WMT get the columns system, segment and score, and those of COMET
    metric; one number a line gets the column score. A single system in such a file may be given its name.
    """
    table_format = dialect.format or format_of(name)
    is_table = dialect.format not in (None, "text") or dialect.has_settings or name == STANDARD_INPUT
    if not is_table and name.removesuffix(".gz").endswith(WMT):
        return _of_wmt(name, _lines(name), system)
    if dialect.format is None and table_format == "jsonl" and (rows := _comet_json(name, system)) is not None:
        return rows
    if is_table or table_format != "text":
        table = read_table(name, dialect)
        if table_format in ("tsv", "csv") and dialect.has_header and all(map(_is_number, table.names)):
            shown = ", ".join(map(shortened, table.names[:3]))
            raise InputError(
                f"{name} has numbers in its first line, {shown}; expected names of columns. If it has no header, add "
                "--input-format header=no."
            )
        return table
    lines = _lines(name)
    if any(_COMET_LINE.fullmatch(line) for line in lines):
        return _comet_lines(name, lines, system)
    if lines[0].startswith("{"):
        return read_table(name, replace(dialect, format="jsonl"))
    table = WholeTable(name, ["score"], [(f"{name}, line {at}", {"score": line}) for at, line in enumerate(lines, 1)])
    if "texts" in table.content("score"):
        wrong = next(at for at, line in enumerate(lines, 1) if not _is_number(line))
        raise InputError(
            f"{name}, line {wrong}: {shortened(lines[wrong - 1])!r} is no number; expected one in each line, or a file "
            "that COMET or WMT's tools write. If it is a table, name it .tsv, .csv or .jsonl, or add --input-format."
        )
    return table


def _is_number(line: str) -> bool:
    return "texts" not in WholeTable("", [""], [("", {"": line})]).content("")


def _lines(name: str) -> list[str]:
    with open_source(name) as source:
        lines = read_whole_rows(read_lines(source, "scores"), source.title, lambda line: [line])
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return lines


def _long_table(
    name: str, metric: str | None, cells: Sequence[tuple[str, str, int, object]], system: str | None
) -> WholeTable:
    """Return a table from places, files, segments and scores; systems are called after their files."""
    files = [*dict.fromkeys(file for _, file, _, _ in cells)]
    named = [system] if system is not None and len(files) == 1 else files if metric is None else names_of_files(files)
    systems = dict(zip(files, named, strict=True))
    of_metric = {} if metric is None else {"metric": metric}
    records = [
        (f"{name}, {place}", {"system": systems[file], "segment": segment, "score": score, **of_metric})
        for place, file, segment, score in cells
    ]
    return WholeTable(name, ["system", "segment", "score", *of_metric], records)


def _of_wmt(name: str, lines: Sequence[str], named: str | None) -> WholeTable:
    counts: dict[str, int] = {}
    cells = []
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != 2:
            raise InputError(f"{name}, line {number}: there are {len(fields)} fields; expected a system and its score.")
        system, score = fields
        counts[system] = counts.get(system, 0) + 1
        cells.append((f"line {number}", system, counts[system], score))
    return _long_table(name, None, cells, named)


def _comet_lines(name: str, lines: Sequence[str], system: str | None) -> WholeTable:
    """Return the scores in what `comet-score` prints, a line for each system and segment."""
    rows = []
    for number, line in enumerate(lines, 1):
        cell = _COMET_LINE.fullmatch(line)
        if cell is not None:
            rows.append((f"line {number}", cell["file"], int(cell["segment"]), cell["score"]))
        elif line.strip() and not _COMET_MEAN.fullmatch(line):
            raise InputError(
                f"{name}, line {number}: {shortened(line)!r} is none of the lines that comet-score prints. Keep these "
                f"alone: `grep -P '\\tSegment ' {name} > NEW_FILE`."
            )
    return _long_table(name, "COMET", rows, system)


def _comet_json(name: str, system: str | None) -> WholeTable | None:
    """Return the scores in what `comet-score --to_json` writes, an object with the segments of each file; or None."""
    lines = _lines(name)
    if not lines[0].lstrip().startswith("{") or (len(lines) > 1 and lines[1].lstrip().startswith("{")):
        return None
    try:
        record = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return None
    lists = [*record.values()] if isinstance(record, dict) else []
    if not lists or not all(isinstance(one, list) and all(isinstance(row, dict) for row in one) for one in lists):
        if len(lines) > 1:
            raise InputError(
                f"{name} is one JSON object; expected an object a line, what `comet-score --to_json` writes, or a log "
                "of lm-evaluation-harness or Inspect."
            )
        return None
    keys = next(([key] for key in ("COMET", "score") if all(key in row for one in lists for row in one)), [])
    if not keys:
        raise InputError(f"{name} has lists of segments without a score; expected 'COMET' or 'score' in each.")
    [key] = keys
    cells = [
        (f"{file}, segment {segment}", file, segment, row[key])
        for file, segments in record.items()
        for segment, row in enumerate(segments)
    ]
    return _long_table(name, key, cells, system)
