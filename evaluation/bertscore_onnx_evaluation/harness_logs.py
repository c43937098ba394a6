"""Segment scores in the logs of evaluation harnesses: lm-evaluation-harness and Inspect.

A log is recognised by its content. Several logs become one table with a row for each system, item, run and metric.
Ids of items are mere counters in some harnesses, so items that share an id have to have the same content. A log may
also have what the harness makes of all items, which shows what their scores are: those of a perplexity are
log-likelihoods, and some metrics have no score of a single item.
"""

import hashlib
import json
import logging
import math
import os
import re
import struct
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any
from zipfile import BadZipFile, ZipFile

from bertscore_onnx.errors import InputError, needs_extra, shortened
from bertscore_onnx.tables.columns import number_text
from bertscore_onnx.tables.sources import MAX_HELD_BYTES, open_source
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.metric_scores import METRICS
from bertscore_onnx_evaluation.score_files import names_of_files

Json = dict[str, Any]

MAX_OBJECT_BYTES = MAX_HELD_BYTES // 5
"""The most JSON that is parsed at once, which may take several times the memory. Logs may have `MAX_HELD_BYTES`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An item that a system was evaluated on once, with its scores."""

    place: str
    segment: str
    """The id of the item."""
    content: str
    """A hash of the item."""
    run: int
    """The epoch, counted from 1."""
    scores: dict[str, float | str]
    """By metric; what the log has in place of a number, as a text. A metric that is missing here has no score."""
    document: str | None = None


@dataclass(frozen=True, slots=True)
class HarnessLog:
    """The samples of one file, which are of one system."""

    title: str
    system: str
    task: str | None
    """None if the log does not name it."""
    samples: Sequence[Sample]
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    """By metric, where the log says so."""
    aggregates: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By metric the numbers that the harness computed from all items, such as their mean."""
    notes: Sequence[str] = ()


def harness_scores(paths: Iterable[str | os.PathLike[str]]) -> dict[str, list[Any]]:
    """Read logs of lm-evaluation-harness or Inspect, as columns for `compare(scores=...)` or a data frame.

    Metrics that are left out are logged as warnings.

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
    table, _, notes = join_logs(logs)
    for note in notes:
        logging.getLogger(__name__).warning(note)
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
        first = file.readline(MAX_OBJECT_BYTES)
        record = _parsed(first)
        if record is not None and {"doc_id", "resps"} <= record.keys():
            return _lm_eval_log(name, chain([first], _lines(name, file)))
        if record is None and first.startswith(b"{"):
            data = first + file.read(MAX_OBJECT_BYTES)
            _check_size(name, len(data), MAX_OBJECT_BYTES)
            record = _parsed(data)
    if record is not None and {"eval", "status", "version"} <= record.keys():
        return _inspect_log(name, record, record.get("samples") or ())
    if record is not None and {"results", "configs"} <= record.keys():
        raise InputError(
            f"{name} has the means of lm-evaluation-harness; expected samples_*.jsonl, which --log_samples writes."
        )
    return None


def _check_size(name: str, size: int, most: int) -> None:
    if size > most:
        raise InputError(
            f"{name} has more than {most:,} bytes of JSON, too many to read into memory. Write its scores as a table "
            "with the columns system, segment and score."
        )


def _parsed(data: bytes) -> Json | None:
    """Return a JSON object; None for anything else. Harnesses write NaN, which other parsers refuse."""
    try:
        record = json.loads(data, parse_int=lambda text: int(text) if len(text) < 4300 else math.inf)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _field(record: object, name: str, kind: type | tuple[type, ...], place: str, harness: str) -> Any:
    """Return a field of a log; raise InputError if it is missing, or of another type."""
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        what = f"no {name!r}" if value is None else f"{shortened(repr(value))} as {name!r}"
        raise InputError(f"{place} has {what}; expected a log as {harness} writes it.")
    return value


_YES_OR_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def _score(value: object) -> float | str:
    """Return the number that a score is, or stands for; its text if it is none."""
    number = _YES_OR_NO.get(value.lower(), value) if isinstance(value, str) else value
    try:
        score = float(number_text(number)) if isinstance(number, str | int | float) else math.inf
    except (ValueError, OverflowError):
        score = math.inf
    return shortened(repr(value)) if math.isinf(score) else score


# lm-evaluation-harness.

_LM_EVAL = "lm-evaluation-harness 0.4.11 or 0.4.13"
_LM_EVAL_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]*\d)\.jsonl(\.gz)?")


def _lines(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    size = 0
    while line := file.readline(MAX_OBJECT_BYTES):
        size += len(line)
        _check_size(name, size, MAX_HELD_BYTES)
        yield line


def _lm_eval_log(name: str, lines: Iterable[bytes]) -> HarnessLog:
    """Return a log that has a line for each item and filter; the results file of the same date names the model."""
    parts = _LM_EVAL_NAME.fullmatch(Path(name).name)
    task, date = (parts["task"], parts["date"]) if parts else (None, None)
    results: Json = {}
    for path in sorted(Path(name).parent.glob(f"*_{date}.json")) if parts else ():
        results = _parsed(path.read_bytes()) or {}
    aggregates, directions = ((results.get(part) or {}).get(task) or {} for part in ("results", "higher_is_better"))
    samples: dict[str, Sample] = {}
    names: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number}"
        if (record := _parsed(line)) is None:
            raise InputError(f"{place} is no JSON object; expected a log as {_LM_EVAL} writes it.")
        filtered = _field(record, "filter", str, place, _LM_EVAL)
        metrics = _field(record, "metrics", list, place, _LM_EVAL)
        item = str(_field(record, "doc_id", (int, str), place, _LM_EVAL))
        content = _field(record, "doc_hash", str, place, _LM_EVAL)
        of_line = {
            metric if filtered == "none" else f"{metric},{filtered}": (metric, filtered) for metric in map(str, metrics)
        }
        sample = samples.setdefault(item, Sample(place, item, content, 1, {}))
        if sample.content != content or sample.scores.keys() & of_line.keys():
            raise InputError(f"{place}: the item {item!r} occurs again; it is in {sample.place} too. Expected it once.")
        values = {column: record.get(metric) for column, (metric, _) in of_line.items()}
        sample.scores.update({column: math.nan if value is None else _score(value) for column, value in values.items()})
        names |= of_line
    higher_is_better = {column: directions.get(metric) for column, (metric, _) in names.items()}
    of_all = {column: aggregates.get(f"{metric},{filtered}") for column, (metric, filtered) in names.items()}
    return HarnessLog(
        name,
        results.get("model_name") or Path(name.removesuffix(".gz")).stem,
        task,
        [*samples.values()],
        {column: is_higher for column, is_higher in higher_is_better.items() if isinstance(is_higher, bool)},
        {column: [value] for column, value in of_all.items() if isinstance(value, int | float)},
    )


# Inspect.

_INSPECT = "Inspect 0.3"
_INSPECT_VERSION = 2
_ZSTD = 93
"""The number of this compression in zip archives."""

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""The numbers that Inspect's `value_to_float` makes of grades: correct, partially, incorrect, no answer."""


def _zipped_log(name: str, file: BufferedIOBase) -> HarnessLog | None:
    """Return the log in a zip archive, or None if it is another archive."""
    try:
        with ZipFile(file) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            header = next((one for one in ("header.json", "_journal/start.json") if one in sizes), None)
            if header is None:
                return None
            names = sorted(one for one in sizes if one.startswith("samples/") and one.endswith(".json"))
            _check_size(name, sum(sizes[one] for one in (header, *names)), MAX_HELD_BYTES)
            samples = (_member(name, archive, file, one) for one in names)
            return _inspect_log(name, {"status": "started"} | _member(name, archive, file, header), samples)
    except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error) as error:
        if not name.endswith(".eval"):
            return None
        raise InputError(f"{name} is damaged: {error}. Copy it again, or run the evaluation again.") from error


def _member(name: str, archive: ZipFile, file: BufferedIOBase, member: str) -> Json:
    """Return a JSON object in an archive, which may be compressed with zstd."""
    info = archive.getinfo(member)
    _check_size(f"{name}, {member},", info.file_size, MAX_OBJECT_BYTES)
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
    metrics = json.dumps([spec.get("scorers"), spec.get("metrics")])
    clusters = sorted({json.loads(name) for name in re.findall(r'"cluster": ("(?:[^"\\]|\\.)*")', metrics)})
    notes = [f"{name} names several clusters, {', '.join(clusters)}; none was taken."] if len(clusters) > 1 else []
    aggregates: dict[str, list[float]] = {}
    by_scorer = _field(header.get("results") or {"scores": []}, "scores", list, name, _INSPECT)
    for of_scorer in by_scorer:
        scorer, key = (_field(of_scorer, field, str, name, _INSPECT) for field in ("scorer", "name"))
        column = _column(scorer, None if key == scorer else key, [of_scorer["scorer"] for of_scorer in by_scorer])
        for metric in _field(of_scorer, "metrics", dict, name, _INSPECT).values():
            aggregates.setdefault(column, []).append(_field(metric, "value", (int, float), name, _INSPECT))
    higher_is_better: dict[str, bool] = {}
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
        values: dict[str, object] = {}
        for scorer in by_scorer:
            value = _field(by_scorer, scorer, dict, place, _INSPECT).get("value")
            parts = value if isinstance(value, dict) else {None: value}
            values |= {_column(scorer, key, by_scorer): part for key, part in parts.items() if part is not None}
        grades = {
            column: _GRADES[value] for column, value in values.items() if isinstance(value, str) and value in _GRADES
        }
        higher_is_better |= dict.fromkeys(grades, True)
        content = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        scores = {column: _score(value) for column, value in (values | grades).items()}
        rows.append(Sample(place, str(item), content, epoch, scores, None if cluster is None else str(cluster)))
    if header.get("status") != "success":
        notes.append(f"{name} has the status {header.get('status')!r}, with {len(rows)} samples.")
    return HarnessLog(name, model, task, rows, higher_is_better, aggregates, notes)


def _column(scorer: str, key: str | None, scorers: Container[str]) -> str:
    """Return the metric of a scorer, or of a key of its values, which is no other scorer's."""
    whole = f"{scorer}/{key}"
    return scorer if key is None else f"{scorer}: {key}" if whole in scorers else whole


# Joining logs.


def join_logs(logs: Sequence[HarnessLog]) -> tuple[WholeTable, dict[str, bool], list[str]]:
    """Return the scores of several logs in one table; whether higher ones are better, where that is known; and notes.

    The table has the columns system, segment, metric and score, and perhaps run, document and task; the notes are
    sentences about what was left out or named here. InputError is raised for systems with other tasks, other items
    under the same ids, or a score that is no number.
    """
    titles = " and ".join([log.title for log in logs[:2]] + ([f"{len(logs) - 2} more"] if len(logs) > 2 else []))
    has_tasks = len({log.task for log in logs if log.task is not None}) > 1
    rows: list[tuple[Sample, Json]] = []
    first: dict[str, Sample] = {}
    for log, system in zip(logs, _system_names(logs), strict=True):
        if not log.samples:
            raise InputError(f"{log.title} has no samples; expected one or more. Run the evaluation with them logged.")
        for sample in log.samples:
            segment = f"{log.task}:{sample.segment}" if has_tasks else sample.segment
            other = first.setdefault(segment, sample)
            if other.content != sample.content:
                raise InputError(
                    f"{sample.place}: the item {segment!r} is another one than in {other.place}. The logs are of "
                    "different items; expected the same ones under the same ids."
                )
            values = {"system": system, "segment": segment, "run": sample.run, "document": sample.document}
            rows.append((sample, values | {"task": log.task}))
    names: dict[str, str] = {}
    higher_is_better: dict[str, bool] = {}
    notes = [note for log in logs for note in log.notes]
    for metric in dict.fromkeys(metric for sample, _ in rows for metric in sample.scores):
        scores = [sample.scores.get(metric, math.nan) for sample, _ in rows]
        texts = [row for row, score in enumerate(scores) if isinstance(score, str)]
        kinds = {_kind(metric, log) for log in logs} - {None}
        if all(isinstance(score, str) or math.isnan(score) for score in scores):
            such = f", only values such as {scores[texts[0]]}" if texts else ""
            notes.append(f"{metric} was left out: it has no numbers{such}.")
        elif texts:
            sample, values = rows[texts[0]]
            of_item = f"the metric {metric!r} of the item {values['segment']!r}"
            raise InputError(f"{sample.place}: {of_item} is {scores[texts[0]]}; expected a number.")
        elif len(kinds) > 1 or "other" in kinds:
            notes.append(f"{metric} was left out: its value for all items is not the mean of their scores.")
        else:
            kind = next(iter(kinds), None) or "mean"
            known = {log.higher_is_better[metric] for log in logs if metric in log.higher_is_better}
            names[metric] = f"{metric} (log)" if metric.lower() in METRICS else metric
            if kind != "mean":
                names[metric], known = metric.replace("perplexity", kind), {kind == "loglikelihood"}
            if len(known) == 1:
                [higher_is_better[names[metric]]] = known
    if not names:
        reasons = "".join(f" {note}" for note in notes)
        raise InputError(f"{titles} has no scores that are numbers; expected one or more for each item.{reasons}")
    in_clusters = [sample.document is not None for sample, _ in rows]
    if any(in_clusters) and not all(in_clusters):
        sample, _ = rows[in_clusters.index(False)]
        notes.append(f"Clusters were left out: {sample.place} has none.")
    optional = {"run": len({sample.run for sample, _ in rows}) > 1, "document": all(in_clusters), "task": has_tasks}
    kept = ["system", "segment", "metric", "score", *(name for name, is_kept in optional.items() if is_kept)]
    records = [
        (sample.place, values | {"metric": name, "score": sample.scores.get(metric)})
        for sample, values in rows
        for metric, name in names.items()
    ]
    return WholeTable(titles, kept, records), higher_is_better, notes


def _kind(metric: str, log: HarnessLog) -> str | None:
    """Return what the scores of items are, by what their harness made of them; None if it made nothing.

    It has their mean; or, of log-likelihoods, the exponential of that: a perplexity, which is 1 or more.
    """
    by_item: dict[str, list[float]] = {}
    for sample in log.samples:
        score = sample.scores.get(metric)
        if isinstance(score, float) and not math.isnan(score):
            by_item.setdefault(sample.segment, []).append(score)
    if not by_item:
        return None
    mean, aggregates = fmean(map(fmean, by_item.values())), log.aggregates.get(metric)
    if not aggregates:
        return "loglikelihood" if metric.startswith("perplexity") and mean <= 0 else None
    logs = [math.log(aggregate) for aggregate in aggregates if aggregate > 0]
    means = {"mean": aggregates, "loglikelihood": [-value for value in logs], "negative_loglikelihood": logs}
    for kind, values in means.items():
        if any(math.isclose(mean, value, rel_tol=1e-6, abs_tol=1e-9) for value in values):
            return kind
    return "other"


def _system_names(logs: Sequence[HarnessLog]) -> list[str]:
    """Return the system of each log, with the name of the file if it occurs in several logs of a task.

    InputError is raised if a system lacks another system's task.
    """
    tasks = sorted({log.task for log in logs if log.task is not None})
    places = [(log.system, log.task if len(tasks) > 1 else None) for log in logs]
    repeated = {system for system, task in places if places.count((system, task)) > 1}
    labels = names_of_files([log.title for log in logs])
    names = [
        f"{log.system} ({label})" if log.system in repeated else log.system
        for log, label in zip(logs, labels, strict=True)
    ]
    for system in dict.fromkeys(names) if len(tasks) > 1 else ():
        titles = {log.task: log.title for name, log in zip(names, logs, strict=True) if name == system}
        if lacking := [task for task in tasks if task not in titles]:
            raise InputError(
                f"The system {system!r} has no log of the task {lacking[0]!r}, only {', '.join(titles.values())}; "
                "expected logs of the same tasks for each system."
            )
    return names
