"""Segment scores in the logs of evaluation harnesses: lm-evaluation-harness and Inspect.

A log is recognised by its content. Several logs become one table with a row for each system, item, run and metric.
Ids of items are mere counters in some harnesses, so items that share an id have to have the same content.
"""

import json
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from bertscore_onnx.errors import InputError, needs_extra, shortened
from bertscore_onnx.tables.columns import number_text
from bertscore_onnx.tables.sources import MAX_HELD_BYTES, open_source, too_long
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.metric_scores import METRICS

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """An item that a system was evaluated on once, with its scores."""

    place: str
    segment: str
    """The id of the item."""
    content: str
    """The item itself, or a hash of it."""
    run: int
    """The epoch, counted from 1."""
    scores: dict[str, object]
    """By metric, as the log has them; a metric that is missing here has no score."""
    document: str | None = None


@dataclass(frozen=True, slots=True)
class HarnessLog:
    """The samples of one file, which are of one system."""

    title: str
    system: str
    label: str
    """A short name of the file, for systems that occur in several."""
    task: str | None
    """None if the log does not name it."""
    samples: Sequence[Sample]
    lower_is_better: frozenset[str] = frozenset()
    notes: Sequence[str] = ()


def harness_scores(paths: Iterable[str | os.PathLike[str]]) -> dict[str, list[Any]]:
    """Read logs of lm-evaluation-harness or Inspect, as columns for `compare(scores=...)` or a data frame.

    Args:
        paths: `samples_*.jsonl` of lm-evaluation-harness, with the results file beside it, which names the model;
            `.eval` and `.json` logs of Inspect (version 2).

    Returns:
        The columns `system`, `segment`, `metric` and `score`, (rows,); also `run` if an item was evaluated several
        times (epochs), and `document` if the logs name a cluster. A missing score is NaN.

    Raises:
        InputError: there is no path, a file is no such log, or of another version; logs of different tasks or items;
            or a score is no number.
        MissingExtraError: a log is compressed with zstd, and pyarrow is not installed (before Python 3.14).
    """
    logs = []
    for path in paths:
        log = read_log(os.fspath(path))
        if log is None:
            raise InputError(
                f"{os.fspath(path)} is no log that is known; expected samples_*.jsonl of lm-evaluation-harness, or "
                ".eval or .json of Inspect."
            )
        logs.append(log)
    if not logs:
        raise InputError("There are no logs; expected the path of one or more.")
    table, _, _ = join_logs(logs)
    return {name: table.numbers(name).tolist() if name == "score" else table.keys(name) for name in table.names}


def read_log(name: str) -> HarnessLog | None:
    """Return the log in a file; None for anything else, such as a table. InputError is raised for a damaged log."""
    if not os.path.isfile(name):
        return None
    with open_source(name) as source:
        head = source.raw().read(4)
        if head == b"PK\x03\x04":
            return _zipped_log(name, source.raw())
        if head[:1] != b"{" and head[:2] != b"\x1f\x8b":
            return None
        file = source.decompressed()
        first = file.readline(MAX_HELD_BYTES)
        record = _parsed(first)
        if record is not None and {"doc_id", "resps"} <= record.keys():
            return _lm_eval_log(name, (first + _rest(name, file)).splitlines())
        if record is None and first.startswith(b"{"):
            record = _parsed(first + _rest(name, file))
    if record is not None and {"eval", "status", "version"} <= record.keys():
        return _inspect_log(name, record, record.get("samples") or ())
    if record is not None and {"results", "configs"} <= record.keys():
        raise InputError(
            f"{name} has the means of lm-evaluation-harness; expected samples_*.jsonl, which --log_samples writes."
        )
    return None


def _rest(name: str, file: BufferedIOBase) -> bytes:
    data = file.read(MAX_HELD_BYTES + 1)
    if len(data) > MAX_HELD_BYTES:
        raise too_long(name)
    return data


def _parsed(data: bytes) -> Json | None:
    """Return a JSON object; None for anything else. Harnesses write NaN, which other parsers refuse."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _field(record: object, name: str, kind: type | tuple[type, ...], place: str, harness: str) -> Any:
    """Return a field of a log; raise InputError if it is missing, or of another type."""
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        found = f"no {name!r}" if value is None else f"{shortened(repr(value))} as {name!r}"
        raise InputError(f"{place} has {found}; expected a log as {harness} writes it.")
    return value


# lm-evaluation-harness.

_LM_EVAL = "lm-evaluation-harness 0.4.11 or 0.4.13"
_LM_EVAL_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]*\d)\.jsonl(\.gz)?")


def _lm_eval_log(name: str, lines: Sequence[bytes]) -> HarnessLog:
    """Return a log that has a line for each item and filter; the results file of the same date names the model."""
    parts = _LM_EVAL_NAME.fullmatch(Path(name).name)
    task, date = (parts["task"], parts["date"]) if parts else (None, None)
    stem = Path(name.removesuffix(".gz")).stem
    results: Json = {}
    for path in sorted(Path(name).parent.glob(f"*_{date}.json")) if parts else ():
        results = _parsed(path.read_bytes()) or {}
    directions = (results.get("higher_is_better") or {}).get(task) or {}
    samples: dict[str, Sample] = {}
    columns: dict[str, str] = {}  # METRIC,FILTER by its metric
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number}"
        record = _parsed(line) or {}
        filtered = _field(record, "filter", str, place, _LM_EVAL)
        metrics = _field(record, "metrics", list, place, _LM_EVAL)
        item = str(_field(record, "doc_id", (int, str), place, _LM_EVAL))
        content = _field(record, "doc_hash", str, place, _LM_EVAL)
        of_line = {f"{metric},{filtered}": str(metric) for metric in metrics}
        sample = samples.setdefault(item, Sample(place, item, content, 1, {}))
        if sample.content != content or sample.scores.keys() & of_line.keys():
            raise InputError(f"{place}: the item {item!r} occurs again; it is in {sample.place} too. Expected it once.")
        sample.scores.update({column: record.get(metric) for column, metric in of_line.items()})
        columns |= of_line
    is_filtered = any(not column.endswith(",none") for column in columns)
    names = {column: column if is_filtered else metric for column, metric in columns.items()}
    return HarnessLog(
        name,
        results.get("model_name") or stem,
        date or stem,
        task,
        [
            replace(sample, scores={names[column]: score for column, score in sample.scores.items()})
            for sample in samples.values()
        ],
        frozenset(names[column] for column, metric in columns.items() if directions.get(metric) is False),
    )


# Inspect.

_INSPECT = "Inspect 0.3"
_INSPECT_VERSION = 2
_ZSTD = 93
"""The number of this compression in zip archives."""

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""The numbers that Inspect's `value_to_float` makes of grades: correct, partially, incorrect, no answer."""


def _zipped_log(name: str, file: BufferedIOBase) -> HarnessLog | None:
    """Return the log in a zip archive, or None if it is another one."""
    try:
        with ZipFile(file) as archive:
            members = archive.namelist()
            header = next((one for one in ("header.json", "_journal/start.json") if one in members), None)
            if header is None:
                return None
            names = sorted(one for one in members if one.startswith("samples/") and one.endswith(".json"))
            samples = (_member(name, archive, file, one) for one in names)
            return _inspect_log(name, {"status": "started"} | _member(name, archive, file, header), samples)
    except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error) as error:
        if not name.endswith(".eval"):
            return None
        raise InputError(f"{name} is damaged: {error}. Copy it again, or run the evaluation again.") from error


def _member(name: str, archive: ZipFile, file: BufferedIOBase, member: str) -> Json:
    """Return a JSON object in an archive, which may be compressed with zstd."""
    info = archive.getinfo(member)
    if info.file_size > MAX_HELD_BYTES:
        raise too_long(f"{name}, {member},")
    try:
        data = archive.read(info)
    except NotImplementedError:  # before Python 3.14
        if info.compress_type != _ZSTD:
            raise
        with needs_extra("parquet", f"Reading {name}, a log of Inspect that is compressed with zstd,"):
            import pyarrow as pa
        file.seek(info.header_offset + 26)
        file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)  # the name and the extra field
        try:
            data = pa.decompress(file.read(info.compress_size), info.file_size, codec="zstd", asbytes=True)
        except pa.ArrowException as error:
            raise BadZipFile(f"{member} cannot be decompressed ({error})") from error
    record = _parsed(data)
    if record is None:
        raise BadZipFile(f"{member} is not a JSON object")
    return record


def _inspect_log(name: str, header: Json, samples: Iterable[Any]) -> HarnessLog:
    """Return a log from its header and its samples; the metrics name the field of metadata that has the cluster."""
    if header.get("version") != _INSPECT_VERSION:
        raise InputError(
            f"{name} has version {header.get('version')!r} of Inspect's logs; expected version {_INSPECT_VERSION}."
        )
    spec = _field(header, "eval", dict, name, _INSPECT)
    model, task = (_field(spec, field, str, name, _INSPECT) for field in ("model", "task"))
    clusters = sorted({*_clusters([spec.get("scorers"), spec.get("metrics")])})
    notes = [f"{name} names several clusters, {', '.join(clusters)}; none was taken."] if len(clusters) > 1 else []
    rows = []
    for number, sample in enumerate(samples, 1):
        item = _field(sample, "id", (int, str), f"{name}, sample {number},", _INSPECT)
        epoch = _field(sample, "epoch", int, f"{name}, sample {item!r},", _INSPECT)
        place = f"{name}, sample {item!r}, epoch {epoch}"
        content = _field(sample, "input", (str, list), place, _INSPECT)
        if isinstance(content, list):  # without the random ids of its messages
            messages = (message for message in content if isinstance(message, dict))
            content = json.dumps([[message.get("role"), message.get("content")] for message in messages])
        metadata, by_scorer = (
            _field(sample, part, dict, place, _INSPECT) if sample.get(part) else {} for part in ("metadata", "scores")
        )
        cluster = metadata.get(clusters[0]) if len(clusters) == 1 else None
        scores: dict[str, object] = {}  # by scorer; those of a dict by `scorer/key`
        for scorer in by_scorer:
            value = _field(by_scorer, scorer, dict, place, _INSPECT).get("value")
            values = {f"/{key}": part for key, part in value.items()} if isinstance(value, dict) else {"": value}
            scores |= {
                f"{scorer}{key}": _GRADES.get(part, part) if isinstance(part, str) else part
                for key, part in values.items()
            }
        rows.append(Sample(place, str(item), content, epoch, scores, None if cluster is None else str(cluster)))
    if header.get("status") != "success":
        notes.append(f"{name} has the status {header.get('status')!r}, with {len(rows)} samples.")
    return HarnessLog(name, model, Path(name).stem, task, rows, notes=notes)


def _clusters(specification: object) -> Iterator[str]:
    """Yield the fields of metadata by which metrics cluster their standard errors."""
    if isinstance(specification, dict):
        if isinstance(specification.get("cluster"), str):
            yield specification["cluster"]
        specification = [*specification.values()]
    for part in specification if isinstance(specification, list) else ():
        yield from _clusters(part)


# Joining logs.


def join_logs(logs: Sequence[HarnessLog]) -> tuple[WholeTable, list[str], list[str]]:
    """Return the scores of several logs in one table, the metrics whose lower scores are better, and notes.

    The table has the columns system, segment, metric and score, and perhaps run, document and task; the notes are
    sentences about what was left out or named here. InputError is raised for systems with other tasks, other items
    under the same ids, or a score that is no number.
    """
    titles = " and ".join([log.title for log in logs[:2]] + ([f"{len(logs) - 2} more"] if len(logs) > 2 else []))
    has_tasks = len({log.task for log in logs if log.task is not None}) > 1
    samples: list[tuple[Sample, Json]] = []
    first: dict[str, Sample] = {}
    for log, system in zip(logs, _system_names(logs), strict=True):
        for sample in log.samples:
            segment = f"{log.task}:{sample.segment}" if has_tasks else sample.segment
            other = first.setdefault(segment, sample)
            if other.content != sample.content:
                raise InputError(
                    f"{sample.place}: the item {segment!r} is another one than in {other.place}. The logs are of "
                    "different items; expected the same ones under the same ids."
                )
            values = {"system": system, "segment": segment, "run": sample.run, "document": sample.document}
            samples.append((sample, values | {"task": log.task}))
    columns, notes = {}, [note for log in logs for note in log.notes]
    for metric in dict.fromkeys(metric for sample, _ in samples for metric in sample.scores):
        columns[metric] = [_as_number(sample.scores.get(metric)) for sample, _ in samples]
        for (sample, values), score in zip(samples, columns[metric], strict=True):
            if score is not None or sample.scores.get(metric) is None:
                continue
            shown = shortened(repr(sample.scores[metric]))
            if any(number is not None for number in columns.pop(metric)):
                of_item = f"the metric {metric!r} of the item {values['segment']!r}"
                raise InputError(f"{sample.place}: {of_item} is {shown}; expected a number.")
            notes.append(f"{metric} was left out: its values are no numbers, such as {shown}.")
            break
    if not columns:
        raise InputError(f"{titles} has no scores that are numbers; expected one or more for each item.")
    optional = {
        "run": len({sample.run for sample, _ in samples}) > 1,
        "document": all(sample.document is not None for sample, _ in samples),
        "task": has_tasks,
    }
    kept = ["system", "segment", "metric", "score", *(name for name, is_kept in optional.items() if is_kept)]
    names = {metric: f"{metric} (log)" if metric.lower() in METRICS else metric for metric in columns}
    rows = [
        (sample.place, values | {"metric": names[metric], "score": scores[row]})
        for row, (sample, values) in enumerate(samples)
        for metric, scores in columns.items()
    ]
    lower = {metric for log in logs for metric in log.lower_is_better}
    return WholeTable(titles, kept, rows), [names[metric] for metric in columns if metric in lower], notes


def _system_names(logs: Sequence[HarnessLog]) -> list[str]:
    """Return the system of each log, with the name of the file if it occurs in several logs of a task.

    InputError is raised if a log has no samples, or a system lacks a task that another one has.
    """
    for log in logs:
        if not log.samples:
            raise InputError(f"{log.title} has no samples; expected one or more. Run the evaluation with them logged.")
    tasks = sorted({log.task for log in logs if log.task is not None})
    unnamed = next((log for log in logs if log.task is None), None)
    if unnamed and len(tasks) > 1:
        raise InputError(
            f"{unnamed.title} does not name its task, and others have {', '.join(tasks)}. Give one task alone."
        )
    places = [(log.system, log.task if len(tasks) > 1 else None) for log in logs]
    repeated = {system for system, task in places if places.count((system, task)) > 1}
    has_labels = len({*zip(places, (log.label for log in logs), strict=True)}) == len(logs)
    names = [
        f"{log.system} ({log.label if has_labels else log.title})" if log.system in repeated else log.system
        for log in logs
    ]
    for system in dict.fromkeys(names) if len(tasks) > 1 else ():
        titles = {log.task: log.title for name, log in zip(names, logs, strict=True) if name == system}
        if lacking := [task for task in tasks if task not in titles]:
            raise InputError(
                f"The system {system!r} has no log of the task {lacking[0]!r}, only {', '.join(titles.values())}; "
                "expected logs of the same tasks for each system."
            )
    return names


_YES_OR_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def _as_number(value: object) -> float | None:
    """Return the number that a score is, or stands for; None if it is none. NaN stands for no score."""
    if isinstance(value, str):
        value = _YES_OR_NO.get(value.lower(), value)
    try:
        return float(number_text(value)) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
