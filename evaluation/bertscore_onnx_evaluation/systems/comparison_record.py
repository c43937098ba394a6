"""What a comparison of systems found: its record, and the sentences that every output prints."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bertscore_onnx import __version__
from bertscore_onnx.tables.table import count, listed, plural
from bertscore_onnx_evaluation.column_roles import ColumnChoice, in_words
from bertscore_onnx_evaluation.metric_scores import is_bertscore
from bertscore_onnx_evaluation.systems.corpus_scores import ROUNDING
from bertscore_onnx_evaluation.systems.dependence import alike_neighbours, repeated_rows
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, MIN_UNITS, SIGNIFICANT
from bertscore_onnx_evaluation.systems.verdicts import (
    MetricResult,
    headline,
    remarks,
    runs,
    untested_groups,
    within_margin,
)

if TYPE_CHECKING:
    from bertscore_onnx.similarity import TokenSimilarity


@dataclass(frozen=True, slots=True)
class Example:
    """A segment on which a system differs much from the baseline under the first metric."""

    segment: int
    """Its position in `Comparison.segments`, from 0."""
    system: str
    """The system that differs from the baseline."""
    delta: float
    """The system's score of the segment minus the baseline's."""
    matches: "tuple[TokenSimilarity, TokenSimilarity] | None"
    """Which tokens of the baseline's text, and of the system's, match the best reference; None where the first metric
    is not BERTScore, or texts have contexts."""


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
    """For each system but the baseline the segments with the largest gain, then the segments with the largest loss."""
    segments: tuple[str | int, ...]
    """The id of each segment; where there are no ids, the number of its line or row, which counts from 1."""
    documents: tuple[int, ...] = ()
    """The document of each segment, as a number from 0, if documents were the units of the tests."""
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
        return max(self.documents) + 1 if self.documents else None

    @property
    def num_references(self) -> list[int]:
        """The smallest and the largest number of references of a segment, or the number that all have."""
        counts = [len(references) for references in self.references] or [1]
        return sorted({min(counts), max(counts)})

    @property
    def inputs(self) -> list[str]:
        """What was taken from the inputs, in sentences: systems, columns, the baseline, and the direction of scores."""
        sentences = in_words(self.choices, self.systems[0])[: None if self._is_compared else -1]
        return [*sentences, *[f"Higher is taken as better: {', '.join(self.assumed)}."] * bool(self.assumed)]

    @property
    def signature(self) -> str:
        """The test and its settings, to quote beside the signature of each metric."""
        documents = f"|documents:{self.num_documents}" if self.num_documents else ""
        documents += f"|dropped:{len(self.dropped)}" if self.dropped else ""
        if self.num_references != [1]:
            documents += f"|references:{'-'.join(map(str, self.num_references))}"
        draws = f"resamples:{self.num_resamples}|seed:{self.seed}"
        return f"bertscore-onnx|test:permutation{documents}|{draws}|version:{__version__}"

    @property
    def test_settings(self) -> str:
        """The test with its settings, in words."""
        exact = [metric.title for metric in self.metrics if self.is_mcnemar(metric)]
        if len(exact) == len(self.metrics):
            mean = " and the mean of the groups" if any(metric.mean_of_groups for metric in self.metrics) else ""
            return f"McNemar's test, exact, intervals{mean} by {self._swaps}"
        by = f" by {plural(self.num_documents, 'document')}" if self.num_documents else ""
        of_exact = f", of {listed(exact)} McNemar's, exact" if exact else ""
        return f"paired permutation test{by}, {self._swaps}{of_exact}"

    @property
    def _swaps(self) -> str:
        """How many swaps were made, and where p is by all that there are."""
        if self.metrics[0].units[0] <= MAX_EXACT:
            return "all swaps"
        tested = [system for metric in self.metrics if not self.is_mcnemar(metric) for system in metric.systems[1:]]
        are_few = any(0 < (system.differing or 0) <= MAX_EXACT for system in tested)
        of_few = f", p by all of them where at most {MAX_EXACT} differ" if are_few else ""
        return f"{count(self.num_resamples)} swaps, seed {self.seed}{of_few}"

    @property
    def warnings(self) -> list[str]:
        """The reasons why the tests are weaker than they seem."""
        sentences = []
        if len(self.precisions) > 1 and "int8" in self.precisions:
            precisions = listed(self.precisions)
            sentences.append(f"Scores in {precisions} are compared. int8 shifts a mean: score all with one bundle.")
        (number, unit), effective = self.metrics[0].units, self.metrics[0].effective_units
        verb = "Tested" if self._is_compared else "Scored"
        if min(number, effective) < MIN_UNITS:
            tenths = math.floor(10 * min(number, effective) + ROUNDING)
            are_of_one_size = tenths == 10 * number
            worth = " only" if are_of_one_size else f", which tell as much as {tenths / 10:.1f} of one size"
            sentences.append(
                f"{verb} on {plural(number, unit)}{worth}. Results on so few say little about other texts."
            )
        if not self.documents:
            scores = [metric.segment_scores for metric in self.metrics]
            differences = [row for of in scores for row in (of[1:] - of[0] if self._is_compared else of)]
            dependent = repeated_rows(self.candidates, self.references, scores) or alike_neighbours(differences)
            sentences += [dependent] * bool(dependent)
        finds_nothing = next(filter(None, map(self._finds_nothing, self.metrics)), "")
        return sentences + [finds_nothing] * (bool(finds_nothing) and self._is_compared and number > MAX_EXACT)

    def _finds_nothing(self, metric: MetricResult) -> str:
        """Return that no p of the systems, or of systems in groups, can be significant; nothing if any can."""
        num_units, unit = metric.units
        in_groups = sum(system.p is not None for group in metric.groups for system in group.systems)
        num_tests = max(metric.num_tests, in_groups)
        is_exact = num_units <= MAX_EXACT or self.is_mcnemar(metric)
        smallest = 2.0 ** max(1 - num_units, -1000) if is_exact else 1 / (self.num_resamples + 1)
        if num_tests * smallest < SIGNIFICANT and self.num_segments > 1:
            return ""
        given = plural(num_units, unit) if is_exact else f"{count(self.num_resamples)} swaps"
        remedy = f"Give more {unit}s" if is_exact else f"Draw {count(math.ceil(num_tests / SIGNIFICANT))} or more"
        corrected = f" after Holm's correction for {count(num_tests)} tests" if num_tests > 1 else ""
        return f"With {given} no p can be below {SIGNIFICANT}{corrected}. {remedy}."

    # Sentences, the same in every output.

    @property
    def _headlines(self) -> list[str]:
        """The headline of each metric; metrics with the same have it once."""
        titles: dict[str, list[str]] = {}
        for metric in self.metrics:
            titles.setdefault(headline(metric), []).append(metric.title)
        several = len(self.metrics) > 1
        return [f"{f'{listed(of_words)}: ' if several else ''}{words}" for words, of_words in titles.items()]

    @property
    def notes(self) -> list[str]:
        """What the tables do not show: few units that differ, margins, runs, groups, segments left out."""
        left_out = f"{plural(len(self.dropped), 'segment')} left out, which some input lacks."
        of_metrics = self._of_metrics(self._remarks, lambda metric: [untested_groups(metric), runs(metric)])
        return of_metrics + [left_out] * bool(self.dropped)

    def _remarks(self, metric: MetricResult) -> list[str]:
        """Return the remarks on each system, and within groups what is said of the margin."""
        systems = [metric.systems[row] for row in metric.ranked]
        words = [(system.name, remarks(metric, system, self.systems[0])) for system in systems]
        for group in metric.groups:
            margins = [(one.name, within_margin(metric, one, self.systems[0], group)) for one in group.systems[1:]]
            words += [(f"{group.name}: {name}", margin) for name, margin in margins]
        return [f"{name}: {remark}" for name, remark in words if remark]

    def _of_metrics(self, *sentences_of: Callable[[MetricResult], list[str]]) -> list[str]:
        """Return sentences of each metric, with its title if there are several."""
        several = len(self.metrics) > 1
        return [
            f"{f'{metric.title}: ' if several else ''}{sentence}"
            for metric in self.metrics
            for sentences in sentences_of
            for sentence in filter(None, sentences(metric))
        ]

    @property
    def legend(self) -> str:
        """The meaning of `*`, and what was tested; other signs take its place in figures."""
        return self.legend_of("*")

    def legend_of(self, sign: str) -> str:
        """Return which test, corrected for which comparisons, a sign is about, and on how much material."""
        if not self._is_compared:
            return f"95 % intervals over {self.metrics[0].units[1]}s: {self._subsets}; {self.material}."
        is_corrected = any(metric.is_corrected or metric.groups for metric in self.metrics)
        alone = " Each 95 % interval is by itself, not corrected." if is_corrected else ""
        return f"{sign} {self._significant}{alone}"

    @property
    def _significant(self) -> str:
        words = f"p < {SIGNIFICANT}: {self.test_settings}, two-sided"
        if (num_tests := self.metrics[0].num_tests) > 1:
            words += f", after Holm's correction for {num_tests} comparisons"
        if any(metric.groups for metric in self.metrics):
            words += ", in groups after Holm's correction for all groups and systems"
        if len(self.metrics) > 1:
            words += f"; p is not corrected for the {len(self.metrics)} metrics"
        return f"{words}; {self.material}."

    @property
    def material(self) -> str:
        """The number of segments, their references, documents and runs."""
        references = self.num_references
        with_references = "" if references == [1] else f" with {' to '.join(map(str, references))} references"
        documents = f" of {plural(self.num_documents, 'document')}" if self.num_documents else ""
        runs = [number for metric in self.metrics for number in metric.num_runs]
        means = f", each the mean of {' to '.join(map(str, sorted({min(runs), max(runs)})))} runs" if runs else ""
        return f"{plural(self.num_segments, 'segment')}{with_references}{documents}{means}"

    def is_mcnemar(self, metric: MetricResult) -> bool:
        """Return whether the test is McNemar's, since scores are 0 or 1."""
        return not self.documents and metric.is_binary

    @property
    def _subsets(self) -> str:
        """How the interval of one system was made."""
        exact = [metric.title for metric in self.metrics if metric.is_exact]
        if len(exact) == len(self.metrics):
            return "Clopper and Pearson's"
        of_exact = f"; of {listed(exact)} Clopper and Pearson's" if exact else ""
        return f"the means of random subsets of them, {count(self.num_resamples)} draws, seed {self.seed}{of_exact}"

    @property
    def methods(self) -> str:
        """A paragraph on how the systems were compared, for a paper."""
        baseline, *others = self.systems
        metrics = listed([metric.title for metric in self.metrics])
        num_tests = self.metrics[0].num_tests
        under_each = " under each metric" if len(self.metrics) > 1 else ""
        holm = f", with Holm's correction for {num_tests} tests{under_each}" if num_tests > 1 else ""
        notes = " ".join([*self.notes, *self.warnings, ""])
        signatures = "; ".join(f"{metric.title}: {metric.signature}" for metric in self.metrics)
        groups = max(sum(group.systems[-1].p is not None for group in metric.groups) for metric in self.metrics)
        corrected = ", each by itself, without a correction" if num_tests > 1 or groups else ""
        by_group = f" Tests within {plural(groups, 'group')} of segments were corrected together." if groups else ""
        software = f"All figures were computed with bertscore-onnx {__version__} ({signatures})."
        corpus = [metric.title for metric in self.metrics if metric.is_of_corpus]
        parts = f", by {listed(corpus)} those in the segments that each takes" if corpus else ""
        if not others:
            return f"We scored {baseline} by {metrics}. {self.legend} {notes}{software}"
        return (
            f"We compared {listed(others)} with {baseline} by {metrics} on {self.material}. Differences were tested "
            f"with a two-sided {self.test_settings}{holm}; 95 % intervals of differences hold those that swaps do not "
            f"reject{parts}{corrected}.{by_group} {notes}{software}"
        )

    @property
    def bibtex(self) -> str:
        """The BibTeX entries that the paragraph should cite."""
        names = {metric.computed_name for metric in self.metrics}
        uses_sacrebleu = any(metric.is_of_corpus for metric in self.metrics)
        entries = ((any(map(is_bertscore, names)), _BERTSCORE), (uses_sacrebleu, _SACREBLEU), (True, _SOFTWARE))
        return "\n\n".join(entry for is_cited, entry in entries if is_cited)


# What a paper cites.

_BERTSCORE = """\
@inproceedings{zhang-etal-2020-bertscore,
  title = {{BERTScore}: Evaluating Text Generation with {BERT}},
  author = {Zhang, Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and Artzi, Yoav},
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
