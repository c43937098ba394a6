"""A language pair of an EvalSet: systems by segment with scores, as shared tasks have them.

An EvalSet is a folder in the layout of mt-metrics-eval:

- `sources/LP.txt`, a segment in each line, as in all texts
- `references/LP.REFERENCE.txt`
- `system-outputs/LP/SYSTEM.txt`
- `human-scores/LP.GOLD.{seg,sys}.score`, `SYSTEM SCORE` in each line
- `metric-scores/LP/METRIC-REFERENCE.{seg,sys}.score`

Files that a task does not need may be missing.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from os import PathLike
from pathlib import Path

import numpy as np

from bertscore_onnx.errors import InputError, meant, shortened, shown_names
from bertscore_onnx.files import read_regular
from bertscore_onnx.tables.columns import number_text
from bertscore_onnx.tables.sources import BYTE_ORDER_MARK
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Floats, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

LEVELS = ("seg", "sys")
ALL_REFERENCES = "all"
"""The name of all references together."""
NO_REFERENCE = "src"
"""The name of the source alone."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SystemScores:
    """The scores of systems and of their segments, as the task has them."""

    system: Floats
    """(systems,), NaN where there is none. They need not be means of segments, as of BLEU."""
    segment: Floats | None
    """(systems, segments), likewise; None without any."""


@dataclass(frozen=True, eq=False)
class EvalSet:
    """The systems of a language pair, with the human scores and metrics of the task."""

    language_pair: str
    gold: str
    """Which human scores these are, such as mqm."""
    reference: str
    """The reference in use, such as refB, with which names of metrics end."""
    systems: tuple[str, ...]
    """Some may be judged by nobody."""
    human_system: Floats
    """(systems,), NaN where nobody judged."""
    human_segment: Floats
    """(systems, segments), NaN where nobody judged."""
    metrics: Mapping[str, SystemScores]
    """By the metric's name, without the reference where no two metrics differ by that alone."""
    segments: tuple[str, ...]
    """The numbers of the segments, from 1."""
    documents: tuple[str, ...] = ()
    """The document of each segment; none if that is not known."""
    candidates: tuple[tuple[str | None, ...], ...] | None = None
    """The outputs by system and segment, if they were read; None where a system has no output."""
    references: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """The references of each output, by system and segment."""

    def judged(self) -> JudgedSystems:
        """Return the systems as `meta_evaluate` takes them, with the metrics that score segments.

        Scores of systems are those of the task.
        """
        metrics = {}
        for name, scores in self.metrics.items():
            if scores.segment is not None:
                metrics[name] = MetricScores(scores.system, scores.segment)
        return JudgedSystems(
            self.language_pair,
            self.systems,
            self.human_segment,
            metrics,
            segments=self.segments,
            documents=self.documents,
            candidates=self.candidates,
            references=self.references,
        )


def read_eval_set(
    folder: str | PathLike[str],
    language_pair: str,
    *,
    gold: str | None = None,
    reference: str | None = None,
    metrics: Sequence[str] = (),
    with_texts: bool | None = False,
) -> EvalSet:
    """Read a language pair of an EvalSet.

    The systems are all those with judgements or outputs, except the references in use. Another
    reference, a human translation, counts as a system.

    Args:
        folder: in the layout of mt-metrics-eval.
        language_pair: such as he-en.
        gold: the judgements, such as mqm; None where there is one kind.
        reference: the reference in use, several as `refA.refB` or `all`, or none as `src`. None for
            the only one that metrics, or else texts, have.
        metrics: the scores to read, each METRIC-REFERENCE; none for all that have this reference,
            of which those that lack a judged system are left out, with a warning in the log.
        with_texts: whether to read outputs and references, also of systems that nobody judged. None
            reads those that there are.

    Raises:
        InputError: one of these does not exist, and the error lists what there is; or a file is
            damaged, with its line.
    """
    files = EvalSetFiles(Path(folder), language_pair)
    gold = files.gold(gold)
    reference = files.reference(reference)
    in_use = files.references_in(reference)
    may_lack = with_texts is None
    if may_lack:
        with_texts = bool(in_use) and in_use <= set(files.references)
    human = _Scores(files.folder / "human-scores" / f"{language_pair}.{gold}")
    names = set(human.systems)
    if with_texts:
        names |= set(files.outputs)
    systems = sorted(names - in_use)
    if not systems:
        raise InputError(f"{folder} has no {gold} scores of any system for {language_pair}.")
    segments = _Segments()
    human_scores = human.of_systems(systems, segments)
    is_judged = np.isfinite(human_scores.system)
    if human_scores.segment is not None:
        is_judged |= np.isfinite(human_scores.segment).any(axis=1)
    candidates = None
    references: tuple[tuple[tuple[str, ...], ...], ...] = ()
    if with_texts:
        candidates, references = _texts(files, systems, sorted(in_use), segments, may_lack=may_lack)

    scores = {}
    judged = list(compress(systems, is_judged))
    chosen = files.chosen_metrics(metrics, reference)
    for name in chosen:
        metric = _Scores(files.folder / "metric-scores" / language_pair / name)
        lacking = metric.lacking(judged)
        if lacking and metrics:
            raise InputError(lacking)
        if lacking:
            _log.warning("%s is left out: %s", name, lacking)
            continue
        scores[name] = metric.of_systems(systems, segments)
    if chosen and not scores:
        systems_judged = f"all {len(judged)} systems that annotators judged"
        raise InputError(f"{language_pair}: no metric has scores of {systems_judged}.")

    # Documents decide nothing, not even how many segments there are.
    num_segments = segments.count
    documents: tuple[str, ...] = ()
    documents_file = files.folder / "documents" / f"{language_pair}.docs"
    if documents_file.is_file():
        documents = tuple(segments.lines(documents_file))
    human_segment = human_scores.segment
    if human_segment is None:
        human_segment = np.full((len(systems), num_segments), np.nan)
    return EvalSet(
        language_pair,
        gold,
        reference,
        tuple(systems),
        human_scores.system,
        human_segment,
        _by_short_name(scores),
        segments=tuple(map(str, range(1, num_segments + 1))),
        documents=documents,
        candidates=candidates,
        references=references,
    )


def _by_short_name(scores: Mapping[str, SystemScores]) -> dict[str, SystemScores]:
    """Drop the reference from the names of metrics, unless two would have the same name."""
    short_names = [name.rpartition("-")[0] for name in scores]
    named = {}
    for (name, of_metric), short_name in zip(scores.items(), short_names, strict=True):
        if short_names.count(short_name) > 1:
            named[name] = of_metric
        else:
            named[short_name] = of_metric
    return named


def golds(folder: str | PathLike[str]) -> dict[str, list[str]]:
    """Return the names of the judgements of each language pair.

    InputError is raised if there are none.
    """
    by_pair: dict[str, list[str]] = {}
    for name in _files(Path(folder) / "human-scores", "", ".score"):
        stem, _, level = name.rpartition(".")
        language_pair, _, gold = stem.partition(".")
        if not gold or level not in LEVELS:
            continue
        names = by_pair.setdefault(language_pair, [])
        if gold not in names:
            names.append(gold)
    if not by_pair:
        raise InputError(
            f"{folder} has no judgements; expected a folder in the layout of mt-metrics-eval, with "
            "files such as human-scores/he-en.mqm.seg.score."
        )
    return by_pair


class EvalSetFiles:
    """The names of a language pair's judgements, references, systems and metrics."""

    def __init__(self, folder: Path, language_pair: str) -> None:
        self.folder = folder
        self.language_pair = language_pair
        by_pair = golds(folder)
        self._checked(language_pair, list(by_pair), "language pair with judgements")
        self.golds = by_pair[language_pair]
        self.references = _files(folder / "references", f"{language_pair}.", ".txt")
        self.outputs = _files(folder / "system-outputs" / language_pair, "", ".txt")
        self.metrics: list[str] = []
        for file in _files(folder / "metric-scores" / language_pair, "", ".score"):
            name, _, level = file.rpartition(".")
            if level in LEVELS and "-" in name and name not in self.metrics:
                self.metrics.append(name)

    def gold(self, name: str | None) -> str:
        """Return the judgements to take: of this name, or the only ones."""
        if name is None:
            return self._only(self.golds, "kinds of judgements", "gold")
        return self._checked(name, self.golds, f"gold of {self.language_pair}")

    def reference(self, name: str | None) -> str:
        """Return the reference of this name, or the only one that texts or metrics have."""
        used = list(dict.fromkeys(metric.rpartition("-")[2] for metric in self.metrics))
        if name is None:
            if NO_REFERENCE in used:
                used.remove(NO_REFERENCE)
            available = used if len(used) == 1 else self.references or used
            if not available:
                return NO_REFERENCE
            return self._only(available, "references", "reference")
        if name not in (ALL_REFERENCES, NO_REFERENCE, *used):
            available = list(dict.fromkeys([*self.references, *used]))
            for component in name.split("."):
                self._checked(component, available, f"reference of {self.language_pair}")
        return name

    def references_in(self, reference: str) -> frozenset[str]:
        """Return the references that a name stands for.

        Such names are `refA.refB`, `all` and `src`.
        """
        if reference == NO_REFERENCE:
            return frozenset()
        if reference == ALL_REFERENCES:
            return frozenset(self.references)
        return frozenset(reference.split("."))

    def chosen_metrics(self, names: Sequence[str], reference: str) -> list[str]:
        """Return the metrics of these names, or else all that have the reference."""
        if not names:
            return [name for name in self.metrics if name.rpartition("-")[2] == reference]
        kind = f"metric with scores of {self.language_pair}"
        return list(dict.fromkeys(self._checked(name, self.metrics, kind) for name in names))

    def _checked(self, name: str, available: Sequence[str], kind: str) -> str:
        if name in available:
            return name
        nearest = meant(name, available)
        unknown = f"{self.folder} has no {kind} called {name!r}"
        raise InputError(f"{unknown}; it has {shown_names(available)}.{nearest}")

    def _only(self, available: Sequence[str], kind: str, argument: str) -> str:
        if len(available) == 1:
            return available[0]
        raise InputError(
            f"{self.folder} has {len(available)} {kind} of {self.language_pair}: "
            f"{shown_names(available)}. Name one as `{argument}`."
        )


def _files(folder: Path, prefix: str, suffix: str) -> list[str]:
    """Return the names of a folder's files, without prefix and suffix."""
    try:
        names = sorted(file.name for file in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(f"Cannot read {folder} ({error.strerror}).") from error
    return [
        name[len(prefix) : -len(suffix)]
        for name in names
        if name.startswith(prefix) and name.endswith(suffix) and not name.startswith(".")
    ]


class _Segments:
    """The number of segments, as in the first file."""

    def __init__(self) -> None:
        self.count = 0
        self._origin = ""

    def check(self, count: int, what: str) -> None:
        if not self._origin:
            self.count = count
            self._origin = what
        elif count != self.count:
            given = f"{what} has {count} lines, and {self._origin} has {self.count}"
            raise InputError(f"{given}; expected one for each segment.")

    def lines(self, path: Path) -> list[str]:
        """Return the lines of a file with one for each segment."""
        lines = read_lines(path)
        self.check(len(lines), str(path))
        return lines


class _Scores:
    """The files of one gold or metric, at either level."""

    def __init__(self, stem: Path) -> None:
        paths = {level: stem.with_name(f"{stem.name}.{level}.score") for level in LEVELS}
        self._paths = {level: path for level, path in paths.items() if path.exists()}
        self._scores = {level: read_scores(path) for level, path in self._paths.items()}

    @property
    def systems(self) -> set[str]:
        return {system for scores in self._scores.values() for system in scores}

    def lacking(self, judged: Sequence[str]) -> str:
        """Return the message about a judged system that has no scores; empty if all have scores."""
        for level, scores in self._scores.items():
            for system in judged:
                if system not in scores:
                    return (
                        f"{self._paths[level]} has no line of the system {shortened(system)}, "
                        "which annotators judged. Add its scores; or, where this is the reference "
                        "that the metric took, name it as `reference`."
                    )
        return ""

    def of_systems(self, systems: Sequence[str], segments: _Segments) -> SystemScores:
        """Return the scores of systems and of segments; NaN where there is none.

        Those of systems are by file, or means of segments.
        """
        whole = np.full(len(systems), np.nan)
        segment = None
        if "seg" in self._scores:
            by_system = self._scores["seg"]
            for system, values in by_system.items():
                name = f"the system {shortened(system)} in {self._paths['seg']}"
                segments.check(len(values), name)
            missing = np.full(segments.count, np.nan)
            segment = np.array([by_system.get(system, missing) for system in systems])
            whole = mean_by_system(segment)
        # Scores of whole systems count instead of means of segments.
        if "sys" in self._scores:
            by_system = self._scores["sys"]
            for system, values in by_system.items():
                if len(values) > 1:
                    lines = f"{len(values)} lines of the system {shortened(system)}"
                    raise InputError(f"{self._paths['sys']} has {lines}; expected one.")
            whole = np.array([by_system.get(system, [np.nan])[0] for system in systems])
        return SystemScores(whole, segment)


def _texts(
    files: EvalSetFiles,
    systems: Sequence[str],
    references: Sequence[str],
    segments: _Segments,
    *,
    may_lack: bool,
) -> tuple[tuple[tuple[str | None, ...], ...], tuple[tuple[tuple[str, ...], ...], ...]]:
    """Return the outputs and their references, by system and segment.

    A system that may lack outputs has None for each.
    """
    language_pair = files.language_pair
    if not references:
        lack = f"{language_pair}: there is no reference to score the outputs against"
        raise InputError(f"{lack}. Name a `reference`.")
    available = set(files.outputs)  # names in files of scores are not names of files
    lacking = [name for name in systems if name not in available]
    if lacking and not may_lack:
        system = shortened(lacking[0])
        without = f"{files.folder} has no outputs of the system {system!r}"
        raise InputError(f"{without}, which has human scores.")
    texts = []
    for name in references:
        texts.append(segments.lines(files.folder / "references" / f"{language_pair}.{name}.txt"))
    references_by_segment = tuple(zip(*texts, strict=True))
    outputs = files.folder / "system-outputs" / language_pair
    candidates: list[tuple[str | None, ...]] = []
    for name in systems:
        if name in available:
            candidates.append(tuple(segments.lines(outputs / f"{name}.txt")))
        else:
            candidates.append((None,) * segments.count)
    return tuple(candidates), (references_by_segment,) * len(systems)


# Files of scores as mt-metrics-eval has them: `SYSTEM SCORE` in each line, a system's lines in the
# order of segments.


NO_SCORE = "None"

MAX_BYTES = 100_000_000
"""The most that a file may have: several times what any shared task has."""


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, without line ends and byte order marks.

    Errors name the line.
    """
    try:
        content = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise InputError(f"Cannot read {path} ({error.strerror}).") from error
    try:
        text = content.decode().lstrip(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        place = f"{path}, line {line}"
        raise InputError(f"{place}: this is not UTF-8. Save the file in UTF-8.") from error
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_scores(path: Path) -> dict[str, Floats]:
    """Return the scores of each system in a file, (scores,); NaN for `None`.

    Tabs or spaces separate the fields. Errors name the line.
    """
    scores: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{path}, line {number}"
        fields = line.split()
        if len(fields) != 2:
            given = f"{place}: {len(fields)} fields"
            raise InputError(f"{given}; expected the name of a system and its score.")
        system, text = fields
        scores.setdefault(system, []).append(_score(text, place))
    if not scores:
        expected = "expected the name of a system and its score in each line."
        raise InputError(f"{path} is empty; {expected}")
    return {system: np.array(values, dtype=np.float64) for system, values in scores.items()}


def _score(text: str, place: str) -> float:
    if text == NO_SCORE:
        return math.nan
    try:
        score = float(number_text(text))
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        expected = f"a number, or {NO_SCORE} where there is no score"
        raise InputError(f"{place}: {shortened(text)!r} is not a score; expected {expected}.")
    return score
