"""Reads fields of JSON lines: one object a line."""

from collections.abc import Iterator, Sequence

import msgspec

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.files.lines import read_lines
from bertscore_onnx.tables.files.sources import Source


def read_json_lines(source: Source, columns: Sequence[Column]) -> Iterator[list[str]]:
    """Yield the texts of some fields, object by object; blank lines are skipped.

    Args:
        source: what to read; the lines and their errors are those of `read_lines`.
        columns: the fields.

    Raises:
        InputError: a line is not an object, or one of its fields is missing, or no text.
    """
    for place, fields in read_objects(source):
        names = [column.find([*fields], place) for column in columns]
        yield [
            text
            for column, name in zip(columns, names, strict=True)
            for text in column.texts_of(fields[name], name, place)
        ]


def read_objects(source: Source) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield where each object stands, and its fields; blank lines are skipped.

    Raises:
        InputError: a line is not an object; the lines and their errors are those of `read_lines`.
    """
    for number, line in enumerate(read_lines(source, "a JSON object a line"), 1):
        if line.strip():
            place = f"{source.title}, line {number}"
            yield place, _decoded(line, place)


def _decoded(line: str, place: str) -> dict[str, object]:
    try:
        return _OBJECTS.decode(line)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: expected a JSON object.{_ONE_A_LINE}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{place}: expected a JSON object ({error}).{_ONE_A_LINE}") from error


_OBJECTS = msgspec.json.Decoder(dict[str, object])

_ONE_A_LINE = " Objects stand one a line; `jq -c '.[]' FILE > NEW_FILE` writes those of an array so."
