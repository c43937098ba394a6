"""Segment scores in the logs of evaluation harnesses.

The harnesses are lm-evaluation-harness and Inspect. A log is recognised by its content. Several
logs become one table with a row for each system, item, run and metric. Ids of items are mere
counters in some harnesses, so items that share an id have to have the same content.

A log may also have what the harness makes of all items, which shows what their scores are: those of
a perplexity are log-likelihoods, and some metrics have no score of a single item.
"""

import hashlib
import json
import logging
import math
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from bertscore_onnx.errors import InputError, needs_extra, needs_package, shortened
from bertscore_onnx.tables.columns import number_text
from bertscore_onnx.tables.sources import MAX_HELD_BYTES, open_source
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.metric_scores import METRICS
from bertscore_onnx_evaluation.systems.input_reader import names_of_files

if TYPE_CHECKING:
    from pandas import DataFrame

Json = dict[str, Any]

MAX_OBJECT_BYTES = MAX_HELD_BYTES // 5
"""The most JSON that is parsed at once, which may take several times the memory.

Logs may have `MAX_HELD_BYTES`.
"""


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
    """By metric; what the log has in place of a number, as a text.

    A metric that is missing here has no score.
    """
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


def harness_scores(paths: Iterable[str | os.PathLike[str]]) -> "DataFrame":
    """Read logs of lm-evaluation-harness or Inspect as a long table, for `compare(scores=...)`.

    Metrics that are left out are logged as warnings.

    Args:
        paths: `samples_*.jsonl` of lm-evaluation-harness, with the results file beside it, which
            names the model; `.eval` and `.json` logs of Inspect (version 2).

    Returns:
        A data frame of pandas with the columns `system`, `segment`, `metric` and `score`; also
        `run` if an item was evaluated several times (epochs), and `document` if the logs name a
        cluster. A missing score is NaN.

    Raises:
        InputError: there is no path, a file is no such log, or of another version; logs of
            different tasks or items; or a score is no number.
        MissingExtraError: pandas is not installed; or a log is compressed with zstd, and pyarrow is
            not installed (before Python 3.14).
    """
    with needs_package("pandas", "pandas is not installed. Install it: `pip install pandas`."):
        from pandas import DataFrame
    logs = []
    for path in paths:
        log = read_log(os.fspath(path))
        if log is None:
            raise InputError(
                f"{os.fspath(path)} is no log that is known; expected samples_*.jsonl of "
                "lm-evaluation-harness, or .eval or .json of Inspect."
            )
        logs.append(log)
    if not logs:
        raise InputError("There are no logs; expected the path of one or more.")
    table, _, notes = join_logs(logs)
    for note in notes:
        logging.getLogger(__name__).warning(note)
    columns = {name: table.keys(name) for name in table.names if name != "score"}
    return DataFrame({**columns, "score": table.numbers("score")}, columns=table.names)


def read_log(name: str) -> HarnessLog | None:
    """Return the log in a file; None for anything else, such as a table.

    InputError is raised for a damaged log.
    """
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
            # The object goes on in further lines.
            data = first + file.read(MAX_OBJECT_BYTES)
            _check_size(name, len(data), MAX_OBJECT_BYTES)
            record = _parsed(data)
    if record is not None and {"eval", "status", "version"} <= record.keys():
        return _inspect_log(name, record, record.get("samples") or ())
    if record is not None and {"results", "configs"} <= record.keys():
        means = f"{name} has the means of lm-evaluation-harness"
        raise InputError(f"{means}; expected samples_*.jsonl, which --log_samples writes.")
    return None


def _check_size(name: str, size: int, largest: int) -> None:
    if size > largest:
        raise InputError(
            f"{name} has more than {largest:,} bytes of JSON, too many to read into memory. Write "
            "its scores as a table with the columns system, segment and score."
        )


def _parsed(data: bytes) -> Json | None:
    """Return a JSON object; None for anything else.

    Harnesses write NaN, which other parsers refuse.
    """
    try:
        record = json.loads(data, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _integer(text: str) -> int | float:
    if len(text) >= 4300:  # Python refuses to convert more digits
        return math.inf
    return int(text)


def _field(
    record: object,
    name: str,
    kind: type | tuple[type, ...],
    place: str,
    harness: str,
) -> Any:
    """Return a field of a log.

    InputError is raised if it is missing, or of another type.
    """
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    found = f"no {name!r}" if value is None else f"{shortened(repr(value))} as {name!r}"
    raise InputError(f"{place} has {found}; expected a log as {harness} writes it.")


_YES_OR_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def _score(value: object) -> float | str:
    """Return the number that a score is or stands for, else its text."""
    number = value
    if isinstance(value, str):
        number = _YES_OR_NO.get(value.lower(), value)
    score = math.inf
    if isinstance(number, str | int | float):
        with suppress(ValueError, OverflowError):
            score = float(number_text(number))
    if math.isinf(score):
        return shortened(repr(value))
    return score


# lm-evaluation-harness.

_LM_EVAL = "lm-evaluation-harness 0.4.11 or 0.4.13"
_LM_EVAL_NAME = re.compile(
    r"samples_(?P<task>.+)"
    r"_(?P<date>\d{4}-\d\d-\d\dT[\d.-]*\d)\.jsonl(\.gz)?"
)


def _lines(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    size = 0
    while line := file.readline(MAX_OBJECT_BYTES):
        size += len(line)
        _check_size(name, size, MAX_HELD_BYTES)
        yield line


def _lm_eval_log(name: str, lines: Iterable[bytes]) -> HarnessLog:
    """Return a log that has a line for each item and filter.

    The results file of the same date names the model.
    """
    task, results = _lm_eval_results(name)
    aggregates = (results.get("results") or {}).get(task) or {}
    directions = (results.get("higher_is_better") or {}).get(task) or {}
    samples: dict[str, Sample] = {}
    higher_is_better = {}
    of_all_items = {}
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number}"
        record = _parsed(line)
        if record is None:
            raise InputError(f"{place} is no JSON object; expected a log as {_LM_EVAL} writes it.")
        filtered = _field(record, "filter", str, place, _LM_EVAL)
        metrics = _field(record, "metrics", list, place, _LM_EVAL)
        item = str(_field(record, "doc_id", (int, str), place, _LM_EVAL))
        content = _field(record, "doc_hash", str, place, _LM_EVAL)
        scores: dict[str, float | str] = {}
        for metric in map(str, metrics):
            column = metric
            if filtered != "none":
                column = f"{metric},{filtered}"
            is_higher = directions.get(metric)
            if isinstance(is_higher, bool):
                higher_is_better[column] = is_higher
            aggregate = aggregates.get(f"{metric},{filtered}")
            if isinstance(aggregate, int | float):
                of_all_items[column] = [aggregate]
            value = record.get(metric)
            scores[column] = math.nan
            if value is not None:
                scores[column] = _score(value)
        sample = samples.setdefault(item, Sample(place, item, content, 1, {}))
        if sample.content != content or sample.scores.keys() & scores.keys():
            repeated = f"{place}: the item {item!r} occurs again"
            raise InputError(f"{repeated}; it is in {sample.place} too. Expected it once.")
        sample.scores.update(scores)

    return HarnessLog(
        name,
        results.get("model_name") or Path(name.removesuffix(".gz")).stem,
        task,
        list(samples.values()),
        higher_is_better,
        of_all_items,
    )


def _lm_eval_results(name: str) -> tuple[str | None, Json]:
    """Return the task in the name of a log, and the results file beside it."""
    match = _LM_EVAL_NAME.fullmatch(Path(name).name)
    if not match:
        return None, {}
    results: Json = {}
    for path in sorted(Path(name).parent.glob(f"*_{match['date']}.json")):
        results = _parsed(path.read_bytes()) or {}
    return match["task"], results


# Inspect.

_INSPECT = "Inspect 0.3"
_INSPECT_VERSION = 2
_ZSTD = 93
"""The number of this compression in zip archives."""

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""The numbers that Inspect's `value_to_float` makes of grades.

The grades are correct, partially, incorrect and no answer.
"""

_HEADERS = ("header.json", "_journal/start.json")
"""The members of an archive that may have its header, the first of which counts."""


def _zipped_log(name: str, file: BufferedIOBase) -> HarnessLog | None:
    """Return the log in a zip archive, or None if it is another archive."""
    try:
        with ZipFile(file) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            header = next((member for member in _HEADERS if member in sizes), None)
            if header is None:
                return None
            names = sorted(member for member in sizes if _is_sample(member))
            size = sum(sizes[member] for member in (header, *names))
            _check_size(name, size, MAX_HELD_BYTES)
            samples = (_member(name, archive, file, member) for member in names)
            started = {"status": "started"}
            return _inspect_log(name, started | _member(name, archive, file, header), samples)
    except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error) as error:
        if not name.endswith(".eval"):
            return None
        damage = f"{name} is damaged: {error}."
        raise InputError(f"{damage} Copy it again, or run the evaluation again.") from error


def _is_sample(member: str) -> bool:
    return member.startswith("samples/") and member.endswith(".json")


def _member(name: str, archive: ZipFile, file: BufferedIOBase, member: str) -> Json:
    """Return a JSON object in an archive, which may be compressed with zstd."""
    info = archive.getinfo(member)
    _check_size(f"{name}, {member},", info.file_size, MAX_OBJECT_BYTES)
    try:
        data = archive.read(info)
    except NotImplementedError:  # before Python 3.14
        if info.compress_type != _ZSTD:
            raise
        compressed_log = f"{name}, a log of Inspect that is compressed with zstd,"
        with needs_extra("parquet", f"Reading {compressed_log}"):
            import pyarrow as pa
        file.seek(info.header_offset + 26)
        name_size, extra_size = struct.unpack("<HH", file.read(4))
        file.seek(name_size + extra_size, os.SEEK_CUR)
        compressed = file.read(info.compress_size)
        try:
            data = pa.decompress(compressed, info.file_size, codec="zstd", asbytes=True)
        except pa.ArrowException as error:
            raise BadZipFile(f"{member} cannot be decompressed ({error})") from error
    record = _parsed(data)
    if record is None:
        raise BadZipFile(f"{member} is not a JSON object")
    return record


def _inspect_log(name: str, header: Json, samples: Iterable[Any]) -> HarnessLog:
    """Return a log from its header and its samples."""
    version = header.get("version")
    if version != _INSPECT_VERSION:
        expected = f"expected version {_INSPECT_VERSION}."
        raise InputError(f"{name} has version {version!r} of Inspect's logs; {expected}")
    spec = _field(header, "eval", dict, name, _INSPECT)
    model = _field(spec, "model", str, name, _INSPECT)
    task = _field(spec, "task", str, name, _INSPECT)
    clusters = _clusters(spec)
    notes = []
    if len(clusters) > 1:
        notes.append(f"{name} names several clusters, {', '.join(clusters)}; none was taken.")
    cluster = None
    if len(clusters) == 1:
        cluster = clusters[0]
    aggregates = _inspect_aggregates(name, header)
    higher_is_better: dict[str, bool] = {}
    rows = []
    for number, record in enumerate(samples, 1):
        sample, grades = _inspect_sample(name, number, record, cluster)
        higher_is_better |= dict.fromkeys(grades, True)
        rows.append(sample)
    if header.get("status") != "success":
        notes.append(f"{name} has the status {header.get('status')!r}, with {len(rows)} samples.")
    return HarnessLog(name, model, task, rows, higher_is_better, aggregates, notes)


def _clusters(spec: Json) -> list[str]:
    """Return the fields of metadata that metrics take as clusters."""
    metrics = json.dumps([spec.get("scorers"), spec.get("metrics")])
    quoted = re.findall(r'"cluster": ("(?:[^"\\]|\\.)*")', metrics)
    return sorted({json.loads(cluster) for cluster in quoted})


def _inspect_aggregates(name: str, header: Json) -> dict[str, list[float]]:
    """Return by metric the numbers that the log has of all samples."""
    results = header.get("results") or {"scores": []}
    by_scorer = _field(results, "scores", list, name, _INSPECT)
    aggregates: dict[str, list[float]] = {}
    for of_scorer in by_scorer:
        scorer = _field(of_scorer, "scorer", str, name, _INSPECT)
        key = _field(of_scorer, "name", str, name, _INSPECT)
        if key == scorer:
            key = None
        scorers = [result["scorer"] for result in by_scorer]
        column = _column(scorer, key, scorers)
        for metric in _field(of_scorer, "metrics", dict, name, _INSPECT).values():
            value = _field(metric, "value", (int, float), name, _INSPECT)
            aggregates.setdefault(column, []).append(value)
    return aggregates


def _inspect_sample(
    name: str,
    number: int,
    record: Json,
    cluster: str | None,
) -> tuple[Sample, list[str]]:
    """Return a sample, and the metrics whose scores in it are grades.

    The document is the value of the cluster's field.
    """
    item = _field(record, "id", (int, str), f"{name}, sample {number},", _INSPECT)
    epoch = _field(record, "epoch", int, f"{name}, sample {item!r},", _INSPECT)
    place = f"{name}, sample {item!r}, epoch {epoch}"
    content = _field(record, "input", (str, list), place, _INSPECT)
    if isinstance(content, list):  # without the random ids of its messages
        messages = []
        for message in content:
            if isinstance(message, dict):
                messages.append([message.get("role"), message.get("content")])
        content = json.dumps(messages)
    metadata = _optional_object(record, "metadata", place)
    by_scorer = _optional_object(record, "scores", place)
    values = {}
    for scorer in by_scorer:
        value = _field(by_scorer, scorer, dict, place, _INSPECT).get("value")
        by_key = {None: value}
        if isinstance(value, dict):
            by_key = value
        for key, value_of_key in by_key.items():
            if value_of_key is not None:
                values[_column(scorer, key, by_scorer)] = value_of_key
    grades = []
    scores = {}
    for column, value in values.items():
        if isinstance(value, str) and value in _GRADES:
            grades.append(column)
            value = _GRADES[value]
        scores[column] = _score(value)
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    document = None
    if cluster is not None and metadata.get(cluster) is not None:
        document = str(metadata[cluster])
    return Sample(place, str(item), digest, epoch, scores, document), grades


def _optional_object(record: Json, name: str, place: str) -> Json:
    if not record.get(name):
        return {}
    return _field(record, name, dict, place, _INSPECT)


def _column(scorer: str, key: str | None, scorers: Container[str]) -> str:
    """Return a name for a scorer's metric, or for a key of its values, that no other scorer has."""
    if key is None:
        return scorer
    metric = f"{scorer}/{key}"
    return f"{scorer}: {key}" if metric in scorers else metric


# Joining logs.


def join_logs(logs: Sequence[HarnessLog]) -> tuple[WholeTable, dict[str, bool], list[str]]:
    """Return the scores of several logs in one table.

    The table has the columns system, segment, metric and score, and perhaps run, document and task.
    With it come whether higher scores are better, where that is known, and notes: sentences about
    what was left out or named here. InputError is raised for systems with other tasks, other items
    under the same ids, or a score that is no number.
    """
    titles = " and ".join(log.title for log in logs[:2])
    if len(logs) > 2:
        titles = f"{titles} and {len(logs) - 2} more"
    has_tasks = len({log.task for log in logs if log.task is not None}) > 1
    rows = _joined_samples(logs, has_tasks=has_tasks)
    names, higher_is_better, reasons = _joined_metrics(logs, rows)
    notes = [note for log in logs for note in log.notes]
    notes += reasons
    if not names:
        listed = "".join(f" {note}" for note in notes)
        lack = f"{titles} has no scores that are numbers"
        raise InputError(f"{lack}; expected one or more for each item.{listed}")

    in_clusters = [sample.document is not None for sample, _ in rows]
    if any(in_clusters) and not all(in_clusters):
        without_cluster, _ = rows[in_clusters.index(False)]
        notes.append(f"Clusters were left out: {without_cluster.place} has none.")
    # Further columns are there only if they tell something.
    columns = ["system", "segment", "metric", "score"]
    if len({sample.run for sample, _ in rows}) > 1:
        columns.append("run")
    if all(in_clusters):
        columns.append("document")
    if has_tasks:
        columns.append("task")
    records = []
    for sample, values in rows:
        for metric, name in names.items():
            of_metric = {"metric": name, "score": sample.scores.get(metric)}
            records.append((sample.place, values | of_metric))
    return WholeTable(titles, columns, records), higher_is_better, notes


def _joined_samples(logs: Sequence[HarnessLog], *, has_tasks: bool) -> list[tuple[Sample, Json]]:
    """Return the samples of all logs, each with its values beside scores."""
    rows = []
    first: dict[str, Sample] = {}
    for log, system in zip(logs, _system_names(logs), strict=True):
        if not log.samples:
            lack = f"{log.title} has no samples; expected one or more."
            raise InputError(f"{lack} Run the evaluation with them logged.")
        for sample in log.samples:
            segment = sample.segment
            if has_tasks:
                segment = f"{log.task}:{segment}"
            # Ids may be mere counters, so the content decides whether items are the same.
            earlier = first.setdefault(segment, sample)
            if earlier.content != sample.content:
                raise InputError(
                    f"{sample.place}: the item {segment!r} is another one than in "
                    f"{earlier.place}. The logs are of different items; expected the same ones "
                    "under the same ids."
                )
            values = {
                "system": system,
                "segment": segment,
                "run": sample.run,
                "document": sample.document,
                "task": log.task,
            }
            rows.append((sample, values))
    return rows


def _joined_metrics(
    logs: Sequence[HarnessLog],
    rows: Sequence[tuple[Sample, Json]],
) -> tuple[dict[str, str], dict[str, bool], list[str]]:
    """Return the metrics with numbers that can be compared.

    Returns:
        The name in the table of each metric; by this name whether higher scores are better, where
        that is known; and notes about the metrics that are left out.
    """
    names = {}
    higher_is_better = {}
    notes = []
    metrics = dict.fromkeys(metric for sample, _ in rows for metric in sample.scores)
    for metric in metrics:
        scores = [sample.scores.get(metric, math.nan) for sample, _ in rows]
        texts = [row for row, score in enumerate(scores) if isinstance(score, str)]
        # A harness that makes nothing of the items says nothing about their scores.
        kinds = {_kind(metric, log) for log in logs} - {None}
        if all(isinstance(score, str) or math.isnan(score) for score in scores):
            examples = ""
            if texts:
                examples = f", only values such as {scores[texts[0]]}"
            notes.append(f"{metric} was left out: it has no numbers{examples}.")
            continue
        if texts:
            sample, values = rows[texts[0]]
            of_item = f"the metric {metric!r} of the item {values['segment']!r}"
            given = f"{sample.place}: {of_item} is {scores[texts[0]]}"
            raise InputError(f"{given}; expected a number.")

        if len(kinds) > 1 or "other" in kinds:
            reason = "its value for all items is not the mean of their scores"
            notes.append(f"{metric} was left out: {reason}.")
            continue
        kind = next(iter(kinds), None) or "mean"
        if kind == "mean":
            name = metric
            if metric.lower() in METRICS:  # which `compare` would compute
                name = f"{metric} (log)"
            known = {log.higher_is_better[metric] for log in logs if metric in log.higher_is_better}
        else:
            name = metric.replace("perplexity", kind)
            known = {kind == "loglikelihood"}
        names[metric] = name
        if len(known) == 1:
            higher_is_better[name] = known.pop()
    return names, higher_is_better, notes


def _kind(metric: str, log: HarnessLog) -> str | None:
    """Return the kind of a metric's scores, by their aggregate in the log; None if unknown."""
    by_item: dict[str, list[float]] = {}
    for sample in log.samples:
        score = sample.scores.get(metric)
        if isinstance(score, float) and not math.isnan(score):
            by_item.setdefault(sample.segment, []).append(score)
    if not by_item:
        return None
    mean = fmean(map(fmean, by_item.values()))
    aggregates = log.aggregates.get(metric)
    if not aggregates:
        # A perplexity is 1 or more.
        if metric.startswith("perplexity") and mean <= 0:
            return "loglikelihood"
        return None
    # The aggregate of log-likelihoods is a perplexity: the exponential of their negated mean.
    logarithms = [math.log(aggregate) for aggregate in aggregates if aggregate > 0]
    means = {
        "mean": aggregates,
        "loglikelihood": [-logarithm for logarithm in logarithms],
        "negative_loglikelihood": logarithms,
    }
    for kind, values in means.items():
        if any(math.isclose(mean, value, rel_tol=1e-6, abs_tol=1e-9) for value in values):
            return kind
    return "other"


def _system_names(logs: Sequence[HarnessLog]) -> list[str]:
    """Return each log's system, with the file's name where a system occurs again in a task; raise
    InputError if a system lacks a task.
    """
    tasks = sorted({log.task for log in logs if log.task is not None})
    has_tasks = len(tasks) > 1
    places = Counter((log.system, log.task) for log in logs)
    if not has_tasks:
        places = Counter((log.system, None) for log in logs)
    repeated = {system for (system, _), number in places.items() if number > 1}
    labels = names_of_files([log.title for log in logs])
    names = []
    by_system: dict[str, dict[str | None, str]] = {}
    for log, label in zip(logs, labels, strict=True):
        name = log.system
        if name in repeated:
            name = f"{name} ({label})"
        names.append(name)
        by_system.setdefault(name, {})[log.task] = log.title
    for system, titles in by_system.items():
        lacking = [task for task in tasks if task not in titles]
        if has_tasks and lacking:
            raise InputError(
                f"The system {system!r} has no log of the task {lacking[0]!r}, only "
                f"{', '.join(titles.values())}; expected logs of the same tasks for each system."
            )
    return names
