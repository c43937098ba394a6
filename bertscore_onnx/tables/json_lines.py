"""JSON lines: one object per line."""

import json
import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from bertscore_onnx.errors import InputError, shortened
from bertscore_onnx.scores import Score
from bertscore_onnx.tables.columns import UnreadableRow
from bertscore_onnx.tables.formats import Dialect
from bertscore_onnx.tables.readers import PlacedRecord, RawRow, Record, TableReader
from bertscore_onnx.tables.score_columns import BEST, check_free
from bertscore_onnx.tables.sources import VALUE_BYTES, Source, read_lines, utf8_fault
from bertscore_onnx.tables.writers import RowsToWrite


class JsonLinesReader(TableReader):
    """JSON lines."""

    def __init__(self, source: Source, name: str, dialect: Dialect, keep_faults: bool) -> None:
        self._source = source
        self._keep_faults = keep_faults
        self.place = source.title

    def records(self) -> Iterator[PlacedRecord]:
        """Yield the rows with their places."""
        for place, record, _ in self.raw_records():
            yield place, record

    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row."""
        return _OBJECTS.decode(row)

    def raw_records(self) -> Iterator[tuple[str, Record, RawRow]]:
        """Yield the rows as mappings, and their lines."""
        lines = read_lines(
            self._source,
            "one JSON object per line",
            may_be_empty=True,
            keep_faults=self._keep_faults,
        )
        for number, line in enumerate(lines, 1):
            self.size += len(line) + VALUE_BYTES * (line.count(",") + 1)
            if not line.strip():
                continue
            place = f"{self.place}, line {number}"
            try:
                values = _decoded(line, place)
            except InputError as error:
                if not self._keep_faults:
                    raise
                values = UnreadableRow(str(error).removeprefix(f"{place}: "))
            has_cell = any(value is not None for value in values.values())
            if not has_cell and not isinstance(values, UnreadableRow):
                continue
            yield place, values, line


def _decoded(line: str, place: str) -> Record:
    try:
        values = _OBJECTS.decode(line)
        if line.count(":") > len(values):  # a colon in a text, or a key that occurs again
            json.loads(
                line, object_pairs_hook=lambda pairs: unique_keys(pairs, place), parse_int=str
            )
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError) as error:
        fault = utf8_fault(line) or _fault_of_value(line)
        if not fault:
            fault = "expected a JSON object. Write one object per line"
            if not isinstance(error, msgspec.ValidationError):
                fault = f"{shortened(line.strip())!r} is no JSON; {fault}"
            if line.lstrip().startswith("["):
                fault += "; `jq -c '.[]' FILE > NEW_FILE` does so for an array"
            fault += "."
        raise InputError(f"{place}: {fault}") from error
    if values and all(isinstance(value, dict) for value in values.values()):
        raise InputError(
            f"{place}: it is an object of objects; expected a row. Write one object per line; "
            "`jq -c 'to_entries[] | {id: .key} + .value' FILE > NEW_FILE` does so."
        )
    return values


def _fault_of_value(line: str) -> str:
    """Return a sentence on a value that only Python's json reads; empty if there is none."""
    faults = []

    def read_number(text: str) -> None:
        try:
            msgspec.json.decode(text)
        except msgspec.MsgspecError:
            faults.append(
                f"it holds {shortened(text)}, a number out of range. Write null, or a text."
            )

    def read_constant(name: str) -> None:
        faults.append(f"it holds {name}, which JSON does not have. Write null.")

    try:
        values = json.loads(
            line, parse_float=read_number, parse_int=read_number, parse_constant=read_constant
        )
        text = json.dumps(values, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
    if faults:
        return faults[0]
    # Python reads and writes half of a pair of surrogates, which has no UTF-8.
    half = re.search("[\ud800-\udfff]", text)
    if half:
        return f"it holds \\u{ord(half[0]):04x}, half of a pair of surrogates. Remove it."
    return ""


def unique_keys(pairs: list[tuple[str, object]], place: str) -> Record:
    """Return the pairs of a JSON object as a dict.

    Raise an InputError for a key that occurs again.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        [(twice, number)] = Counter(key for key, _ in pairs).most_common(1)
        raise InputError(f"{place}: the key {twice!r} occurs {number} times; expected once.")
    return values


_OBJECTS = msgspec.json.Decoder(dict[str, object])


class JsonWriter:
    """Writes one JSON object per line.

    Rows of JSON lines are copied as they stand.
    """

    head = ""

    def __init__(self, rows: RowsToWrite, name: str) -> None:
        self._rows = rows
        self._source = rows.table if isinstance(rows.table, JsonLinesReader) else None

    def line(self, row: RawRow, score: Score) -> str:
        """Return an object."""
        added = self._rows.added
        numbers = dict(zip(added.names, added.row(score), strict=True))
        scores = json.dumps(numbers, ensure_ascii=False)
        if not self._rows.with_texts:
            return f"{scores}\n"
        record = self._rows.record(row)
        if self._source is not None:
            if added.has_best:  # which is not known before
                check_free(record, [BEST], self._source.place)
            return f"{row.strip()[:-1].rstrip()}, {scores[1:]}\n"
        values = msgspec.json.decode(msgspec.json.encode(record, enc_hook=str))
        return f"{json.dumps(values, ensure_ascii=False)[:-1]}, {scores[1:]}\n"
