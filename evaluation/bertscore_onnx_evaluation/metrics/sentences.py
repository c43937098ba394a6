"""What an evaluation of metrics says in sentences: verdicts and notes."""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import NamedTuple

from bertscore_onnx.errors import plural
from bertscore_onnx_evaluation.metrics.agreement import (
    OF_OUTPUTS,
    OF_SYSTEMS,
    R_OF_OUTPUTS,
    LanguagePairResult,
    values_of,
)
from bertscore_onnx_evaluation.metrics.correlation import HUMAN_CONSTANT
from bertscore_onnx_evaluation.metrics.ranks import MeasureTests
from bertscore_onnx_evaluation.standing import Stand, relations
from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT
from bertscore_onnx_evaluation.table import Format, count, listed, number, p_value

write_p = p_value(3, SIGNIFICANT)
"""Writes a p-value of metrics."""


class Printed(NamedTuple):
    """How a measure that may rank metrics is printed."""

    title: str
    about: str
    write: Format
    legend: str


MEASURES = {
    "acc_eq": Printed(
        "acc*_eq",
        "outputs of a segment",
        number(3),
        "acc*_eq: share of pairs of outputs of a segment in the right order, or tied as by "
        "annotators",
    ),
    "spa": Printed("SPA", "systems", number(3), "SPA: soft pairwise accuracy of systems"),
    "pearson": Printed("r", "outputs", number(3, signed=True), "r: Pearson's, over all outputs"),
    "system_pearson": Printed(
        "r of systems", "systems", number(3, signed=True), "r of systems: Pearson's"
    ),
}


def verdict(values: Mapping[str, Mapping[str, float]], tests: Mapping[str, MeasureTests]) -> str:
    """Return in a sentence which metric agrees best by each measure.

    `values` are by measure, and then by metric.
    """
    sentence = ""
    previous_best = ""
    for name, of_metrics in values.items():
        if not of_metrics or is_unranked(name, tests):
            continue
        best, *rest = sorted(of_metrics, key=lambda metric: -of_metrics[metric])
        measure = MEASURES[name]
        facts = [f"{measure.title} {measure.write(of_metrics[best])}"]
        stands = {metric: Stand(tests[name].is_better(best, metric)) for metric in rest}
        facts += filter(None, [relations(stands)])
        facts += _relation_to_sentinels(best, tests[name], is_alone=not rest)
        clause = f"on {measure.about} ({'; '.join(facts)})"
        if not sentence:
            clause = f"agrees best {clause}" if rest else f"agrees {clause}"
        if best != previous_best:
            clause = f"{best} {clause}"
        beats = [tests[name].is_better(metric, previous_best) for metric in of_metrics]
        if sentence and name == "acc_eq" and any(beats):
            clause = f" but {clause}"
        elif sentence:
            clause = f" and {clause}"
        sentence += clause
        previous_best = best
    if not sentence:
        return ""
    return f"{sentence}."


def is_unranked(name: str, tests: Mapping[str, MeasureTests]) -> bool:
    """Return whether a measure is SPA of too few systems."""
    return name == "spa" and not tests[name].ranks


def _relation_to_sentinels(best: str, tests: MeasureTests, *, is_alone: bool) -> list[str]:
    """Return that the best metric is not better than a sentinel; of an only metric, that it is."""
    for test in tests.sentinels:
        if test.metric != best:
            continue
        if test.p_holm >= SIGNIFICANT:
            return [f"not significantly better than {test.sentinel}, which reads no meaning"]
        if is_alone:
            return ["better than every sentinel"]
    return []


def verdict_of(result: LanguagePairResult) -> str:
    """Return the verdict on a language pair, also on metrics the wrong way round."""
    values = {key: values_of(result.ranked, key) for key in result.ranked_by}
    sentence = verdict(values, result.tests) or _no_verdict(result)
    if not result.reversed:
        return sentence
    verb = "orders"
    if len(result.reversed) > 1:
        verb = "order"
    names = " ".join(map(quote, result.reversed))
    return (
        f"{sentence} {listed(result.reversed)} {verb} outputs the wrong way round: if lower scores "
        f"are better, give --lower-better {names}."
    )


def _no_verdict(result: LanguagePairResult) -> str:
    for metric in result.metrics:
        if metric.measures[R_OF_OUTPUTS].reason == HUMAN_CONSTANT:
            return "The human scores are all equal: nothing can be measured."
        if metric.name not in result.golds:
            return f"No metric is ranked: {metric.measures[OF_OUTPUTS].reason}."
    return "No metric is ranked."


# Notes, and what measures rest on.


def heading_of(result: LanguagePairResult) -> str:
    """Return what was judged, and what the measures that rank metrics were computed from."""
    systems = plural(len(result.systems), "system")
    segments = plural(result.segments, "segment")
    heading = f"{result.language_pair}: {systems}, {segments}"
    bases = []
    for key in result.ranked_by:
        measures = [metric.measure(key) for metric in result.metrics]
        measure = next(filter(None, measures))
        basis = f"{count(measure.n)} {MEASURES[key].about}"
        if measure.groups > 1:  # of pairs, in segments
            basis = f"{plural(measure.n, 'pair')} in {plural(measure.groups, 'segment')}"
            if key == OF_SYSTEMS and measure.groups < result.shared:
                basis += " or more"
        bases.append(f"{MEASURES[key].title} of {basis}")
    return "\n".join(filter(None, [heading, "; ".join(bases)]))


def notes_of(result: LanguagePairResult) -> list[str]:
    """Return what the table of a language pair does not show."""
    return [*_sentinel_notes(result), *_reasons_of_missing_values(result), *result.notes]


def _sentinel_notes(result: LanguagePairResult) -> Iterator[str]:
    """Yield for each measure which metrics are not significantly better than a sentinel."""
    for name, tests in result.tests.items():
        title = MEASURES[name].title
        not_better = [test for test in tests.sentinels if test.p_holm >= SIGNIFICANT]
        if not_better:
            metrics = [
                f"{test.metric} ({test.sentinel}, p {write_p(test.p_holm)})" for test in not_better
            ]
            yield f"{title}: not significantly better than a sentinel: {', '.join(metrics)}"
        elif tests.sentinels:
            metrics = [test.metric for test in tests.sentinels]
            yield f"{title}: significantly better than every sentinel: {', '.join(metrics)}"


def _reasons_of_missing_values(result: LanguagePairResult) -> list[str]:
    """Return why values of acc*_eq, SPA and a ranking r are missing, each reason once."""
    keys = [OF_SYSTEMS, OF_OUTPUTS]
    if R_OF_OUTPUTS in result.ranked_by:
        keys.append(R_OF_OUTPUTS)
    metrics: dict[tuple[str, str], list[str]] = {}  # by measure and reason
    for metric in result.metrics:
        for key in keys:
            measure = metric.measures[key]
            if measure.value is None:
                metrics.setdefault((key, measure.reason), []).append(metric.name)
    sentences = []
    for (key, reason), names in metrics.items():
        level = "segments"
        if key == OF_SYSTEMS:
            level = "systems"
        sentences.append(f"No {MEASURES[key].title} of {level} ({', '.join(names)}): {reason}")
    return sentences
