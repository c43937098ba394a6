"""The systems of a language pair, with their outputs and scores."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import (
    Floats,
    mean_by_system,
    shared_segments,
)
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, effective_units

SENTINELS = {
    "sentinel-random": "random numbers",
    "sentinel-segment": "the difficulty of the segment",
    "sentinel-length": "length",
    "sentinel-ratio": "ratio of lengths",
    "sentinel-overlap": "shared words",
}
"""The scores that read no meaning (`sentinel_scores`), by name; a metric of another name is none.
"""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSystems:
    """The systems of a language pair with their scores.

    The scores are human ones, and those by metrics.
    """

    language_pair: str
    systems: tuple[str, ...]
    """Their names; some may be judged by nobody."""
    human_segment: Floats
    """Human scores, (systems, segments), NaN where nobody judged."""
    metrics: Mapping[str, MetricScores]
    """Metrics whose lower scores are better are negated before they are judged."""
    segments: tuple[str, ...]
    """Names of the segments."""
    documents: tuple[str, ...] = ()
    """The document of each segment, whose segments are dependent; none if that is not known."""
    candidates: tuple[tuple[str | None, ...], ...] | None = None
    """The outputs by system and segment, if they were read; None where a system has no output."""
    references: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """The references of each output, by system and segment.

    One or more; none where there is no output.
    """
    dropped: tuple[str, ...] = ()
    """Segments that were left out.

    A judged output of theirs lacks a score by a metric, or the reference.
    """

    @property
    def human_system(self) -> Floats:
        """Human scores of whole systems, (systems,): means of segments, NaN where nobody judged."""
        return mean_by_system(self.human_segment)

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        """Which outputs have a human score, (systems, segments)."""
        return ~np.isnan(self.human_segment)

    @property
    def compared_pairs(self) -> dict[tuple[str, str], bool]:
        """Every two systems, and whether SPA compares them: on 20 common segments or more."""
        is_compared = (shared_segments(self.human_segment) >= MIN_UNITS).tolist()
        return dict(zip(combinations(self.systems, 2), is_compared, strict=True))

    @property
    def compared_systems(self) -> list[str]:
        """The systems that SPA compares with another."""
        pairs = [pair for pair, is_compared in self.compared_pairs.items() if is_compared]
        return sorted(set(chain.from_iterable(pairs)))

    def judged(self) -> "JudgedSystems":
        """Return the systems that annotators judged, by name, with all their segments.

        Higher scores are better.

        Raises:
            InputError: there are none, shapes differ, or a metric lacks a score that has a human
                score.
        """
        self._check_shapes()
        is_judged = self.is_judged.any(axis=1)
        if not is_judged.any():
            none = f"none of the {len(self.systems)} systems has a human score"
            raise InputError(f"{self.language_pair}: {none}. Leave it out.")

        # Sorted by name, so that the order given changes no bit.
        rows = sorted(np.flatnonzero(is_judged).tolist(), key=self.systems.__getitem__)
        metrics = {}
        for name, metric in self.metrics.items():
            of_rows = replace(metric, system=metric.system[rows], segment=metric.segment[rows])
            metrics[name] = of_rows.negated
        candidates = self.candidates
        if candidates:
            candidates = tuple(candidates[row] for row in rows)
        references = self.references
        if references:
            references = tuple(references[row] for row in rows)
        systems = tuple(self.systems[row] for row in rows)
        judged = replace(
            self,
            systems=systems,
            human_segment=self.human_segment[rows],
            metrics=metrics,
            candidates=candidates,
            references=references,
        )
        judged._check_complete()
        return judged

    @property
    def is_shared(self) -> NDArray[np.bool_]:
        """Which segments are judged for two systems or more, (segments,)."""
        return self.is_judged.sum(axis=0) > 1

    @property
    def num_shared(self) -> int:
        """How many segments are judged for two systems or more."""
        return int(self.is_shared.sum())

    @property
    def unit_numbers(self) -> NDArray[np.int64]:
        """The number from 0 of each judged segment's unit.

        The unit is its document if that is known, else itself.
        """
        names = np.array(self.documents or self.segments, dtype=object)
        return np.unique(names[self.is_judged.any(axis=0)], return_inverse=True)[1]

    @property
    def kind_of_units(self) -> str:
        """`documents` if they are known, else `segments`."""
        return "documents" if self.documents else "segments"

    @property
    def num_units(self) -> int:
        """How many units have a human score."""
        return int(self.unit_numbers.max()) + 1

    @property
    def effective_units(self) -> float:
        """How many units of one size would tell as much as the judged ones."""
        return effective_units(np.bincount(self.unit_numbers).astype(np.float64))

    def _check_shapes(self) -> None:
        num_systems = len(self.systems)
        num_segments = len(self.segments)
        of_outputs = (num_systems, num_segments)
        expected: list[tuple[str, Floats, tuple[int, ...]]] = [
            ("people", self.human_segment, of_outputs)
        ]
        for name, metric in self.metrics.items():
            expected.append((name, metric.system, (num_systems,)))
            expected.append((name, metric.segment, of_outputs))
        for side, scores, shape in expected:
            if np.shape(scores) != shape:
                raise InputError(
                    f"{self.language_pair}: the scores by {side} have the shape "
                    f"{np.shape(scores)}; expected {shape}, for {num_systems} systems and "
                    f"{num_segments} segments."
                )

    def _check_complete(self) -> None:
        """Raise InputError if a metric lacks a score that has a human score."""
        for name, metric in self.metrics.items():
            missing = self._missing(metric)
            if missing:
                raise InputError(
                    f"{self.language_pair}: {name} has no score for {missing}, which has a human "
                    "score. Add it, or leave out the human score."
                )

    def _missing(self, metric: MetricScores) -> str:
        """Return the first output, or else system, that lacks a score; empty if none does."""
        lacking = np.argwhere(self.is_judged & ~np.isfinite(metric.segment))
        if len(lacking):
            system, segment = lacking[0]
            return f"segment {self.segments[segment]} of system {self.systems[system]}"
        lacks_score = ~np.isfinite(metric.system)
        if lacks_score.any():
            return f"system {self.systems[lacks_score.argmax()]}"
        return ""
