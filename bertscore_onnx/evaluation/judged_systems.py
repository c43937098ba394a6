"""The systems of one language pair: what they wrote, and what people and metrics gave them, system by segment."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats


@dataclass(frozen=True, slots=True, eq=False)
class MetricScores:
    """A metric's scores; the higher, the better."""

    system: Floats | None
    """Scores of whole systems, (systems,), NaN where there is none; None without any."""
    segment: Floats | None
    """(systems, segments), likewise."""
    signature: str = ""
    """How they were made, where that is known."""
    base_name: str = ""
    """The metric's name in all language pairs, where that is not its name in one, such as BLEU of BLEU-refB."""


@dataclass(frozen=True, slots=True, eq=False)
class SystemTexts:
    """What the systems wrote."""

    candidates: tuple[tuple[str | None, ...], ...]
    """By system and segment; None where a system has no output."""
    references: tuple[tuple[tuple[str, ...], ...], ...]
    """The references of each output, by system and segment, one or more; none where there is no output."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSystems:
    """The systems of one language pair with their scores by people and by metrics."""

    language_pair: str
    systems: tuple[str, ...]
    """Their names; some may be judged by nobody."""
    human_system: Floats
    """Scores of whole systems by people, (systems,), NaN where nobody judged."""
    human_segment: Floats | None
    """(systems, segments), NaN where nobody judged; None where people judged whole systems alone."""
    metrics: Mapping[str, MetricScores]
    gold: str = ""
    """Which judgements these are, such as mqm; empty where there is but one kind."""
    reference: str = ""
    """The reference in use, such as refB, with which names of metrics end; empty where they do not."""
    segments: tuple[str, ...] = ()
    """Names of the segments; none where there are only whole systems."""
    people: frozenset[str] = frozenset()
    """Which of the systems are people, whose translation is another reference of the set."""
    texts: SystemTexts | None = None
    """What the systems wrote, where it was asked for."""

    def judged(self) -> "JudgedSystems":
        """Return the systems that people judged, with all their segments.

        Raises:
            InputError: there are none, shapes differ, or a metric lacks a score that people judged.
        """
        self._check_shapes()
        is_judged = ~np.isnan(self.human_system)
        if self.human_segment is not None:
            is_judged |= ~np.isnan(self.human_segment).all(axis=1)
        if not is_judged.any():
            raise InputError(
                f"{self.language_pair}: people judged none of the {len(self.systems)} systems. Leave it out."
            )
        rows = np.flatnonzero(is_judged)
        human_segment = None if self.human_segment is None else self.human_segment[rows]
        texts = self.texts and SystemTexts(
            tuple(self.texts.candidates[row] for row in rows), tuple(self.texts.references[row] for row in rows)
        )
        judged = replace(
            self,
            systems=tuple(self.systems[row] for row in rows),
            human_system=self.human_system[rows],
            human_segment=human_segment,
            metrics={
                name: replace(
                    scores,
                    system=None if scores.system is None else scores.system[rows],
                    segment=None if scores.segment is None else scores.segment[rows],
                )
                for name, scores in self.metrics.items()
            },
            texts=texts,
        )
        judged._check_complete()
        return judged

    def _check_shapes(self) -> None:
        of_systems = (len(self.systems),)
        of_segments = (len(self.systems), len(self.segments))
        sides = {"people": MetricScores(self.human_system, self.human_segment), **self.metrics}
        for side, both in sides.items():
            for scores, shape in ((both.system, of_systems), (both.segment, of_segments)):
                if scores is not None and scores.shape != shape:
                    raise InputError(
                        f"{self.language_pair}: the scores by {side} have the shape {scores.shape}; expected {shape}, "
                        f"for {len(self.systems)} systems and {len(self.segments)} segments."
                    )

    def _check_complete(self) -> None:
        """Raise where people judged something that a metric did not score."""
        for name, scores in self.metrics.items():
            if scores.segment is not None and self.human_segment is not None:
                missing = np.argwhere(~np.isnan(self.human_segment) & ~np.isfinite(scores.segment))
                if len(missing):
                    system, segment = missing[0]
                    self._raise_missing(name, f"segment {self.segments[segment]} of system {self.systems[system]}")
            if scores.system is not None:
                lacks = ~np.isnan(self.human_system) & ~np.isfinite(scores.system)
                if lacks.any():
                    self._raise_missing(name, f"system {self.systems[int(lacks.argmax())]}")

    def _raise_missing(self, metric: str, what: str) -> None:
        raise InputError(
            f"{self.language_pair}: {metric} has no score for {what}, which people judged. Add it, or leave out the "
            "judgement."
        )


def mean_by_system(scores: Floats) -> Floats:
    """Average each system's scores over the segments that have one.

    Args:
        scores: (systems, segments), NaN where there is none.

    Returns:
        (systems,), NaN for a system that has none.
    """
    counts = (~np.isnan(scores)).sum(axis=1)
    means: Floats = np.where(counts, np.nansum(scores, axis=1) / np.maximum(counts, 1), np.nan)
    return means


# The outputs of machines that people judged, without people's own translations.


NAME_OF_PEOPLE = re.compile(r"(human|translator|ref(erence)?)([-_.]?[a-z0-9])?(\.\d+)?", re.IGNORECASE)
"""How the shared tasks of WMT name people's translations: Human-A.0, HUMAN, refB, translator-A.0, ref."""


@dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """The systems of one language pair that are no people."""

    language_pair: str
    systems: tuple[str, ...]
    people: tuple[str, ...]
    """The systems that were left out."""

    segments: tuple[str, ...]
    human: Floats
    """(systems, segments), NaN where nobody judged."""

    rows: tuple[int, ...]
    """The place of each system among all."""

    texts: SystemTexts | None
    """Of all systems, where they are known."""

    def scores(self, metric: MetricScores) -> Floats:
        """Return the metric's scores, (systems, segments), NaN where there are none."""
        return np.full(self.human.shape, np.nan) if metric.segment is None else metric.segment[list(self.rows)]

    def text(self, system: int, segment: int) -> tuple[str, tuple[str, ...]] | None:
        """Return an output with its references; None where it is not known."""
        if self.texts is None:
            return None
        row = self.rows[system]
        candidate = self.texts.candidates[row][segment]
        return None if candidate is None else (candidate, self.texts.references[row][segment])

    def missing(self, scores: Floats) -> str:
        """Say which judged outputs have no finite score, of (systems, segments); empty where all have one."""
        is_judged = ~np.isnan(self.human)
        lacking = np.argwhere(is_judged & ~np.isfinite(scores))
        if not len(lacking):
            return ""
        system, segment = lacking[0]
        return (
            f"{len(lacking)} of {is_judged.sum()} judged outputs have no score, such as that of "
            f"{self.systems[system]!r} for segment {self.segments[segment]!r}"
        )


def machines(judged: JudgedSystems, people: Collection[str]) -> Machines:
    """Leave people out.

    Args:
        judged: the systems of one language pair.
        people: names of systems.

    Raises:
        InputError: people judged whole systems alone.
    """
    if judged.human_segment is None:
        raise InputError(
            f"{judged.language_pair}: people judged whole systems, and here the judgements of segments are needed."
        )
    rows = tuple(row for row, name in enumerate(judged.systems) if name not in people)
    return Machines(
        judged.language_pair,
        tuple(judged.systems[row] for row in rows),
        tuple(name for name in judged.systems if name in people),
        judged.segments,
        judged.human_segment[list(rows)],
        rows,
        judged.texts,
    )


def people_by_name(language_pairs: Sequence[JudgedSystems]) -> frozenset[str]:
    """Return the systems that are known to be people, or are named as WMT names them."""
    names = {name for one in language_pairs for name in one.systems if NAME_OF_PEOPLE.fullmatch(name)}
    return frozenset(names).union(*(one.people for one in language_pairs))


def check_systems(language_pairs: Sequence[JudgedSystems], names: Collection[str]) -> None:
    """Raise InputError, with the nearest name, for a name that no system has."""
    systems = {name for one in language_pairs for name in one.systems}
    for name in names:
        if name not in systems:
            near = get_close_matches(name, sorted(systems), n=1, cutoff=0)
            raise InputError(f"There is no system called {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
