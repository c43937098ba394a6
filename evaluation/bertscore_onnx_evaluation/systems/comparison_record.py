"""What a comparison of systems found.

`ComparisonRecord` holds it, and the sentences that every output prints.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import __version__
from bertscore_onnx.errors import plural
from bertscore_onnx.tables.repeats import RepeatCounter
from bertscore_onnx_evaluation.column_roles import ColumnChoice, in_words
from bertscore_onnx_evaluation.metric_scores import is_bertscore
from bertscore_onnx_evaluation.systems.corpus_scores import ROUNDING
from bertscore_onnx_evaluation.systems.dependence import alike_neighbours
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, MIN_UNITS, SIGNIFICANT
from bertscore_onnx_evaluation.systems.verdicts import (
    MetricResult,
    headline,
    remarks,
    runs,
    test_fields,
    untested_groups,
    within_margin,
)
from bertscore_onnx_evaluation.table import count, listed

if TYPE_CHECKING:
    from bertscore_onnx.similarity import TokenSimilarity


@dataclass(frozen=True, slots=True)
class Example:
    """A segment on which a system differs much from the baseline.

    The difference is that under the first metric.
    """

    segment: int
    """Its position in `Comparison.segments`, from 0."""
    system: str
    """The system that differs from the baseline."""
    delta: float
    """The system's score of the segment minus the baseline's."""
    matches: "tuple[TokenSimilarity, TokenSimilarity] | None"
    """Which tokens of the baseline's text, and of the system's, match the best reference.

    None where the first metric is not BERTScore, or texts have contexts."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRecord:
    """What a comparison found, and under which settings."""

    num_resamples: int
    """The number of swaps."""
    seed: int
    systems: tuple[str, ...]
    """Their names, the baseline first."""
    candidates: tuple[tuple[str, ...], ...]
    """The text of each segment by each system; none where only scores were given."""
    references: tuple[tuple[str, ...], ...]
    """The references of each segment; likewise."""
    metrics: tuple[MetricResult, ...]
    examples: tuple[Example, ...]
    """For each system but the baseline the segments with the largest gain, then those with the
    largest loss."""
    segments: tuple[str | int, ...]
    """The id of each segment; without ids, the number of its line or row, which counts from 1."""
    documents: tuple[int, ...] = ()
    """The document of each segment as a number from 0, if the tests are by documents."""
    dropped: tuple[str | int, ...] = ()
    """The segments that were left out, since some input lacks them."""
    choices: tuple[ColumnChoice, ...] = ()
    """What was taken from each table, and from the files of systems; and what was ignored."""
    assumed: tuple[str, ...] = ()
    """The metrics of given scores whose direction nobody named: higher is taken as better."""
    is_baseline_named: bool = True
    """Whether someone named the baseline; else it is the first system of a table."""
    lacking: Mapping[str, int] = field(default_factory=dict)
    """By system how many of the segments left out it lacks, and the baseline has."""
    precisions: tuple[str, ...] = ()
    """The precisions of given scores, as far as their signatures name them."""

    @property
    def _is_compared(self) -> bool:
        """Whether there are two systems or more."""
        return len(self.systems) > 1

    @property
    def num_segments(self) -> int:
        """The number of segments."""
        return int(self.metrics[0].segment_scores.shape[1])

    @property
    def num_documents(self) -> int | None:
        """The number of documents; None if segments were the units of the tests."""
        if not self.documents:
            return None
        return max(self.documents) + 1

    @property
    def num_references(self) -> list[int]:
        """The number of references of a segment.

        It is the smallest and the largest number, or the number that all segments have.
        """
        counts = list(map(len, self.references)) or [1]
        return sorted({min(counts), max(counts)})

    @property
    def inputs(self) -> list[str]:
        """What was taken from the inputs, in sentences.

        They name systems, columns, the baseline, and the direction of scores.
        """
        sentences = in_words(self.choices, self.systems[0])
        if not self._is_compared:
            sentences = sentences[:-1]  # the last sentence is about the baseline
        if self.assumed:
            sentences.append(f"Higher is taken as better: {', '.join(self.assumed)}.")
        return sentences

    @property
    def signature(self) -> str:
        """The test and its settings, to quote beside the signatures of metrics."""
        swaps = f"|resamples:{self.num_resamples}|seed:{self.seed}"
        fields = test_fields(self.metrics, self.num_documents or 0, len(self.dropped), swaps)
        if self.num_references != [1]:
            fields += f"|references:{'-'.join(map(str, self.num_references))}"
        return f"bertscore-onnx{fields}|version:{__version__}"

    @property
    def test_settings(self) -> str:
        """The tests with their settings, in words."""
        titles: dict[str, list[str]] = {}
        for metric in self.metrics:
            titles.setdefault(self._test_of(metric), []).append(metric.title)
        first, *others = titles
        of_others = [f"; of {listed(titles[test])} {test}" for test in others]
        return first + "".join(of_others)

    def _test_of(self, metric: MetricResult) -> str:
        """Return the test of a metric with its settings, in words."""
        num_units, _ = metric.units
        units = f" by {plural(self.num_documents, 'document')}" if self.num_documents else ""
        draws = f"{count(self.num_resamples)} swaps, seed {self.seed}"
        if num_units <= MAX_EXACT:
            draws = "all swaps"
        if not self._is_compared:
            if metric.is_exact:
                return "Clopper and Pearson's"
            return f"the means of subsets of them, {draws.replace('swaps', 'subsets')}"
        if metric.is_exact:
            is_mcnemar = metric.is_binary and not self.documents
            name = "McNemar's test, exact" if is_mcnemar else "exact sign test"
            return f"{name}{units}, intervals by {draws}"
        test = f"paired permutation test{units}, {draws}"
        if "all swaps" in metric.tests and num_units > MAX_EXACT:
            test += f", p by all of them where at most {MAX_EXACT} differ"
        if "sign" in metric.tests:
            test += ", p by the exact sign test where all differences have one size"
        return test

    @property
    def warnings(self) -> list[str]:
        """The reasons why the tests are weaker than they seem."""
        sentences = [
            self._mixed_precisions(),
            self._few_units(),
            self._dependent_segments(),
            self._first_that_finds_nothing(),
        ]
        return list(filter(None, sentences))

    def _mixed_precisions(self) -> str:
        """Warn if int8 is compared with another precision; empty otherwise."""
        if len(self.precisions) < 2 or "int8" not in self.precisions:
            return ""
        precisions = listed(self.precisions)
        remedy = "int8 shifts a mean: score all with one bundle."
        return f"Scores in {precisions} are compared. {remedy}"

    def _few_units(self) -> str:
        """Warn if the units tell little about other texts; empty otherwise."""
        num_units, unit = self.metrics[0].units
        smallest = min(num_units, self.metrics[0].effective_units)
        if smallest >= MIN_UNITS:
            return ""
        verb = "Tested" if self._is_compared else "Scored"
        tenths = math.floor(10 * smallest + ROUNDING)
        worth = " only"
        if tenths != 10 * num_units:
            worth = f", which tell as much as {tenths / 10:.1f} of one size"
        tested = f"{verb} on {plural(num_units, unit)}{worth}."
        return f"{tested} Results on so few say little about other texts."

    def _dependent_segments(self) -> str:
        """Warn if segments repeat others or resemble neighbours; empty otherwise."""
        if self.documents:
            return ""
        differences: list[NDArray[np.float64]] = []
        for metric in self.metrics:
            scores = metric.segment_scores
            differences.extend(scores[1:] - scores[0] if self._is_compared else scores)
        return self._repeated_rows() or alike_neighbours(differences)

    def _repeated_rows(self) -> str:
        """Warn if texts repeat with the scores that were given; empty otherwise."""
        # Equal texts may differ in the last digit of scores that are computed here.
        given = [metric.segment_scores for metric in self.metrics if not metric.computed_name]
        counter = RepeatCounter()
        for segment, outputs in enumerate(zip(*self.candidates, strict=True)):
            scores = [of_metric[:, segment].tobytes() for of_metric in given]
            counter.add((*self.references[segment], *outputs), tuple(scores))
        return counter.warning

    def _first_that_finds_nothing(self) -> str:
        """Warn if no p of a metric can be significant; empty otherwise."""
        num_units, _ = self.metrics[0].units
        if not self._is_compared or num_units <= MAX_EXACT:
            return ""
        return next(filter(None, map(self._finds_nothing, self.metrics)), "")

    def _finds_nothing(self, metric: MetricResult) -> str:
        """Say that no p can be significant, even in groups; empty if any can."""
        num_units, unit = metric.units
        of_groups = [system.p for group in metric.groups for system in group.systems]
        num_in_groups = len(of_groups) - of_groups.count(None)
        num_tests = max(metric.num_tests, num_in_groups)

        # The smallest p is that of units which all differ in the same direction.
        if num_units <= MAX_EXACT or metric.is_exact:
            smallest = 2.0 ** max(1 - num_units, -1000)
            given = plural(num_units, unit)
            remedy = f"Give more {unit}s"
        else:
            smallest = 1 / (self.num_resamples + 1)
            given = f"{count(self.num_resamples)} swaps"
            remedy = f"Draw {count(math.ceil(num_tests / SIGNIFICANT))} or more"
        if num_tests * smallest < SIGNIFICANT and self.num_segments > 1:
            return ""
        corrected = ""
        if num_tests > 1:
            corrected = f" after Holm's correction for {count(num_tests)} tests"
        return f"With {given} no p can be below {SIGNIFICANT}{corrected}. {remedy}."

    # Sentences, the same in every output.

    @property
    def _headlines(self) -> list[str]:
        """The headline of each metric; metrics with the same have it once."""
        titles: dict[str, list[str]] = {}
        for metric in self.metrics:
            titles.setdefault(headline(metric), []).append(metric.title)
        if len(self.metrics) == 1:
            return list(titles)
        return [f"{listed(of_sentence)}: {sentence}" for sentence, of_sentence in titles.items()]

    @property
    def notes(self) -> list[str]:
        """What the tables do not show.

        There are few units that differ, margins, groups, runs, and segments left out.
        """
        notes = []
        for metric in self.metrics:
            title = f"{metric.title}: " if len(self.metrics) > 1 else ""
            sentences = [*self._remarks(metric), untested_groups(metric), runs(metric)]
            notes += [f"{title}{sentence}" for sentence in sentences if sentence]
        if self.dropped:
            segments = plural(len(self.dropped), "segment")
            notes.append(f"{segments} left out, which some input lacks.")
        return notes

    def _remarks(self, metric: MetricResult) -> list[str]:
        """Return the remarks on each system, and those on the margin in groups."""
        baseline = self.systems[0]
        sentences = []
        for row in metric.ranked:
            system = metric.systems[row]
            remark = remarks(metric, system, baseline)
            if remark:
                sentences.append(f"{system.name}: {remark}")
        for group in metric.groups:
            for system in group.systems[1:]:
                margin = within_margin(metric, system, baseline, group)
                if margin:
                    sentences.append(f"{group.name}: {system.name}: {margin}")
        return sentences

    @property
    def legend(self) -> str:
        """The meaning of `*`, and what was tested; figures have other signs."""
        return self.legend_of("*")

    def legend_of(self, sign: str) -> str:
        """Explain a sign: which test, which correction, how much material."""
        if not self._is_compared:
            _, unit = self.metrics[0].units
            return f"95 % intervals over {unit}s: {self.test_settings}; {self.material}."
        legend = f"{sign} {self._significant}"
        if any(metric.is_corrected or metric.groups for metric in self.metrics):
            legend += " Each 95 % interval is by itself, not corrected."
        return legend

    @property
    def _significant(self) -> str:
        """What `*` means, in a sentence."""
        meaning = f"p < {SIGNIFICANT}{self.runs_clause}: {self.test_settings}, two-sided"
        num_tests = self.metrics[0].num_tests
        if num_tests > 1:
            meaning += f", after Holm's correction for {num_tests} comparisons"
        if any(metric.groups for metric in self.metrics):
            meaning += ", in groups after Holm's correction for all groups and systems"
        if len(self.metrics) > 1:
            meaning += f"; p is not corrected for the {len(self.metrics)} metrics"
        return f"{meaning}; {self.material}."

    @property
    def runs_clause(self) -> str:
        """What a significant p has to come with, where systems have runs."""
        if not any(metric.num_runs for metric in self.metrics):
            return ""
        return " in these runs, with 0 outside the 95 % interval trained again"

    @property
    def material(self) -> str:
        """The number of segments, their references, documents and runs."""
        material = plural(self.num_segments, "segment")
        if self.num_references != [1]:
            material += f" with {' to '.join(map(str, self.num_references))} references"
        if self.num_documents:
            material += f" of {plural(self.num_documents, 'document')}"
        num_runs = {number for metric in self.metrics for number in metric.num_runs}
        if num_runs:
            ends = sorted({min(num_runs), max(num_runs)})
            material += f", each the mean of {' to '.join(map(str, ends))} runs"
        return material

    @property
    def methods(self) -> str:
        """A paragraph on how the systems were compared, for a paper."""
        baseline, *rivals = self.systems
        metrics = listed([metric.title for metric in self.metrics])
        notes = " ".join([*self.notes, *self.warnings, ""])
        signatures = "; ".join(f"{metric.title}: {metric.signature}" for metric in self.metrics)
        software = f"All figures were computed with bertscore-onnx {__version__} ({signatures})."
        if not rivals:
            return f"We scored {baseline} by {metrics}. {self.legend} {notes}{software}"
        legend = self.legend_of("Differences are significant if")
        intervals = "95 % intervals hold the differences that the test does not reject."
        return (
            f"We compared {listed(rivals)} with {baseline} by {metrics} on {self.material}. "
            f"{legend} {intervals} {notes}{software}"
        )

    @property
    def bibtex(self) -> str:
        """The BibTeX entries that the paragraph should cite."""
        entries = []
        if any(is_bertscore(metric.computed_name) for metric in self.metrics):
            entries.append(_BERTSCORE)
        if any(metric.is_of_corpus for metric in self.metrics):
            entries.append(_SACREBLEU)
        entries.append(_SOFTWARE)
        return "\n\n".join(entries)


# What a paper cites.

_BERTSCORE = """\
@inproceedings{zhang-etal-2020-bertscore,
  title = {{BERTScore}: Evaluating Text Generation with {BERT}},
  author = {Zhang, Tianyi and Kishore, Varsha and Wu, Felix and \
Weinberger, Kilian Q. and Artzi, Yoav},
  booktitle = {International Conference on Learning Representations},
  year = {2020},
  url = {https://openreview.net/forum?id=SkeHuCVFDr}
}"""

_SACREBLEU = """\
@inproceedings{post-2018-call,
  title = {A Call for Clarity in Reporting {BLEU} Scores},
  author = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation: Research Papers},
  year = {2018},
  pages = {186--191},
  url = {https://aclanthology.org/W18-6319}
}"""

_SOFTWARE = f"""\
@software{{bertscore-onnx,
  title = {{bertscore-onnx}},
  author = {{{{The bertscore-onnx developers}}}},
  version = {{{__version__}}}
}}"""
