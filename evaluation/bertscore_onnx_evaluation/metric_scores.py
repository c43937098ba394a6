"""Metrics that systems are compared by.

These are BERTScore, BLEU, chrF and TER of sacreBLEU, and scores that were computed elsewhere.
`score_systems` scores texts, `given_metrics` takes given scores.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, meant, needs_extra
from bertscore_onnx.scoring.inputs import check_positive, collect_pairs
from bertscore_onnx.text.texts import Context
from bertscore_onnx_evaluation.metrics.correlation import Floats, mean_by_system
from bertscore_onnx_evaluation.systems.corpus_scores import (
    CorpusScores,
    SegmentMeans,
    SummedStatistics,
)

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

    from bertscore_onnx.scorer import BERTScorer

BERTSCORE = "bertscore"
SACREBLEU = {"bleu": "BLEU", "chrf": "CHRF", "ter": "TER"}
"""The other metrics, and sacreBLEU's classes for them."""
METRICS = (BERTSCORE, *SACREBLEU)
VALUES = ("P", "R", "F")
"""The numbers of BERTScore that a metric may be."""
LOWER_IS_BETTER = {"ter"}

SENTENCE_OPTIONS: Mapping[str, Mapping[str, Any]] = {"bleu": {"effective_order": True}}
"""Further options for single segments, as in sacreBLEU's `compat.py:sentence_bleu`."""

MAX_OPTION = 100
"""The largest number that an option of sacreBLEU may have.

It is far above all that make sense; larger ones take time and memory.
"""

TIE_TOLERANCE = 1e-6
"""Of BERTScore: in single precision the same pair in another batch may differ by less."""

References = Sequence[str | Sequence[str]]
"""For each segment a reference, or several."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricScores:
    """A metric's scores of systems and of their segments."""

    system: Floats
    """Scores of whole systems, (systems,), NaN where there is none."""
    segment: Floats
    """(systems, segments), likewise."""
    signature: str = ""
    """How they were made, if known.

    An example is `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`.
    """
    lower_is_better: bool = False
    """True for an error rate such as TER."""
    corpus: CorpusScores | None = None
    """For the paired tests, which score resamples."""
    tie_tolerance: float = 0.0
    """Two segments tie if their scores differ by no more than this."""
    score_range: tuple[float, float] | None = None
    """The lowest and the highest score that a segment can have; None if that is not known.

    With the metrics of sacreBLEU it is that of a corpus.
    """
    best_reference: NDArray[np.int64] | None = None
    """The position of the reference that each text matches best, (systems, segments).

    None if the metric has no such reference.
    """

    @property
    def negated(self) -> "MetricScores":
        """The scores with higher ones better.

        Scores of which lower ones are better are negated, which the signature states.
        """
        if not self.lower_is_better:
            return self
        signature = f"{self.signature}|negative:yes".lstrip("|")
        return replace(
            self,
            system=-self.system,
            segment=-self.segment,
            signature=signature,
            lower_is_better=False,
            corpus=None,
        )


def score_systems(
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]],
    candidates: Sequence[Sequence[str | None]],
    references: Sequence[References],
    *,
    scorer: "BERTScorer | None" = None,
    contexts: Sequence[Context] | None = None,
    verbose: bool | None = False,
    names: Sequence[str] = (),
) -> dict[str, MetricScores]:
    """Score systems and their segments by each metric.

    BERTScore encodes each reference once for all systems.

    Args:
        metrics: `bertscore`, `bertscore,value=P` or `bertscore,value=R`, `bleu`, `chrf` or `ter`,
            the last three perhaps with options of sacreBLEU's class: `["bleu,smooth_method=none"]`,
            or `{"bleu": {"smooth_method": "none"}}`.
        candidates: the outputs by system and segment; None where a system has no output.
        references: the references of each output, by system and segment;
            `[references] * len(candidates)` for those that systems share.
        scorer: for `bertscore`: a scorer of one layer.
        contexts: for `bertscore`: the context of each segment, such as `preceding_sentences`.
        verbose: show a progress bar of `bertscore` on standard error; None for one on a terminal,
            after 2 seconds.
        names: the systems in warnings.

    Returns:
        By metric its scores. A system's score is that of its outputs as one corpus with the metrics
        of sacreBLEU, and the mean over its segments with BERTScore.

    Raises:
        InputError: a metric or an option is unknown, the scorer is missing or scores every layer,
            or texts and references do not pair up.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    options = metric_options(metrics)
    lengths = {len(texts) for texts in (*candidates, *references)}
    if not candidates or len(candidates) != len(references) or len(lengths) > 1:
        raise InputError(
            f"There are texts of {len(candidates)} systems and references of {len(references)}, "
            f"of {sorted(lengths)} segments; expected one system or more, and as many texts as "
            "references of each."
        )
    values = {}
    scores = {}
    for name, metric_settings in options.items():
        if is_bertscore(name):
            values[name] = metric_settings["value"]
        else:
            scores[name] = _sacrebleu(name, candidates, references, metric_settings)
    # BERTScore is slow: it comes last, after all errors of other metrics.
    if values:
        scores |= _bertscore(candidates, references, scorer, contexts, values, verbose, names)
    return {name: scores[name] for name in options}


def metric_options(
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]],
) -> Mapping[str, Mapping[str, Any]]:
    """Return the options of each metric.

    InputError is raised for an unknown metric, with the nearest name.
    """
    requested: Mapping[str, Mapping[str, Any]]
    if isinstance(metrics, Mapping):
        requested = metrics
    elif isinstance(metrics, str):
        requested = specified_metrics([metrics])
    else:
        requested = specified_metrics(metrics)

    options: dict[str, Mapping[str, Any]] = {}
    for requested_name, requested_settings in requested.items():
        name, settings = _named_metric(requested_name, requested_settings)
        if name in options:
            raise InputError(f"The metric {name!r} is given twice; expected once.")
        options[name] = settings
    if not options:
        raise InputError("There are no metrics. Give at least one, such as bertscore.")
    for name in options:
        _check_name(name)
    return options


def _named_metric(name: str, settings: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a metric in the results, and its options."""
    metric, _, value = str(name).partition(",value=")
    if metric.lower() != BERTSCORE:
        return str(name).lower(), settings
    settings_of_name = {"value": value} if value else {}
    checked = _checked_value({**settings_of_name, **settings})
    if checked["value"] == "F":
        return BERTSCORE, checked
    return f"{BERTSCORE},value={checked['value']}", checked


def _check_name(name: str) -> None:
    """Raise InputError for an unknown metric."""
    if name in ("chrf++", "chrfpp"):
        raise InputError(
            f"{name!r} is the metric chrf with its option word_order=2. Give chrf,word_order=2 "
            '(--metric chrf,word_order=2), in Python {"chrf": {"word_order": 2}}.'
        )
    if name not in METRICS and not is_bertscore(name):
        raise InputError(
            f"There is no metric {name!r} here.{meant(name, METRICS)} Choose one of "
            f"{', '.join(METRICS)}, or give its scores (",
            Argument("scores"),
            ").",
        )


def specified_metrics(specs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the metrics of specs, with their options.

    A spec is such as `bleu,tokenize=zh`.
    """
    metrics: dict[str, dict[str, Any]] = {}
    for spec in specs:
        name, *items = str(spec).split(",")
        name = name.strip().lower()
        settings: Mapping[str, Any] = _fields(items)
        if name == BERTSCORE:
            in_upper_case = {field: value.upper() for field, value in settings.items()}
            name, settings = _named_metric(name, in_upper_case)
        if name in metrics:
            raise InputError(
                f"{spec!r} is the metric {name!r} a second time; a call scores a metric with one "
                "set of options. Score the other set in a call of its own."
            )
        if len(settings) < len(items) or not all(settings.values()):
            expected = "NAME,FIELD=VALUE with each field once, such as bleu,tokenize=zh"
            raise InputError(f"{spec!r} is not of the form {expected}.")
        metrics[name] = {field: _literal(value) for field, value in settings.items()}
    return metrics


def _fields(items: Iterable[str]) -> dict[str, str]:
    """Return the fields of FIELD=VALUE; the last value of a repeated field."""
    fields = {}
    for item in items:
        field, _, value = item.strip().partition("=")
        fields[field] = value
    return fields


def _literal(text: str) -> bool | int | float | str:
    """Return the number or the truth value that a text spells, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


# BERTScore.


def is_bertscore(name: str) -> bool:
    """Return whether a metric is the F, the P or the R of BERTScore."""
    return name.partition(",")[0] == BERTSCORE


def _checked_value(options: Mapping[str, Any]) -> dict[str, str]:
    value = options.get("value", "F")
    unknown = [name for name in options if name != "value"]
    if unknown or value not in VALUES:
        shown = ", ".join(unknown) or f"value={value}"
        raise InputError(
            "The metric bertscore has the value P, R or F, and no other options; it was given "
            f"{shown}. Give settings to the scorer."
        )
    return {"value": value}


def _bertscore(
    candidates: Sequence[Sequence[str | None]],
    references: Sequence[References],
    scorer: "BERTScorer | None",
    contexts: Sequence[Context] | None,
    values: Mapping[str, str],
    verbose: bool | None,
    names: Sequence[str],
) -> dict[str, MetricScores]:
    """Score once, and return the metrics whose names have these values.

    The values are P, R or F.
    """
    scorer = _check_scorer(scorer)
    is_output = []
    for outputs in candidates:
        is_output.append([text is not None for text in outputs])
    is_scored = np.array(is_output).T  # (segments, systems)

    # By segment, since pairs with one reference are best side by side.
    places = np.argwhere(is_scored).tolist()
    texts: list[Any] = []
    text_references: list[Any] = []
    for segment, system in places:
        texts.append(candidates[system][segment])
        text_references.append(_single_or_all(references[system][segment]))
    text_contexts = None
    if contexts is not None:
        text_contexts = [contexts[segment] or None for segment, _ in places]
    pairs = collect_pairs(texts, text_references, text_contexts)
    scores, stats = scorer.score_pairs(pairs, verbose=verbose)
    stats.warn(scorer.max_length, stacklevel=4, empty_texts=_empty_texts(candidates, names))

    best_reference = np.zeros(is_scored.T.shape, dtype=np.int64)  # (systems, segments)
    best_reference.T[is_scored] = scores.best_reference
    signature = str(scores.signature)
    metrics = {}
    for name, value in values.items():
        segment_scores = _no_scores(candidates)
        segment_scores.T[is_scored] = getattr(scores, value)
        system_scores = mean_by_system(segment_scores)
        # Resamples need the scores of all segments.
        corpus = SegmentMeans(segment_scores) if is_scored.all() else None
        metric = MetricScores(
            system_scores,
            segment_scores,
            f"{signature}|value:{value}",
            corpus=corpus,
            tie_tolerance=TIE_TOLERANCE,
            score_range=(getattr(scorer.rescaling.worst, value).item(), 1.0),
        )
        if value == "F":
            metric = replace(metric, signature=signature, best_reference=best_reference)
        metrics[name] = metric
    return metrics


def _check_scorer(scorer: "BERTScorer | None") -> "BERTScorer":
    """Return the scorer; raise InputError unless it scores one layer."""
    if scorer is None:
        needed = "a scorer, such as BERTScorer(MODEL)"
        raise InputError(f"The metric bertscore needs {needed}. Give it as `scorer`.")
    if scorer.manifest.all_layers:
        raise InputError(
            "Systems are scored by one layer, and this scorer has all of them. Name the layer as ",
            Argument("num_layers"),
            ", or export a bundle without --all-layers.",
        )
    return scorer


def _single_or_all(references: str | Sequence[str]) -> str | Sequence[str]:
    """Return the only reference as a text, or all of several."""
    if isinstance(references, str) or len(references) != 1:
        return references
    return references[0]


def _empty_texts(candidates: Sequence[Sequence[str | None]], names: Sequence[str]) -> str:
    """Return how many texts of each system are empty, such as `2 of A, 1 of B`."""
    if not names:
        return ""
    counts: Counter[str] = Counter()
    for name, texts in zip(names, candidates, strict=True):
        counts[name] += sum(text is not None and not text.strip() for text in texts)
    return ", ".join(f"{number} of {name}" for name, number in counts.items() if number)


def means_of_runs(metric: MetricScores, rows: Sequence[Sequence[int]]) -> MetricScores:
    """Return the scores of systems whose runs are rows of a metric.

    The score of a segment is the mean of its runs.
    """
    corpus = None if metric.corpus is None else metric.corpus.pooled(rows)
    scores = np.asarray(metric.segment)
    segment = np.stack([scores[list(runs)].mean(axis=0) for runs in rows])
    first_runs = [runs[0] for runs in rows]
    system = mean_by_system(segment) if corpus is None else corpus.observed()
    best_reference = metric.best_reference
    if best_reference is not None:
        best_reference = best_reference[first_runs]
    return replace(
        metric,
        system=system,
        segment=segment,
        corpus=corpus,
        best_reference=best_reference,
    )


def preceding_sentences(
    references: Iterable[Sequence[str]], documents: Iterable[Hashable], number: int
) -> list[list[str]]:
    """Return up to this many sentences before each segment in its document.

    The sentences are the first references of the segments. Doc-BERTScore takes two: Vernikos et
    al., WMT 2022.

    Args:
        references: for each segment its references, in the order of the documents; none where
            there is no text.
        documents: the document of each segment.
        number: the most sentences, 1 or more.
    """
    check_positive("number", number)
    before: dict[Hashable, deque[str]] = {}
    preceding = []
    for texts, document in zip(references, documents, strict=True):
        sentences = before.setdefault(document, deque(maxlen=number))
        preceding.append(list(sentences))
        sentences.extend(texts[:1])
    return preceding


# BLEU, chrF and TER by sacreBLEU itself, over statistics that are taken from each segment once.
# This is the one place that uses what sacreBLEU 2 keeps private: `_extract_corpus_statistics` and
# `_compute_score_from_stats` (`metrics/base.py`), on which its own `significance.py` stands.


def _sacrebleu(
    name: str,
    candidates: Sequence[Sequence[str | None]],
    references: Sequence[References],
    options: Mapping[str, Any],
) -> MetricScores:
    """Score systems with equal references together."""
    groups: dict[References, list[int]] = {}
    for system, segments in enumerate(references):
        key: list[str | Sequence[str]] = []
        for segment in segments:
            key.append(segment if isinstance(segment, str) else tuple(segment))
        groups.setdefault(tuple(key), []).append(system)

    system_scores = np.full(len(candidates), np.nan)
    segment_scores = _no_scores(candidates)
    scored = MetricScores(system_scores, segment_scores)
    for shared, systems in groups.items():
        rows = [row for row, reference in enumerate(shared) if reference]
        if not rows:
            continue
        texts = []
        for system in systems:
            outputs = candidates[system]
            texts.append([outputs[row] or "" for row in rows])
        scored = corpus_metric(name, texts, [shared[row] for row in rows], **options)
        if len(systems) == len(candidates) and len(rows) == len(shared):
            return scored
        system_scores[systems] = scored.system
        segment_scores[np.ix_(systems, rows)] = scored.segment
    # Resamples need the scores of all segments.
    return replace(scored, system=system_scores, segment=segment_scores, corpus=None)


def corpus_metric(
    name: str, candidates: Sequence[Sequence[str]], references: References, **options: Any
) -> MetricScores:
    """Score systems, and every segment alone, by a metric of sacreBLEU.

    The options are those of its class. Candidates are the texts of each system, and there are one
    or more references for each segment. Raises InputError, or MissingExtraError without sacreBLEU.
    """
    _check_texts(candidates, references)
    lists = []
    for reference in references:
        lists.append([reference] if isinstance(reference, str) else reference)
    metric = sacrebleu_metric(name, options | {"references": list(zip_longest(*lists))})
    extracted = [metric._extract_corpus_statistics(texts, None) for texts in candidates]
    statistics = np.array(extracted, dtype=np.float64)  # (systems, segments, statistics)

    # The metric of sentences gets no references, so it cannot count them.
    sentence_metric = sacrebleu_metric(name, {**SENTENCE_OPTIONS.get(name, {}), **options})
    sentence_metric.num_refs = metric.num_refs
    sentence_score = _score_of_sums(sentence_metric)
    lower_is_better = name in LOWER_IS_BETTER
    corpus = SummedStatistics(statistics, _score_of_sums(metric), lower_is_better=lower_is_better)
    system_scores = corpus.observed()
    segment_scores = []
    for system_statistics in statistics:
        segment_scores.append([sentence_score(sums) for sums in system_statistics])
    return MetricScores(
        system_scores,
        np.array(segment_scores),
        str(metric.get_signature()),
        lower_is_better=corpus.lower_is_better,
        corpus=corpus,
        score_range=(0.0, 100.0),
    )


def sacrebleu_metric(name: str, options: Mapping[str, Any]) -> "Metric":
    """Return the metric of sacreBLEU with these options.

    InputError is raised unless sacreBLEU takes them.
    """
    with needs_extra("evaluation", "Scoring with BLEU, chrF or TER"):
        from sacrebleu import metrics
        from sacrebleu.metrics.bleu import BLEU
    class_name = SACREBLEU[name]
    kind = getattr(metrics, class_name)
    _check_options(kind, options)
    try:
        metric: Metric = kind(**options)
    except (TypeError, KeyError, AssertionError) as error:
        message = f"sacreBLEU does not take these options for {class_name}: {error}."
        if "tokenize" in options:
            message += f" Its tokenizers are {', '.join(BLEU.TOKENIZERS)}."
        raise InputError(message) from error
    # A tokenizer lacks its packages, or cannot be downloaded.
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"sacreBLEU cannot load what these options need for {class_name}: {reason} Make that "
            "available, or choose other options."
        ) from error
    return metric


def _check_options(kind: type["Metric"], options: Mapping[str, Any]) -> None:
    """Raise InputError for an option that the class lacks, or a value of another type or size."""
    hints = get_type_hints(kind.__init__)
    hints.pop("return", None)
    for name, value in options.items():
        if name not in hints:
            choice = ", ".join(hint for hint in hints if hint != "references")
            unknown = f"the option {name!r} for {kind.__name__}"
            raise InputError(f"sacreBLEU does not take {unknown}. Its options are {choice}.")
        types = {*get_args(hints[name]), hints[name]}
        if types & {int, float}:
            is_valid = type(value) in types | {int} and 0 <= value <= MAX_OPTION
            number = "number" if float in types else "whole number"
            expected = f"a {number} from 0 to {MAX_OPTION}"
        elif types & {bool, str}:
            is_valid = type(value) in types
            expected = "true or false" if bool in types else "a name"
        else:
            continue
        is_default = value is None and type(None) in types
        if not is_valid and not is_default:
            raise InputError(f"{name} of {kind.__name__} is {value!r}; expected {expected}.")


def _score_of_sums(metric: "Metric") -> Callable[[NDArray[np.floating]], float]:
    """Return the function from sums, (statistics,), to the metric's score."""
    compute: Callable[[NDArray[np.floating]], Any]
    compute = metric._compute_score_from_stats  # type: ignore[assignment]

    def score(sums: NDArray[np.floating]) -> float:
        # A copy, since BLEU with smoothing add-k changes its argument.
        return float(compute(sums.copy()).score)

    return score


def _check_texts(candidates: Sequence[Sequence[str]], references: References) -> None:
    """Raise InputError unless all are texts.

    Lists of one reference or more are texts too.
    """
    for system, texts in enumerate(candidates):
        for segment, text in enumerate(texts):
            if not isinstance(text, str):
                place = f"segment {segment}, both counted from 0"
                raise InputError(f"System {system} has {text!r} for {place}: not a text.")
    for segment, reference in enumerate(references):
        if not _is_reference(reference):
            raise InputError(
                f"Segment {segment}, counted from 0, has {reference!r} as its references. Give a "
                "text, or at least one in a list."
            )


def _is_reference(reference: str | Sequence[str]) -> bool:
    """Return whether it is a text, or a list of one text or more."""
    if isinstance(reference, str):
        return True
    return bool(reference) and all(isinstance(text, str) for text in reference)


def _no_scores(candidates: Sequence[Sequence[object]]) -> Floats:
    return np.full((len(candidates), len(candidates[0])), np.nan)


# Scores that were computed elsewhere, such as by COMET, an LLM judge or people.


def given_metrics(
    scores: Mapping[str, Sequence[Sequence[Sequence[float]]]],
    lower_is_better: Collection[str] = (),
    computed: Collection[str] = (),
    *,
    higher_is_better: Collection[str] = (),
) -> dict[str, MetricScores]:
    """Return metrics of given scores by name, system, run and segment.

    InputError is raised if a direction is for another metric, or
    a metric has the name of a computed metric.
    """
    for name in (*lower_is_better, *higher_is_better):
        if name not in scores:
            available = ", ".join(map(repr, scores)) or "none"
            direction = "lower" if name in lower_is_better else "higher"
            whose = f"{name!r}, whose {direction} scores are better"
            raise InputError(f"There are no scores of {whose}; only of {available}.")
        if name in lower_is_better and name in higher_is_better:
            clash = f"Both lower and higher scores of {name!r} were said to be better"
            raise InputError(f"{clash}; expected one of them.")
    metrics = {}
    for name, systems in scores.items():
        if name.lower() in computed:
            message = f"The metric {name!r} is computed here too. Give these scores another name."
            raise InputError(message)
        segment_scores = []
        for runs in systems:
            # The order in memory decides the last bit of a mean.
            values = runs if len(runs) > 1 else runs[0]
            segment_scores.append(np.array(values, dtype=np.float64, order="F"))
        corpus = SegmentMeans(segment_scores, lower_is_better=name in lower_is_better)
        metrics[name] = MetricScores(
            corpus.observed(),
            corpus.segment_scores,
            f"{name}|scores:given",
            lower_is_better=corpus.lower_is_better,
            corpus=corpus,
        )
    return metrics
