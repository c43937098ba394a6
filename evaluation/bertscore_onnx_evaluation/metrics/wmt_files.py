"""A file of judgements as the general translation tasks of WMT publish them since 2025, read as an EvalSet.

WMT25: JSON lines, one for each segment, `wmt25-genmt-humeval.jsonl` of the repository wmt-conference/wmt25-general-mt:

    {"doc_id": "LP_#_DOMAIN_#_DOCUMENT_#_SEGMENT", "tgt_text": {SYSTEM: TEXT, "refA": TEXT},
     "scores": {SYSTEM: [{"score": 90, "annotator": NAME}]}, "metrics": {SYSTEM: {METRIC: SCORE}}}

`metrics` may be missing. A score is called `human` in the file of control segments. An earlier edition has the object
`{"human1": 90, "human2": 95, METRIC: SCORE}` for each system, whose numbers are those of rounds of annotation.

WMT26: the annotations of contrastive ESA that Pearmut writes, an object of campaigns, or JSON lines of one campaign. A
line is a screen, on which an annotator saw the segments of a document in several translations side by side:

    {"SOURCE---TARGET": [{"user_id": NAME, "annotation": [{SYSTEM: {"score": 90}}],
                          "item": [{"item_id": "DOMAIN_###_DOCUMENT_###_SEGMENT", "tgt": {SYSTEM: TEXT}}]}]}

References are among the translations: `refA`, or `Human (postediting)`.
"""

import codecs
import itertools
import logging
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, json_fault, shortened
from bertscore_onnx.tables.sources import format_of, open_source
from bertscore_onnx.tables.table import natural_key
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Floats, mean_by_system
from bertscore_onnx_evaluation.metrics.eval_set import ALL_REFERENCES, NO_REFERENCE, EvalSet
from bertscore_onnx_evaluation.metrics.judged_systems import HUMAN, HUMAN_NAME, JudgedSystems

MAX_BYTES = 2_000_000_000
"""The largest file: 20 times that of WMT25."""
PIECE_BYTES = 1 << 20
"""Bytes that are read at a time."""
UNKNOWN = "unknown"
"""In place of the names of annotators, who may be several."""
WITHDRAWN = "__RESET__"
"""In place of an annotation, it withdraws all earlier ones of the annotator."""

_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises if bytes are not the JSON that is expected."""

_log = logging.getLogger(__name__)
_Record = TypeVar("_Record")


class _Judgement(msgspec.Struct):
    """One annotator's score of an output; `human` is its name among control segments."""

    annotator: str = UNKNOWN
    score: float | None = None
    human: float | None = None


class _Line(msgspec.Struct):
    """A segment of WMT25."""

    doc_id: str
    tgt_text: dict[str, str]
    scores: dict[str, list[_Judgement] | dict[str, Any]]
    metrics: dict[str, dict[str, float | None]] = {}


class _Item(msgspec.Struct):
    """A segment on a screen of Pearmut."""

    item_id: str = ""
    tgt: dict[str, str] = {}


class _Score(msgspec.Struct):
    score: float | None = None


class _Screen(msgspec.Struct):
    """What one annotator saw and answered at once, or `WITHDRAWN`."""

    user_id: str
    annotation: list[dict[str, _Score] | None] | str | None
    item: list[_Item] = []


@dataclass(slots=True)
class _Segment:
    """A segment: its outputs, and their scores by each annotator, and by metrics."""

    document: str
    texts: dict[str, str] = field(default_factory=dict)
    judgements: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    metrics: defaultdict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def judge(self, system: str, annotator: str, score: float) -> None:
        """Add a judgement of an output, unless its annotator gave it this score before."""
        scores = self.judgements.setdefault(system, {}).setdefault(annotator, [])
        if annotator == UNKNOWN or score not in scores:
            scores.append(score)

    def human(self, system: str, annotators: Collection[str]) -> float:
        """Return the mean over these annotators of each one's mean judgement of an output; NaN without any."""
        found = []
        for name, scores in self.judgements.get(system, {}).items():
            if name in annotators:
                found += scores if name == UNKNOWN else [_mean(scores)]
        return _mean(found)

    def num_repeated(self) -> int:
        """Return how often an annotator gave an output several scores."""
        by_annotator = (each for by_name in self.judgements.values() for each in by_name.items())
        return sum(len(scores) > 1 for name, scores in by_annotator if name != UNKNOWN)


def open_eval_set(path: str | PathLike[str]) -> EvalSet:
    """Return the set in a folder in the layout of mt-metrics-eval, or in a file of WMT25 or WMT26.

    Raises:
        InputError: it holds no judgements, or the file is damaged, with the line.
    """
    return EvalSet(path) if Path(path).is_dir() else _WmtFile(path)


def is_wmt_file(path: str | PathLike[str]) -> bool:
    """Return whether a file is JSON in the form of WMT25 or WMT26, perhaps damaged, and not a table."""
    if not Path(path).is_file() or format_of(fspath(path)) != "jsonl":
        return False
    with open_source(fspath(path)) as source:
        first = next(filter(bytes.strip, source.decompressed()), b"").removeprefix(codecs.BOM_UTF8)
    return _form(_content(path) if _names(first) is None else first) is not None


def annotator_scores(eval_set: EvalSet, judged: JudgedSystems) -> dict[str, MetricScores]:
    """Return each annotator's mean scores of the systems and segments of a language pair that was read from a file.

    They are by name, or by round of annotation (`human1`) where the file counts rounds; none for a folder, which has
    none by annotator.
    """
    if not isinstance(eval_set, _WmtFile):
        return {}
    found = {}
    for name in eval_set.golds(judged.language_pair):
        segment = eval_set.human(judged.language_pair, judged.systems, judged.segments, [name])
        found[name] = MetricScores(mean_by_system(segment), segment)
    return found


class _WmtFile(EvalSet):
    """A file of WMT25 or WMT26: `folder` is its path, and a gold the name of an annotator, or of a round."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.folder = Path(path)
        content = _content(path)
        form = _form(content)
        if form is None:
            raise InputError(
                f"{path} holds no judgements of WMT; expected JSON lines with doc_id, scores and tgt_text, as of "
                "WMT25, or annotations of Pearmut, with user_id, item and annotation, as of WMT26."
            )
        self._pairs: dict[str, dict[str, _Segment]] = {}
        form(self, content)
        self._pairs = {
            name: {segment: segments[segment] for segment in sorted(segments, key=natural_key)}
            for name, segments in sorted(self._pairs.items())
            if any(segment.judgements for segment in segments.values())
        }
        if not self._pairs:
            raise InputError(f"{path} has no score of any output; expected some. Is the file of another edition?")
        if repeated := sum(one.num_repeated() for segments in self._pairs.values() for one in segments.values()):
            _log.warning("%s: outputs that an annotator gave several scores, whose mean counts: %d.", path, repeated)
        self._golds = {
            name: sorted({who for segment in segments.values() for who in _annotators(segment)})
            for name, segments in self._pairs.items()
        }

    # Which systems, references and metrics there are.

    def outputs(self, language_pair: str) -> list[str]:
        return sorted({system for segment in self._pairs[language_pair].values() for system in segment.texts})

    def references(self, language_pair: str) -> list[str]:
        return [name for name in self.outputs(language_pair) if HUMAN_NAME.fullmatch(name)]

    def metrics(self, language_pair: str) -> list[str]:
        return [*dict.fromkeys(name for segment in self._pairs[language_pair].values() for name in segment.metrics)]

    def reference(self, language_pair: str, name: str | None) -> str:
        if name is None:
            there = self.references(language_pair)
            return self._only(there, f"references of {language_pair}", "reference") if there else NO_REFERENCE
        if name in (ALL_REFERENCES, NO_REFERENCE):
            return name
        return self._known(name, self.outputs(language_pair), f"reference of {language_pair}")

    def references_in(self, language_pair: str, reference: str) -> frozenset[str]:
        if reference == NO_REFERENCE:
            return frozenset()
        return frozenset(self.references(language_pair) if reference == ALL_REFERENCES else [reference])

    def chosen_metrics(self, language_pair: str, names: Sequence[str], reference: str) -> list[str]:
        there = self.metrics(language_pair)
        kind = f"metric with scores of {language_pair}"
        return [*dict.fromkeys(self._known(name, there, kind) for name in names or there)]

    # Reading a language pair.

    def human(
        self, language_pair: str, systems: Sequence[str], segments: Iterable[str], annotators: Collection[str]
    ) -> Floats:
        """Return the mean judgements by these annotators, (systems, segments), NaN where there is none."""
        chosen = [self._pairs[language_pair][name] for name in segments]
        return np.array([[segment.human(system, annotators) for segment in chosen] for system in systems])

    def _read(
        self,
        language_pair: str,
        gold: str | None,
        reference: str | None,
        metrics: Sequence[str],
        hold_out: str | None,
        with_texts: bool | None,
    ) -> JudgedSystems:
        annotators = self.golds(language_pair)
        chosen = annotators if gold is None else [self._known(gold, annotators, f"gold of {language_pair}")]
        if hold_out is not None:
            hold_out = self.held_out(language_pair, hold_out, chosen)
            chosen = [name for name in chosen if name != hold_out]
        reference = self.reference(language_pair, reference)
        in_use = self.references_in(language_pair, reference)
        if with_texts and not in_use:
            raise InputError(
                f"{language_pair}: there is no reference to score the outputs against. Name a `reference`, or the "
                "other language pairs as `language_pair`."
            )
        segments = self._pairs[language_pair]
        systems = sorted({system for segment in segments.values() for system in segment.judgements} - in_use)
        human = self.human(language_pair, systems, segments, chosen)
        is_judged: NDArray[np.bool_] = ~np.isnan(human)
        has_reference = np.array([not with_texts or in_use <= segment.texts.keys() for segment in segments.values()])
        dropped = [*itertools.compress(segments, np.any(is_judged & ~has_reference, axis=0))]
        is_judged &= has_reference  # (systems, segments)
        rows, columns = np.any(is_judged, axis=1), np.any(is_judged, axis=0)
        if not rows.any():
            raise InputError(f"{self.folder} has no judged segment of {language_pair} with the reference {reference}.")
        if dropped:
            _log.warning("%s: segments left out, without the reference %s: %d.", language_pair, reference, len(dropped))
        judged = JudgedSystems(
            language_pair,
            tuple(itertools.compress(systems, rows)),
            mean_by_system(human[rows][:, columns]),
            human[rows][:, columns],
            {},
            gold=chosen[0] if len(chosen) == 1 else f"mean of {len(chosen)} annotators",
            reference=reference,
            segments=tuple(itertools.compress(segments, columns)),
            documents=tuple(segment.document for segment in itertools.compress(segments.values(), columns)),
            human_systems=frozenset(systems) & frozenset(self.references(language_pair)),
            dropped=tuple(dropped),
        )
        judged = replace(judged, metrics=self._scores(judged, metrics))
        if hold_out is not None:
            judged = replace(judged, annotators={f"{HUMAN}{hold_out}": annotator_scores(self, judged)[hold_out]})
        reads_texts = in_use if with_texts is None else with_texts
        return self._with_texts(judged, sorted(in_use), may_lack=not with_texts) if reads_texts else judged

    def _scores(self, judged: JudgedSystems, names: Sequence[str]) -> dict[str, MetricScores]:
        """Return the scores of the judged outputs by these metrics, or else by all that lack none, with a warning."""
        found = {}
        for name in self.chosen_metrics(judged.language_pair, names, judged.reference):
            of_metric = [segment.metrics.get(name, {}) for segment in self._segments(judged)]
            scores = np.array([[scores.get(system, math.nan) for scores in of_metric] for system in judged.systems])
            scores[np.isnan(np.asarray(judged.human_segment))] = math.nan
            if not (lacking := judged.unscored(scores)):
                found[name] = MetricScores(mean_by_system(scores), scores)
            elif names:
                raise InputError(f"{judged.language_pair}, {name}: {lacking}. Leave it out, or add its scores.")
            else:
                _log.warning("%s, %s is left out: %s.", judged.language_pair, name, lacking)
        return found

    def _with_texts(self, judged: JudgedSystems, in_use: Sequence[str], *, may_lack: bool) -> JudgedSystems:
        """Add the judged outputs, and the references of their segments."""
        segments = self._segments(judged)
        is_judged = ~np.isnan(np.asarray(judged.human_segment))
        for row, column in np.argwhere(is_judged):
            if {system := judged.systems[row], *in_use} <= segments[column].texts.keys():
                continue
            if not may_lack:
                raise InputError(
                    f"{self.folder} has no text of the system {system!r} for {judged.segments[column]!r}, which has a "
                    "human score. Add the text, or leave out the score."
                )
            is_judged[row, column] = False
        references = [tuple(segment.texts.get(name, "") for name in in_use) for segment in segments]
        of_systems = [*zip(judged.systems, is_judged.tolist(), strict=True)]
        return replace(
            judged,
            candidates=tuple(
                tuple(one.texts[system] if has_score else None for one, has_score in zip(segments, scored, strict=True))
                for system, scored in of_systems
            ),
            references=tuple(
                tuple(one if has_score else () for one, has_score in zip(references, scored, strict=True))
                for _, scored in of_systems
            ),
        )

    def _segments(self, judged: JudgedSystems) -> list[_Segment]:
        return [self._pairs[judged.language_pair][name] for name in judged.segments]

    # Reading the file.

    def _add_lines(self, content: bytes) -> None:
        """Add the segments of WMT25."""
        first: dict[str, int] = {}
        for number, line in self._records(content, _Line):
            language_pair, mark, _ = line.doc_id.partition("_#_")
            if not mark:
                raise InputError(
                    f"{self.folder}, line {number}: the doc_id is {shortened(line.doc_id)!r}; expected language pair, "
                    "domain, document and segment, with _#_ between them."
                )
            segment = _Segment(line.doc_id.rpartition("_#_")[0], line.tgt_text)
            for system, scores in line.metrics.items():
                for metric, score in scores.items():
                    segment.metrics[metric][system] = math.nan if score is None else score
            for system, entry in line.scores.items():
                if isinstance(entry, dict):
                    self._add_rounds(segment, system, entry, number)
                    continue
                for each in entry:
                    found = each.human if each.score is None else each.score
                    if found is not None:
                        segment.judge(system, each.annotator, found)
            if self._pairs.setdefault(language_pair, {}).setdefault(line.doc_id, segment) != segment:
                raise InputError(
                    f"{self.folder}, line {number}: the segment {shortened(line.doc_id)!r} occurs a second time; the "
                    f"first is in line {first[line.doc_id]}, and differs. Expected one line for each."
                )
            first.setdefault(line.doc_id, number)

    def _add_rounds(self, segment: _Segment, system: str, entry: Mapping[str, Any], number: int) -> None:
        """Add the scores of an earlier edition, where each round of annotation, and each metric, has a key."""
        for key, value in entry.items():
            if re.fullmatch(r"(annotator|errors|times)\d*", key) or value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InputError(
                    f"{self.folder}, line {number}: {shortened(key)!r} of {system!r} is {shortened(str(value))!r}; "
                    "expected a number."
                )
            if re.fullmatch(r"human\d*", key):
                segment.judge(system, key, float(value))
            else:
                segment.metrics[key][system] = float(value)

    def _add_screens(self, content: bytes) -> None:
        """Add the screens of one campaign, which the file is named for."""
        self._add_campaign(re.sub(r"\.jsonl?(\.gz)?$", "", self.folder.name), self._records(content, _Screen))

    def _add_campaigns(self, content: bytes) -> None:
        """Add the screens of each campaign."""
        try:
            campaigns = msgspec.json.decode(content, type=dict[str, list[_Screen]])
        except _FAULTS as error:
            raise InputError(
                f"{self.folder} is not as Pearmut writes annotations: {json_fault(error)}. Fetch the file again."
            ) from error
        for name, screens in campaigns.items():
            self._add_campaign(name, enumerate(screens, 1))

    def _add_campaign(self, name: str, screens: Iterable[tuple[int, _Screen]]) -> None:
        """Add the screens of a campaign that were not withdrawn, without tutorials and attention checks."""
        by_user: defaultdict[str, list[tuple[int, list[_Item], list[dict[str, _Score] | None]]]] = defaultdict(list)
        for number, screen in screens:
            if screen.annotation == WITHDRAWN:
                by_user[screen.user_id].clear()
            elif isinstance(screen.annotation, str):
                raise InputError(
                    f"{self.folder}, {name}, screen {number}: the annotation is {shortened(screen.annotation)!r}; "
                    f"expected a list of scores, or {WITHDRAWN}, which withdraws the earlier screens of "
                    f"{screen.user_id!r}. Add the scores, or leave out the screen."
                )
            elif screen.annotation is not None:
                by_user[screen.user_id].append((number, screen.item, screen.annotation))
        pair = self._pairs.setdefault(re.sub(r" v\d+$", "", name), {})
        not_shown = 0
        for user, (number, items, annotations) in ((user, one) for user, screens in by_user.items() for one in screens):
            if len(items) != len(annotations):
                raise InputError(
                    f"{self.folder}, {name}, screen {number}: {len(items)} items and {len(annotations)} annotations; "
                    "expected one for each."
                )
            for item, scores in zip(items, annotations, strict=True):
                if not item.item_id or item.item_id.startswith("attention_check_") or "_#_tutorial_#_" in item.item_id:
                    continue
                segment = pair.setdefault(item.item_id, _Segment(item.item_id.rpartition("_###_")[0] or item.item_id))
                for system, text in item.tgt.items():
                    if segment.texts.setdefault(system, text) != text:
                        raise InputError(
                            f"{self.folder}, {name}, screen {number}: {system!r} has another text for {item.item_id!r} "
                            "than on an earlier screen. Expected one output of each system."
                        )
                for system, score in (scores or {}).items():
                    if system not in item.tgt:
                        not_shown += 1
                    elif score.score is not None:
                        segment.judge(system, user, score.score)
        if not_shown:
            _log.warning("%s: scores left out, of translations that were not on the screen: %d.", name, not_shown)

    def _records(self, content: bytes, kind: type[_Record]) -> Iterator[tuple[int, _Record]]:
        """Yield the records of JSON lines, each with the number of its line."""
        decoder = msgspec.json.Decoder(kind)
        for number, line in enumerate(content.split(b"\n"), 1):
            if line.strip():
                try:
                    yield number, decoder.decode(line)
                except _FAULTS as error:
                    raise InputError(
                        f"{self.folder}, line {number}: {json_fault(error, 'the line')}, in a file of WMT. Fetch the "
                        "file again."
                    ) from error


def _annotators(segment: _Segment) -> Iterator[str]:
    return (name for by_name in segment.judgements.values() for name in by_name)


def _mean(scores: Sequence[float]) -> float:
    """Return the mean of scores, which does not depend on their order; NaN of none."""
    return math.fsum(scores) / len(scores) if scores else math.nan


def _content(path: str | PathLike[str]) -> bytes:
    """Return the bytes of a file, which may be compressed with gzip."""
    if not Path(path).is_file():  # a pipe may block
        raise InputError(
            f"{path} is no regular file; expected one with judgements of WMT, or the folder of an EvalSet."
        )
    pieces, size = [], 0
    with open_source(fspath(path)) as source:
        file = source.decompressed()
        while piece := file.read(PIECE_BYTES):  # a read of more would take as much memory at once
            pieces.append(piece)
            size += len(piece)
            if size > MAX_BYTES:
                raise InputError(
                    f"{path} has more than the {MAX_BYTES:,} bytes that are read. Split it by language pair."
                )
    return b"".join(pieces).removeprefix(codecs.BOM_UTF8)


def _form(content: bytes) -> Callable[[_WmtFile, bytes], None] | None:
    """Return the method that reads a form of file, by the names in its first object; None for no form of WMT."""
    content = content.lstrip()
    first = content.partition(b"\n")[0].strip()
    values = _names(first) or _names(content) or {}
    names = {*values} or _names_of_damaged(content)
    is_indented = first == b"{"
    if names >= {"doc_id", "scores", "tgt_text"} and not is_indented:
        return _WmtFile._add_lines
    if names >= {"user_id", "annotation"}:
        return _WmtFile._add_campaigns if is_indented else _WmtFile._add_screens
    return _WmtFile._add_campaigns if _are_campaigns(values.values()) else None


def _names_of_damaged(content: bytes) -> set[str]:
    """Return the names of WMT in an object that cannot be decoded."""
    names = re.findall(rb'"(doc_id|scores|tgt_text|user_id|annotation)"\s*:', content if content[:1] == b"{" else b"")
    return {name.decode() for name in names}


def _names(content: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the names and values of an object; None if it is no whole one."""
    try:
        return msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except _FAULTS:
        return None


def _are_campaigns(values: Iterable[msgspec.Raw]) -> bool:
    """Return whether all are lists of screens, and some not empty."""
    try:
        lists = [msgspec.json.decode(value, type=list[dict[str, msgspec.Raw]]) for value in values]
    except _FAULTS:
        return False
    return any(lists) and all(screens[0].keys() >= {"user_id", "annotation"} for screens in lists if screens)
