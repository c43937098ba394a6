"""Segment scores in the logs of evaluation harnesses: lm-evaluation-harness, Inspect and promptfoo.

A log is recognised by its content. Several logs become one table with a row for each system, item, run and metric.
Ids of items are mere counters in some harnesses, so items that share an id have to have the same content.
"""

import json
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    system: str
    segment: str | None
    """The id of the item; None if its content identifies it."""
    content: str
    """The item itself, or a hash of it."""
    run: int
    """The epoch, or the repetition, counted from 1."""
    scores: Mapping[str, object]
    """By metric, as the log has them; a metric that is missing here has no score."""
    document: str | None = None
    task: str | None = None
    """None unless there are several."""


@dataclass(frozen=True, slots=True)
class HarnessLog:
    """The samples of one file."""

    title: str
    label: str
    """A short name of the file, for systems that occur in several."""
    task: str | None
    """None if the log does not name it."""
    samples: tuple[Sample, ...]
    lower_is_better: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class HarnessScores:
    """The scores of several logs."""

    table: WholeTable
    """With the columns system, segment, metric and score, and perhaps run and document."""
    systems: tuple[str, ...]
    """In the order of the logs."""
    lower_is_better: tuple[str, ...]
    notes: tuple[str, ...]
    """Sentences about what was left out or named here."""


def harness_scores(paths: Iterable[str | os.PathLike[str]]) -> dict[str, list[Any]]:
    """Read logs of lm-evaluation-harness, Inspect or promptfoo, as columns for `compare(scores=...)` or a data frame.

    Args:
        paths: `samples_*.jsonl` of lm-evaluation-harness, with the results file beside it, which names the model;
            `.eval` and `.json` logs of Inspect (version 2); JSON results of promptfoo (version 3).

    Returns:
        The columns `system`, `segment`, `metric` and `score`, (rows,); also `run` if an item was evaluated several
        times (epochs, repetitions), and `document` if the logs name a cluster. A missing score is NaN.

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
                f"{os.fspath(path)} is no log that is known; expected samples_*.jsonl of lm-evaluation-harness, .eval "
                "or .json of Inspect, or JSON results of promptfoo."
            )
        logs.append(log)
    if not logs:
        raise InputError("There are no logs; expected the path of one or more.")
    table = join_logs(logs).table
    return {name: table.numbers(name).tolist() if name == "score" else table.keys(name) for name in table.names}


# Recognising a log.


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
            return _lm_eval_log(name, [first, *_lines(name, file)])
        if record is None and first.startswith(b"{"):
            record = _parsed(b"".join([first, *_lines(name, file)]))
    if record is None:
        return None
    if {"eval", "status", "version"} <= record.keys():
        return _inspect_log(name, record, record.get("samples") or ())
    if isinstance(record.get("results"), dict) and {"results", "version"} <= record["results"].keys():
        return _promptfoo_log(name, record["results"])
    if {"results", "configs", "n-samples"} <= record.keys():
        raise InputError(
            f"{name} has the means of lm-evaluation-harness; expected samples_*.jsonl, which --log_samples writes."
        )
    return None


def _lines(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    size = 0
    for line in file:
        size += len(line)
        if size > MAX_HELD_BYTES:
            raise too_long(name)
        yield line


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
    found = _LM_EVAL_NAME.fullmatch(Path(name).name)
    task, date = (found["task"], found["date"]) if found else (None, None)
    stem = Path(name.removesuffix(".gz")).stem
    results: Json = {}
    for path in sorted(Path(name).parent.glob(f"*_{date}.json")) if found else ():
        results = _parsed(path.read_bytes()) or {}
    model = results.get("model_name")
    system = model if isinstance(model, str) and model else stem
    samples: dict[str, Sample] = {}
    scores: dict[str, dict[str, object]] = {}
    filters = set()
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number}"
        record = _parsed(line) or {}
        filtered = _field(record, "filter", str, place, _LM_EVAL)
        metrics = _field(record, "metrics", list, place, _LM_EVAL)
        doc = str(_field(record, "doc_id", (int, str), place, _LM_EVAL))
        content = _field(record, "doc_hash", str, place, _LM_EVAL)
        earlier = samples.setdefault(doc, Sample(place, system, doc, content, 1, scores.setdefault(doc, {})))
        of_row = {f"{metric},{filtered}": record.get(str(metric)) for metric in metrics}
        if earlier.content != content or earlier.scores.keys() & of_row.keys():
            raise InputError(f"{place}: the item {doc!r} occurs again; it is in {earlier.place} too. Expected it once.")
        scores[doc] |= of_row
        filters.add(filtered)
    if filters == {"none"}:  # otherwise metrics are named with their filter, as in the file of results
        for of_doc in scores.values():
            for metric in [*of_doc]:
                of_doc[metric.removesuffix(",none")] = of_doc.pop(metric)
    directions = results.get("higher_is_better")
    of_task = directions.get(task) if isinstance(directions, dict) else None
    lower = {key for key, is_higher in of_task.items() if is_higher is False} if isinstance(of_task, dict) else set()
    names = {metric for of_doc in scores.values() for metric in of_doc}
    return HarnessLog(
        name,
        date or stem,
        task,
        tuple(samples.values()),
        frozenset(metric for metric in names if metric.partition(",")[0] in lower),
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
            members = {*archive.namelist()}
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
        file.seek(info.header_offset)
        lengths = struct.unpack("<HH", file.read(30)[26:])  # of the name and the extra field
        file.seek(sum(lengths), os.SEEK_CUR)
        compressed = file.read(info.compress_size)
        try:
            data = pa.decompress(compressed, decompressed_size=info.file_size, codec="zstd", asbytes=True)
        except pa.ArrowException as error:
            raise BadZipFile(f"{member} cannot be decompressed ({error})") from error
    record = _parsed(data)
    if record is None:
        raise BadZipFile(f"{member} is not a JSON object")
    return record


def _inspect_log(name: str, header: Json, samples: Iterable[object]) -> HarnessLog:
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
        identity = _field(sample, "id", (int, str), f"{name}, sample {number},", _INSPECT)
        epoch = _field(sample, "epoch", int, f"{name}, sample {identity!r},", _INSPECT)
        place = f"{name}, sample {identity!r}, epoch {epoch}"
        content = _content(_field(sample, "input", (str, list), place, _INSPECT))
        fields = sample if isinstance(sample, dict) else {}
        cluster = (fields.get("metadata") or {}).get(clusters[0]) if len(clusters) == 1 else None
        document = None if cluster is None else str(cluster)
        scores = _inspect_scores(fields.get("scores") or {}, place)
        rows.append(Sample(place, model, str(identity), content, epoch, scores, document))
    if header.get("status") != "success":
        notes.append(f"{name} has the status {header.get('status')!r}, with {len(rows)} samples.")
    return HarnessLog(name, Path(name).stem, task, tuple(rows), notes=tuple(notes))


def _inspect_scores(scores: Json, place: str) -> dict[str, object]:
    """Return the values of scorers by name; those of a dict by `scorer/key`."""
    values: dict[str, object] = {}
    for scorer in scores:
        score = _field(scores, scorer, dict, place, _INSPECT).get("value")
        parts = {f"{scorer}/{key}": part for key, part in score.items()} if isinstance(score, dict) else {scorer: score}
        values |= {name: _GRADES.get(part, part) if isinstance(part, str) else part for name, part in parts.items()}
    return values


def _clusters(specification: object) -> Iterator[str]:
    """Yield the fields of metadata by which metrics cluster their standard errors."""
    if isinstance(specification, dict):
        if isinstance(specification.get("cluster"), str):
            yield specification["cluster"]
        specification = [*specification.values()]
    for part in specification if isinstance(specification, list) else ():
        yield from _clusters(part)


def _content(given: str | list[Any]) -> str:
    """Return an input without the random ids of its messages."""
    if isinstance(given, str):
        return given
    return json.dumps([[one.get("role"), one.get("content")] for one in given if isinstance(one, dict)])


# promptfoo.

_PROMPTFOO = "promptfoo 0.118 or 0.123"
_PROMPTFOO_VERSION = 3
_ERROR = 2
"""The reason of a failure if the provider raised an error, which has the score 0."""


def _promptfoo_log(name: str, results: Json) -> HarnessLog:
    """Return a log, whose systems are the providers with their prompts.

    A repetition is a test of its own in the log, so tests with the same content are runs of one item.
    """
    if results["version"] != _PROMPTFOO_VERSION:
        raise InputError(
            f"{name} has version {results['version']!r} of promptfoo's results; expected version {_PROMPTFOO_VERSION}."
        )
    rows = []
    for number, row in enumerate(_field(results, "results", list, name, _PROMPTFOO), 1):
        test = _field(row, "testIdx", int, f"{name}, result {number},", _PROMPTFOO)
        place = f"{name}, test {test}"
        provider = _field(row, "provider", dict, place, _PROMPTFOO)
        case = _field(row, "testCase", dict, place, _PROMPTFOO)
        system = provider.get("label") or _field(provider, "id", str, place, _PROMPTFOO)
        prompt = _field(_field(row, "prompt", dict, place, _PROMPTFOO), "label", str, place, _PROMPTFOO)
        content = json.dumps([case.get(key) for key in ("description", "vars", "assert")], sort_keys=True)
        rows.append((test, str(system), prompt, place, content, _promptfoo_scores(row, place)))
    rows.sort(key=lambda row: row[0])
    prompts = [*dict.fromkeys(prompt for _, _, prompt, *_ in rows)]
    runs: Counter[tuple[str, str, str]] = Counter()
    samples = []
    for _, system, prompt, place, content, scores in rows:
        runs[system, prompt, content] += 1
        full_name = f"{system}, prompt {prompts.index(prompt) + 1}" if len(prompts) > 1 else system
        samples.append(Sample(place, full_name, None, content, runs[system, prompt, content], scores))
    notes = [f"{name}: prompt {number} is {shortened(prompt)!r}." for number, prompt in enumerate(prompts, 1)]
    return HarnessLog(name, Path(name).stem, None, tuple(samples), notes=tuple(notes if len(notes) > 1 else ()))


def _promptfoo_scores(row: Json, place: str) -> dict[str, object]:
    if row.get("failureReason") == _ERROR:
        return {}
    named: Json = _field(row, "namedScores", dict, place, _PROMPTFOO)
    return {"score": row.get("score"), "pass": row.get("success"), **named}


# Joining logs.


def join_logs(logs: Sequence[HarnessLog]) -> HarnessScores:
    """Return the scores of several logs in one table.

    Raises:
        InputError: systems with other tasks, other items under the same ids, or a score that is no number.
    """
    samples = _named_samples(logs)
    _check_items(samples)
    metrics = [*dict.fromkeys(metric for sample in samples for metric in sample.scores)]
    scores, left_out = _numbers(samples, metrics)
    metrics = [metric for metric in metrics if metric not in left_out]
    if not metrics:
        raise InputError(f"{_titles(logs)} has no scores that are numbers; expected one or more for each item.")
    names = {metric: f"{metric} (log)" if metric.lower() in METRICS else metric for metric in metrics}
    has_runs = len({sample.run for sample in samples}) > 1
    has_documents = all(sample.document is not None for sample in samples)
    rows = []
    for sample, numbers in zip(samples, scores, strict=True):
        common = {"system": sample.system, "segment": sample.segment}
        of_run = {"run": sample.run} if has_runs else {}
        of_document = {"document": sample.document} if has_documents else {}
        of_task = {"task": sample.task} if sample.task is not None else {}
        for metric in metrics:
            row: Json = {
                **common,
                "metric": names[metric],
                "score": numbers[metric],
                **of_run,
                **of_document,
                **of_task,
            }
            rows.append((sample.place, row))
    lower = {metric for log in logs for metric in log.lower_is_better}
    notes = [note for log in logs for note in log.notes]
    notes += [f"{name} was left out: its values are no numbers, such as {value}." for name, value in left_out.items()]
    return HarnessScores(
        WholeTable(_titles(logs), [*rows[0][1]], rows),
        tuple(dict.fromkeys(sample.system for sample in samples)),
        tuple(names[metric] for metric in metrics if metric in lower),
        tuple(notes),
    )


def _titles(logs: Sequence[HarnessLog]) -> str:
    return " and ".join([log.title for log in logs[:2]] + ([f"{len(logs) - 2} more"] if len(logs) > 2 else []))


def _named_samples(logs: Sequence[HarnessLog]) -> list[Sample]:
    """Return all samples; systems in several logs of a task are named by file, and items by task if there are several.

    InputError is raised if a log has no samples, or a system lacks a task that another one has.
    """
    for log in logs:
        if not log.samples:
            raise InputError(f"{log.title} has no samples; expected one or more. Run the evaluation with them logged.")
    known = {log.task for log in logs if log.task is not None}
    has_tasks = len(known) > 1
    if has_tasks and (unnamed := next((log for log in logs if log.task is None), None)):
        tasks = ", ".join(sorted(known))
        raise InputError(f"{unnamed.title} does not name its task, and others have {tasks}. Give one task alone.")
    logs_of: dict[tuple[str, str | None], list[HarnessLog]] = {}
    for log in logs:
        for system in {sample.system for sample in log.samples}:
            logs_of.setdefault((system, log.task if has_tasks else None), []).append(log)
    repeated = {system for (system, _), of_system in logs_of.items() if len(of_system) > 1}
    has_labels = all(len({log.label for log in of_system}) == len(of_system) for of_system in logs_of.values())
    numbers: dict[str, str] = {}
    samples = []
    tasks_of: dict[str, dict[str | None, str]] = {}
    for log in logs:
        for sample in log.samples:
            segment = sample.segment or numbers.setdefault(sample.content, str(len(numbers) + 1))
            system = sample.system
            if system in repeated:
                system = f"{system} ({log.label if has_labels else log.title})"
            tasks_of.setdefault(system, {})[log.task] = log.title
            task = log.task if has_tasks else None
            segment = segment if task is None else f"{task}:{segment}"
            samples.append(replace(sample, system=system, segment=segment, task=task))
    for system, of_system in tasks_of.items() if has_tasks else ():
        if lacking := sorted(known - of_system.keys()):
            raise InputError(
                f"The system {system!r} has no log of the task {lacking[0]!r}, only {', '.join(of_system.values())}; "
                "expected logs of the same tasks for each system."
            )
    return samples


def _check_items(samples: Sequence[Sample]) -> None:
    """Raise InputError if two samples with the same id are of different items."""
    first: dict[str | None, Sample] = {}
    for sample in samples:
        other = first.setdefault(sample.segment, sample)
        if other.content != sample.content:
            raise InputError(
                f"{sample.place}: the item {sample.segment!r} is another one than in {other.place}. The logs are of "
                "different items; expected the same ones under the same ids."
            )


def _numbers(samples: Sequence[Sample], metrics: Sequence[str]) -> tuple[list[dict[str, float | None]], dict[str, str]]:
    """Return the scores of each sample, and of each metric without numbers a value.

    InputError is raised if a metric has a number for one sample, and something else for another.
    """
    scores: list[dict[str, float | None]] = [{} for _ in samples]
    left_out: dict[str, str] = {}
    for metric in metrics:
        wrong = None
        for sample, numbers in zip(samples, scores, strict=True):
            value = sample.scores.get(metric)
            numbers[metric] = _as_number(value)
            if numbers[metric] is None and value is not None:
                wrong = wrong or (sample, shortened(repr(value)))
        if wrong and any(numbers[metric] is not None for numbers in scores):
            raise InputError(
                f"{wrong[0].place}: the metric {metric!r} of the item {wrong[0].segment!r} is {wrong[1]}; expected a "
                "number."
            )
        if wrong:
            left_out[metric] = wrong[1]
    return scores, left_out


_YES_OR_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def _as_number(value: object) -> float | None:
    """Return the number that a score is, or stands for; None if it is none. NaN stands for no score."""
    if isinstance(value, str):
        value = _YES_OR_NO.get(value.lower(), value)
    try:
        return float(number_text(value)) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
