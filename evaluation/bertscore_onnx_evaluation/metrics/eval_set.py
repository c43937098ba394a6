"""An EvalSet, a folder in the layout of mt-metrics-eval, and one language pair of it: systems by segment with scores.

    sources/LP.txt                                   a segment in each line, as in all texts
    references/LP.REFERENCE.txt
    system-outputs/LP/SYSTEM.txt
    human-scores/LP.GOLD.{seg,sys}.score             as `score_files` writes them
    metric-scores/LP/METRIC-REFERENCE.{seg,sys}.score

Files that a task does not need may be missing.
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from bertscore_onnx.errors import InputError, listed, meant, shortened
from bertscore_onnx.files import read_regular
from bertscore_onnx.tables.columns import number_text
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Floats, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import HUMAN, JudgedSystems

LEVELS = ("seg", "sys")
ALL_REFERENCES = "all"
"""The name of all references together."""
NO_REFERENCE = "src"
"""The name of the source alone."""

_log = logging.getLogger(__name__)


class EvalSet:
    """The folder; its files are listed when they are needed."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        """Take the folder.

        Raises:
            InputError: it holds no judgements.
        """
        self.folder = Path(folder)
        self._golds: dict[str, list[str]] = {}
        for name in self._files("human-scores", "", ".score"):
            stem, _, level = name.rpartition(".")
            language_pair, _, gold = stem.partition(".")
            if gold and level in LEVELS and gold not in self._golds.setdefault(language_pair, []):
                self._golds[language_pair].append(gold)
        if not self._golds:
            raise InputError(
                f"{self.folder} has no judgements; expected a folder in the layout of mt-metrics-eval, with files such "
                "as human-scores/he-en.mqm.seg.score."
            )

    @property
    def language_pairs(self) -> list[str]:
        """Those with judgements."""
        return [*self._golds]

    def golds(self, language_pair: str) -> list[str]:
        """Return the names of the judgements of a language pair.

        Raises:
            InputError: there is no such language pair, with those there are.
        """
        return self._golds[self._known(language_pair, self.language_pairs, "language pair with judgements")]

    def references(self, language_pair: str) -> list[str]:
        """Return the names of the references of a language pair."""
        return self._files("references", f"{language_pair}.", ".txt")

    def outputs(self, language_pair: str) -> list[str]:
        """Return the names of the systems with outputs."""
        return self._files(f"system-outputs/{language_pair}", "", ".txt")

    def metrics(self, language_pair: str) -> list[str]:
        """Return the names of the metrics with scores of a language pair, such as BLEU-refB."""
        names = (name.rpartition(".") for name in self._files(f"metric-scores/{language_pair}", "", ".score"))
        return [*dict.fromkeys(name for name, _, level in names if level in LEVELS and "-" in name)]

    def gold(self, language_pair: str, name: str | None) -> str:
        """Return the judgements to take: those of this name, or the only ones there are.

        Raises:
            InputError: there are no such judgements, or several and none is named; with those there are.
        """
        golds = self.golds(language_pair)
        if name is None:
            return self._only(golds, f"kinds of judgements of {language_pair}", "gold")
        return self._known(name, golds, f"gold of {language_pair}")

    def reference(self, language_pair: str, name: str | None) -> str:
        """Return the reference to use: the one of this name, or else the only one that texts or metrics have.

        Raises:
            InputError: there is no such reference, or several and none is named; with those there are.
        """
        of_metrics = dict.fromkeys(metric.rpartition("-")[2] for metric in self.metrics(language_pair))
        if name is None:
            of_metrics.pop(NO_REFERENCE, None)
            there = [*of_metrics] if len(of_metrics) == 1 else self.references(language_pair) or [*of_metrics]
            return self._only(there, f"references of {language_pair}", "reference") if there else NO_REFERENCE
        if name in (ALL_REFERENCES, NO_REFERENCE, *of_metrics):
            return name
        there = self.references(language_pair)
        for part in name.split("."):
            self._known(part, [*dict.fromkeys([*there, *of_metrics])], f"reference of {language_pair}")
        return name

    def references_in(self, language_pair: str, reference: str) -> frozenset[str]:
        """Return the references that a name stands for, such as `refA.refB`, `all` or `src`."""
        if reference == NO_REFERENCE:
            return frozenset()
        return frozenset(self.references(language_pair) if reference == ALL_REFERENCES else reference.split("."))

    def chosen_metrics(self, language_pair: str, names: Sequence[str], reference: str) -> list[str]:
        """Return the metrics to read: those of these names, or else all that have the reference.

        Raises:
            InputError: one of them has no scores, with the nearest names.
        """
        there = self.metrics(language_pair)
        if names:
            kind = f"metric with scores of {language_pair}"
            return [*dict.fromkeys(self._known(name, there, kind) for name in names)]
        return [name for name in there if name.rpartition("-")[2] == reference]

    def _read(
        self,
        language_pair: str,
        gold: str | None,
        reference: str | None,
        metrics: Sequence[str],
        hold_out: str | None,
        with_texts: bool | None,
    ) -> JudgedSystems:
        """Read a language pair, as `read_eval_set` has it."""
        gold = self.gold(language_pair, gold)
        reference = self.reference(language_pair, reference)
        in_use = self.references_in(language_pair, reference)
        chosen = self.chosen_metrics(language_pair, metrics, reference)

        human = _Scores(self.folder / "human-scores" / f"{language_pair}.{gold}")
        may_lack = with_texts is None
        if may_lack:
            with_texts = bool(in_use) and in_use <= {*self.references(language_pair)}
        systems = sorted((human.systems | {*(self.outputs(language_pair) if with_texts else ())}) - in_use)
        if not systems:
            raise InputError(f"{self.folder} has no {gold} scores of any system for {language_pair}.")
        segments = _Segments()
        human_segment = human.segment_scores(systems, segments)
        human_system = human.system_scores(systems, human_segment)
        is_judged = ~np.isnan(human_system)
        if human_segment is not None:
            is_judged |= ~np.isnan(human_segment).all(axis=1)
        texts = (
            _texts(self, language_pair, systems, sorted(in_use), segments, may_lack=may_lack)
            if with_texts
            else (None, ())
        )

        scores = {}
        judged = [system for system, has_any in zip(systems, is_judged, strict=True) if has_any]
        for name in chosen:
            files = _Scores(self.folder / "metric-scores" / language_pair / name)
            if (lacking := files.lacking(judged)) and not metrics:
                _log.warning("%s is left out: %s", name, lacking)
                continue
            if lacking:
                raise InputError(lacking)
            segment = files.segment_scores(systems, segments)
            scores[name] = MetricScores(
                files.system_scores(systems, segment), segment, base_name=name.rpartition("-")[0]
            )
        annotators = {}
        if hold_out is not None:
            name = self.held_out(language_pair, hold_out, [gold])
            files = _Scores(self.folder / "human-scores" / f"{language_pair}.{name}")
            segment = files.segment_scores(systems, segments)
            annotators[f"{HUMAN}{name}"] = MetricScores(files.system_scores(systems, segment), segment)
        if chosen and not scores:
            raise InputError(
                f"{language_pair}: no metric has scores of all {len(judged)} systems that annotators judged."
            )
        return JudgedSystems(
            language_pair,
            tuple(systems),
            human_system,
            human_segment,
            scores,
            gold=gold,
            reference=reference,
            segments=tuple(str(number) for number in range(1, segments.count + 1)),
            documents=_documents(self.folder / "documents" / f"{language_pair}.docs", segments),
            human_systems=frozenset(systems) & frozenset(self.references(language_pair)),
            candidates=texts[0],
            references=texts[1],
            annotators=annotators,
        )

    def held_out(self, language_pair: str, name: str, golds: Sequence[str]) -> str:
        """Return the judgements to hold out, which are none of the human scores.

        Raises:
            InputError: there are no such judgements, or they are the human scores; with those there are.
        """
        if [name] == [*golds]:
            raise InputError(f"{language_pair}: {name!r} are the human scores already. Hold out others.")
        return self.gold(language_pair, name)

    def _files(self, folder: str, prefix: str, suffix: str) -> list[str]:
        """Return the part between prefix and suffix of the names of a folder's files."""
        try:
            names = sorted(file.name for file in (self.folder / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise InputError(f"Cannot read {self.folder / folder} ({error.strerror}).") from error
        return [
            name[len(prefix) : -len(suffix)]
            for name in names
            if name.startswith(prefix) and name.endswith(suffix) and not name.startswith(".")
        ]

    def _known(self, name: str, there: Sequence[str], kind: str) -> str:
        if name in there:
            return name
        raise InputError(f"{self.folder} has no {kind} called {name!r}; it has {listed(there)}.{meant(name, there)}")

    def _only(self, there: Sequence[str], kind: str, argument: str) -> str:
        if len(there) == 1:
            return there[0]
        raise InputError(f"{self.folder} has {len(there)} {kind}: {listed(there)}. Name one as `{argument}`.")


# Files of scores as mt-metrics-eval has them: `SYSTEM SCORE` in each line, those of a system in order of segments.


NO_SCORE = "None"
NOT_IN_FILE_NAMES = "/\\\0"

MAX_BYTES = 100_000_000
MAX_LINES = 5_000_000
MAX_SYSTEMS = 1000
MAX_NAME = 255
"""The most that a file may have: several times what any shared task has."""


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file in UTF-8, without line ends and a byte order mark; errors name the line."""
    try:
        content = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise InputError(f"Cannot read {path} ({error.strerror}).") from error
    if content.count(b"\n") > MAX_LINES:
        raise InputError(f"{path} has more than {MAX_LINES:,} lines.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: this is not UTF-8. Save the file in UTF-8.") from error
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_scores(path: Path) -> dict[str, Floats]:
    """Return the scores of each system in a file, (scores,), NaN for `None`; errors name the line.

    Tabs or spaces separate the fields.
    """
    scores: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split()
        if len(fields) != 2:
            raise InputError(
                f"{path}, line {number}: {len(fields)} fields; expected the name of a system and its score."
            )
        system, text = fields
        if len(system) > MAX_NAME:
            raise InputError(f"{path}, line {number}: the name of the system has more than {MAX_NAME} characters.")
        scores.setdefault(system, []).append(_score(text, f"{path}, line {number}"))
        if len(scores) > MAX_SYSTEMS:
            raise InputError(f"{path} has more than {MAX_SYSTEMS:,} systems.")
    if not scores:
        raise InputError(f"{path} is empty; expected the name of a system and its score in each line.")
    return {system: np.array(values, dtype=np.float64) for system, values in scores.items()}


def _score(text: str, place: str) -> float:
    if text == NO_SCORE:
        return math.nan
    try:
        score = float(number_text(text))
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(
            f"{place}: {shortened(text)!r} is not a score; expected a number, or {NO_SCORE} where there is no score."
        )
    return score


def check_names(language_pair: str, systems: Iterable[str], metrics: Iterable[str]) -> None:
    """Raise InputError if files of scores cannot be written for these names."""
    for system in systems:
        if system.split() != [system]:
            raise InputError(
                f"{language_pair}: the system {system!r} cannot stand in a file of scores, for its name is empty "
                "or has spaces. Give it another name."
            )
    for kind, name in (("language pair", language_pair), *(("metric", metric) for metric in metrics)):
        if name in ("", ".", "..") or {*name} & {*NOT_IN_FILE_NAMES}:
            raise InputError(f"The {kind} {name!r} cannot name a file. Give it another name.")


def score_files(metric: str, systems: Sequence[str], levels: Mapping[str, Floats | None]) -> dict[str, str]:
    """Return the files of a metric by name, with their content, which mt-metrics-eval reads.

    Args:
        metric: its name, with the reference at its end, such as BLEU-refB.
        systems: their names, as `check_names` wants them.
        levels: the scores by level, `sys` as (systems,) and `seg` as (systems, segments), NaN where there is none;
            None where a level has no scores.
    """
    return {
        f"{metric}.{level}.score": _lines(systems, scores) for level, scores in levels.items() if scores is not None
    }


def _lines(systems: Sequence[str], scores: Floats) -> str:
    rows = zip(systems, scores.reshape(len(systems), -1).tolist(), strict=True)
    return "".join(
        f"{system}\t{NO_SCORE if math.isnan(score) else repr(score)}\n" for system, row in rows for score in row
    )


def read_eval_set(
    eval_set: EvalSet,
    language_pair: str,
    *,
    gold: str | None = None,
    reference: str | None = None,
    metrics: Sequence[str] = (),
    hold_out: str | None = None,
    with_texts: bool | None = False,
) -> JudgedSystems:
    """Read a language pair.

    Its systems are all with judgements or outputs, except the references in use. Another reference, a human
    translation, counts as a system.

    Args:
        eval_set: a folder, or a file that `open_eval_set` recognised.
        language_pair: such as he-en.
        gold: the judgements, such as mqm; None where there is one kind. In a file the name of an annotator or of a
            round of annotation, and None the mean over all.
        reference: the reference in use, several as `refA.refB` or `all`, or none as `src`. None for the only one that
            metrics, or else texts, have.
        metrics: the scores to read, each METRIC-REFERENCE; none for all that have this reference, of which those that
            lack a judged system are left out, with a warning in the log.
        hold_out: other judgements, such as esa, or in a file an annotator, which are judged as metrics are.
        with_texts: whether to read outputs and references; of a folder those of systems that nobody judged too, of a
            file judged outputs alone, since annotators judged only a part of the segments. None reads those that there
            are, for sentinels.

    Raises:
        InputError: one of these does not exist, and the error lists those that do; or a file is damaged, with its line.
    """
    return eval_set._read(language_pair, gold, reference, metrics, hold_out, with_texts)


def _documents(path: Path, segments: "_Segments") -> tuple[str, ...]:
    """Return the domain and the document of each segment; none without the file."""
    if not path.is_file():
        return ()
    lines = read_lines(path)
    segments.check(len(lines), str(path))
    return tuple(lines)


class _Segments:
    """The number of segments: that of the first file."""

    def __init__(self) -> None:
        self.count = 0
        self._origin = ""

    def check(self, count: int, what: str) -> None:
        if not self._origin:
            self.count, self._origin = count, what
        elif count != self.count:
            raise InputError(
                f"{what} has {count} lines, and {self._origin} has {self.count}; expected one for each segment."
            )


class _Scores:
    """The files of one gold or metric, at either level."""

    def __init__(self, stem: Path) -> None:
        paths = {level: stem.with_name(f"{stem.name}.{level}.score") for level in ("seg", "sys")}
        self._paths = {level: path for level, path in paths.items() if path.exists()}
        self._scores = {level: read_scores(path) for level, path in self._paths.items()}

    @property
    def systems(self) -> set[str]:
        return {system for scores in self._scores.values() for system in scores}

    def lacking(self, judged: Sequence[str]) -> str:
        """Return which system with a human score has no line; empty if each has one."""
        for level, scores in self._scores.items():
            for system in judged:
                if system not in scores:
                    return (
                        f"{self._paths[level]} has no line of the system {system}, which annotators judged. Add its "
                        "scores; or, where this is the reference that the metric took, name it as `reference`."
                    )
        return ""

    def segment_scores(self, systems: Sequence[str], segments: _Segments) -> Floats | None:
        """Return the scores of segments, (systems, segments), NaN for a system without any; None without a file."""
        if "seg" not in self._scores:
            return None
        for system, values in self._scores["seg"].items():
            segments.check(len(values), f"the system {system} in {self._paths['seg']}")
        missing = np.full(segments.count, np.nan)
        return np.array([self._scores["seg"].get(system, missing) for system in systems])

    def system_scores(self, systems: Sequence[str], segment_scores: Floats | None) -> Floats:
        """Return the scores of systems, (systems,), NaN where there is none: their own, or else means of segments."""
        if "sys" not in self._scores:
            return np.full(len(systems), np.nan) if segment_scores is None else mean_by_system(segment_scores)
        for system, values in self._scores["sys"].items():
            if len(values) > 1:
                raise InputError(f"{self._paths['sys']} has {len(values)} lines of the system {system}; expected one.")
        return np.array([self._scores["sys"].get(system, [np.nan])[0] for system in systems])


def _texts(
    eval_set: EvalSet,
    language_pair: str,
    systems: Sequence[str],
    references: Sequence[str],
    segments: _Segments,
    *,
    may_lack: bool,
) -> tuple[tuple[tuple[str | None, ...], ...], tuple[tuple[tuple[str, ...], ...], ...]]:
    """Return the outputs, None for each of a system that may lack them, and their references, by system and segment."""
    if not references:
        raise InputError(f"{language_pair}: there is no reference to score the outputs against. Name a `reference`.")

    def lines(path: Path) -> list[str]:
        texts = read_lines(path)
        segments.check(len(texts), str(path))
        return texts

    folder = eval_set.folder
    available = {*eval_set.outputs(language_pair)}  # names in files of scores are not names of files
    if not may_lack and (lacking := [name for name in systems if name not in available]):
        raise InputError(f"{folder} has no outputs of the system {shortened(lacking[0])!r}, which has human scores.")
    of_references = [lines(folder / "references" / f"{language_pair}.{name}.txt") for name in references]
    of_segment = tuple(zip(*of_references, strict=True))
    outputs = tuple(
        tuple(lines(folder / "system-outputs" / language_pair / f"{name}.txt"))
        if name in available
        else (None,) * len(of_segment)
        for name in systems
    )
    return outputs, (of_segment,) * len(systems)
