"""The metrics that systems are compared by: BERTScore, and BLEU, chrF and TER of sacreBLEU."""

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
from bertscore_onnx_evaluation.systems.corpus_scores import CorpusScores, SegmentMeans, SummedStatistics
from bertscore_onnx_evaluation.systems.join import scores_of

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
"""The largest number that an option of sacreBLEU may have, far above all that make sense: it takes time and memory."""

TIE_TOLERANCE = 1e-6
"""Of BERTScore: in single precision the same pair in another batch may differ by less."""

References = Sequence[str | Sequence[str]]
"""For each segment a reference, or several."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricScores:
    """A metric's scores of systems and of their segments."""

    system: Floats | None
    """Scores of whole systems, (systems,), NaN where there is none; None without any."""
    segment: Floats | None
    """(systems, segments), likewise."""
    signature: str = ""
    """How they were made, if known, such as `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`."""
    base_name: str = ""
    """The metric's name in all language pairs, if it has another in one, such as BLEU of BLEU-refB."""
    lower_is_better: bool = False
    """True for an error rate such as TER."""
    corpus: CorpusScores | None = None
    """For the paired tests, which score resamples."""
    tie_tolerance: float = 0.0
    """Two segments tie if their scores differ by no more than this."""
    worst: float | None = None
    """The worst score that a segment can have, with the metrics of sacreBLEU a corpus; None if that is not known."""
    best_reference: NDArray[np.int64] | None = None
    """The position of the reference that each text matches best, (systems, segments); None if the metric has none."""

    @property
    def negated(self) -> "MetricScores":
        """The scores with higher ones better: negated if lower ones are, which the signature states."""
        if not self.lower_is_better:
            return self
        system, segment = (None if scores is None else -scores for scores in (self.system, self.segment))
        signature = f"{self.signature}|negative:yes".lstrip("|")
        return replace(self, system=system, segment=segment, signature=signature, lower_is_better=False, corpus=None)


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
    """Score systems and their segments by each metric; BERTScore encodes each reference once for all systems.

    Args:
        metrics: `bertscore`, `bertscore,value=P` or `bertscore,value=R`, `bleu`, `chrf` or `ter`, the last three
            perhaps with options of sacreBLEU's class: `["bleu,smooth_method=none"]`, or
            `{"bleu": {"smooth_method": "none"}}`.
        candidates: the outputs by system and segment; None where a system has no output.
        references: the references of each output, by system and segment; `[references] * len(candidates)` for those
            that systems share.
        scorer: for `bertscore`: a scorer of one layer.
        contexts: for `bertscore`: the context of each segment, such as `preceding_sentences`.
        verbose: show a progress bar of `bertscore` on standard error; None for one on a terminal, after 2 seconds.
        names: the systems in warnings.

    Returns:
        By metric its scores. A system's score is that of its outputs as one corpus with the metrics of sacreBLEU, and
        the mean over its segments with BERTScore.

    Raises:
        InputError: a metric or an option is unknown, the scorer is missing or scores every layer, or texts and
            references do not pair up.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    options = metric_options(metrics)
    lengths = {len(texts) for texts in (*candidates, *references)}
    if not candidates or len(candidates) != len(references) or len(lengths) > 1:
        raise InputError(
            f"There are texts of {len(candidates)} systems and references of {len(references)}, of {sorted(lengths)} "
            "segments; expected one system or more, and as many texts as references of each."
        )
    values = {name: metric_settings["value"] for name, metric_settings in options.items() if is_bertscore(name)}
    others = {name: metric_settings for name, metric_settings in options.items() if name not in values}
    scores = {name: _sacrebleu(name, candidates, references, others[name]) for name in others}
    if values:  # the slow ones last, after all errors of others
        scores |= _bertscore(candidates, references, scorer, contexts, values, verbose, names)
    return {name: scores[name] for name in options}


def metric_options(metrics: Iterable[str] | Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Return the options of each metric; raise InputError for an unknown one, with the nearest name."""
    names = [metrics] if isinstance(metrics, str) else metrics
    requested = names if isinstance(names, Mapping) else specified_metrics(names)
    options: dict[str, Mapping[str, Any]] = {}
    for name, metric_settings in requested.items():
        metric, _, value = str(name).partition(",value=")
        is_own = metric.lower() == BERTSCORE
        if is_own:
            metric_settings = _checked_value({**({"value": value} if value else {}), **metric_settings})
            name = BERTSCORE if metric_settings["value"] == "F" else f"{BERTSCORE},value={metric_settings['value']}"
        name = name if is_own else str(name).lower()
        if name in options:
            raise InputError(f"The metric {name!r} is given twice; expected once.")
        options[name] = metric_settings
    if not options:
        raise InputError("There are no metrics. Give at least one, such as bertscore.")
    for name in options:
        if name in ("chrf++", "chrfpp"):
            raise InputError(
                f"{name!r} is the metric chrf with its option word_order=2. Give chrf,word_order=2 (--metric "
                'chrf,word_order=2), in Python {"chrf": {"word_order": 2}}.'
            )
        if name not in METRICS and not is_bertscore(name):
            raise InputError(
                f"There is no metric {name!r} here.{meant(name, METRICS)} Choose one of {', '.join(METRICS)}, or give "
                "its scores (",
                Argument("scores"),
                ").",
            )
    return options


def specified_metrics(specs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the metrics of specs, such as `bleu,tokenize=zh`, with their options."""
    metrics: dict[str, dict[str, Any]] = {}
    for spec in specs:
        name, *items = str(spec).split(",")
        name = name.strip().lower()
        settings: Mapping[str, Any] = dict(item.strip().partition("=")[::2] for item in items)
        if name == BERTSCORE:
            in_upper_case = {field: value.upper() for field, value in settings.items()}
            [(name, settings)] = metric_options({name: in_upper_case}).items()
        if name in metrics or len(settings) < len(items) or not all(settings.values()):
            raise InputError(
                f"{spec!r} is not of the form NAME,FIELD=VALUE with each of them once, such as bleu,tokenize=zh."
            )
        metrics[name] = {field: _literal(value) for field, value in settings.items()}
    return metrics


def _literal(text: str) -> bool | int | float | str:
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
    others = [name for name in options if name != "value"]
    if others or value not in VALUES:
        shown = ", ".join(others) or f"value={value}"
        raise InputError(
            f"The metric bertscore has the value P, R or F, and no other options; it was given {shown}. Give settings "
            "to the scorer."
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
    """Score once, and return the metrics whose names have these values: P, R or F."""
    if scorer is None:
        raise InputError("The metric bertscore needs a scorer, such as BERTScorer(MODEL). Give it as `scorer`.")
    if scorer.manifest.all_layers:
        raise InputError(
            "Systems are scored by one layer, and this scorer has all of them. Name the layer as ",
            Argument("num_layers"),
            ", or export a bundle without --all-layers.",
        )
    is_scored = np.array([[text is not None for text in outputs] for outputs in candidates]).T  # (segments, systems)
    places = np.argwhere(is_scored).tolist()  # pairs with one reference side by side
    texts: list[Any] = [candidates[system][segment] for segment, system in places]
    several = [references[system][segment] for segment, system in places]
    text_references: list[Any] = [each if isinstance(each, str) or len(each) != 1 else each[0] for each in several]
    text_contexts = None if contexts is None else [contexts[segment] or None for segment, _ in places]
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
        metrics[name] = MetricScores(
            mean_by_system(segment_scores),
            segment_scores,
            f"{signature}|value:{value}" if value != "F" else signature,
            corpus=SegmentMeans(segment_scores) if is_scored.all() else None,
            tie_tolerance=TIE_TOLERANCE,
            worst=getattr(scorer.rescaling.worst, value).item(),
            best_reference=best_reference if value == "F" else None,
        )
    return metrics


def _empty_texts(candidates: Sequence[Sequence[str | None]], names: Sequence[str]) -> str:
    """Return how many texts of which systems are empty, such as `2 of A, 1 of B`."""
    if not names:
        return ""
    counts: Counter[str] = Counter()
    for name, texts in zip(names, candidates, strict=True):
        counts[name] += sum(text is not None and not text.strip() for text in texts)
    return ", ".join(f"{number} of {name}" for name, number in counts.items() if number)


def means_of_runs(metric: MetricScores, rows: Sequence[Sequence[int]]) -> MetricScores:
    """Return the scores of systems whose runs are rows of a metric: means by segment."""
    corpus = metric.corpus and metric.corpus.pooled(rows)
    segment = np.stack([np.asarray(metric.segment)[list(runs)].mean(axis=0) for runs in rows])
    first = [runs[0] for runs in rows]
    return replace(
        metric,
        system=mean_by_system(segment) if corpus is None else corpus.observed(),
        segment=segment,
        corpus=corpus,
        best_reference=None if metric.best_reference is None else metric.best_reference[first],
    )


def preceding_sentences(
    references: Iterable[Sequence[str]], documents: Iterable[Hashable], number: int
) -> list[list[str]]:
    """Return up to this many sentences before each segment in its document, by the first of its references.

    Doc-BERTScore takes two: Vernikos et al., WMT 2022.

    Args:
        references: for each segment its references, in the order of the documents; none where there is no text.
        documents: the document of each segment.
        number: the most sentences, 1 or more.
    """
    check_positive("number", number)
    before: dict[Hashable, deque[str]] = {}
    preceding = []
    for texts, document in zip(references, documents, strict=True):
        sentences = before.setdefault(document, deque(maxlen=number))
        preceding.append([*sentences])
        sentences.extend(texts[:1])
    return preceding


# BLEU, chrF and TER by sacreBLEU itself, over statistics that are taken from each segment once. This is the one place
# that uses what sacreBLEU 2 keeps private: `_extract_corpus_statistics` and `_compute_score_from_stats`
# (`metrics/base.py`), on which its own `significance.py` stands.


def _sacrebleu(
    name: str, candidates: Sequence[Sequence[str | None]], references: Sequence[References], options: Mapping[str, Any]
) -> MetricScores:
    """Score systems with equal references together."""
    groups: dict[References, list[int]] = {}
    for system, segments in enumerate(references):
        key = tuple(segment if isinstance(segment, str) else tuple(segment) for segment in segments)
        groups.setdefault(key, []).append(system)
    system_scores, segment_scores = np.full(len(candidates), np.nan), _no_scores(candidates)
    scored = MetricScores(system_scores, segment_scores)
    for shared, systems in groups.items():
        rows = [row for row, reference in enumerate(shared) if reference]
        if not rows:
            continue
        texts = [[candidates[system][row] or "" for row in rows] for system in systems]
        scored = corpus_metric(name, texts, [shared[row] for row in rows], **options)
        if len(systems) == len(candidates) and len(rows) == len(shared):
            return scored
        system_scores[systems], segment_scores[np.ix_(systems, rows)] = scored.system, scored.segment
    return replace(scored, system=system_scores, segment=segment_scores, corpus=None)


def corpus_metric(
    name: str, candidates: Sequence[Sequence[str]], references: References, **options: Any
) -> MetricScores:
    """Score systems, and every segment alone, by a metric of sacreBLEU with options of its class.

    Candidates are the texts of each system, and there are one or more references for each segment. Raises InputError,
    or MissingExtraError without sacreBLEU.
    """
    _check_texts(candidates, references)
    lists = [[reference] if isinstance(reference, str) else reference for reference in references]
    metric = sacrebleu_metric(name, options | {"references": list(zip_longest(*lists))})
    statistics = np.array([metric._extract_corpus_statistics(texts, None) for texts in candidates], dtype=np.float64)
    sentence_metric = sacrebleu_metric(name, {**SENTENCE_OPTIONS.get(name, {}), **options})
    sentence_metric.num_refs = metric.num_refs  # which it has no references to count
    sentence_score = _score_of_sums(sentence_metric)
    lower_is_better = name in LOWER_IS_BETTER
    corpus = SummedStatistics(statistics, _score_of_sums(metric), lower_is_better=lower_is_better)
    return MetricScores(
        corpus.observed(),
        np.array([[sentence_score(segment) for segment in system] for system in statistics]),
        str(metric.get_signature()),
        lower_is_better=corpus.lower_is_better,
        corpus=corpus,
        worst=100.0 if lower_is_better else 0.0,
    )


def sacrebleu_metric(name: str, options: Mapping[str, Any]) -> "Metric":
    """Return the metric of sacreBLEU with these options; raise InputError unless it takes them."""
    with needs_extra("evaluation", "Scoring with BLEU, chrF or TER"):
        from sacrebleu import metrics
        from sacrebleu.metrics.bleu import BLEU
    kind = getattr(metrics, SACREBLEU[name])
    _check_options(kind, options)
    try:
        metric: Metric = kind(**options)
    except (TypeError, KeyError, AssertionError) as error:
        tokenizers = f" Its tokenizers are {', '.join(BLEU.TOKENIZERS)}." if "tokenize" in options else ""
        raise InputError(
            f"sacreBLEU does not take these options for {SACREBLEU[name]}: {error}.{tokenizers}"
        ) from error
    except (ImportError, OSError, RuntimeError) as error:  # a tokenizer lacks its packages, or cannot be downloaded
        reason = " ".join(str(error).split())
        raise InputError(
            f"sacreBLEU cannot load what these options need for {SACREBLEU[name]}: {reason} Make that available, or "
            "choose other options."
        ) from error
    return metric


def _check_options(kind: type["Metric"], options: Mapping[str, Any]) -> None:
    """Raise InputError for an option that the class does not have, or a value of another type or size."""
    hints = {name: hint for name, hint in get_type_hints(kind.__init__).items() if name != "return"}
    for name, value in options.items():
        if name not in hints:
            choice = ", ".join(name for name in hints if name != "references")
            raise InputError(
                f"sacreBLEU does not take the option {name!r} for {kind.__name__}. Its options are {choice}."
            )
        types = {*get_args(hints[name]), hints[name]}
        if types & {int, float}:
            is_in_range = type(value) in types | {int} and 0 <= value <= MAX_OPTION
            expected = f"a {'' if float in types else 'whole '}number from 0 to {MAX_OPTION}"
        elif types & {bool, str}:
            is_in_range, expected = type(value) in types, "true or false" if bool in types else "a name"
        else:
            continue
        if not (is_in_range or (value is None and type(None) in types)):
            raise InputError(f"{name} of {kind.__name__} is {value!r}; expected {expected}.")


def _score_of_sums(metric: "Metric") -> Callable[[NDArray[np.floating]], float]:
    """Return the function from sums, (statistics,), to the metric's score."""
    compute: Callable[[NDArray[np.floating]], Any] = metric._compute_score_from_stats  # type: ignore[assignment]

    def score(sums: NDArray[np.floating]) -> float:
        return float(compute(sums.copy()).score)  # BLEU with smoothing add-k changes its argument

    return score


def _check_texts(candidates: Sequence[Sequence[str]], references: References) -> None:
    """Raise InputError unless all are texts, or lists of one reference or more."""
    for system, texts in enumerate(candidates):
        for segment, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(
                    f"System {system} has {text!r} for segment {segment}, both counted from 0: not a text."
                )
    for segment, reference in enumerate(references):
        if not (isinstance(reference, str) or (reference and all(isinstance(text, str) for text in reference))):
            raise InputError(
                f"Segment {segment}, counted from 0, has {reference!r} as its references. Give a text, or at least one "
                "in a list."
            )


def _no_scores(candidates: Sequence[Sequence[object]]) -> Floats:
    return np.full((len(candidates), len(candidates[0])), np.nan)


# Scores that were computed elsewhere, such as by COMET, an LLM judge or people.


def given_metrics(
    scores: Mapping[str, Sequence[Sequence[float | tuple[float, ...]]]],
    lower_is_better: Collection[str] = (),
    computed: Collection[str] = (),
    *,
    higher_is_better: Collection[str] = (),
) -> dict[str, MetricScores]:
    """Return metrics of given segment scores, (systems, segments), by their names; a tuple holds the scores of runs.

    InputError is raised if a direction is for another metric, or a metric has the name of a computed metric.
    """
    for name in (*lower_is_better, *higher_is_better):
        if name not in scores:
            available = ", ".join(map(repr, scores)) or "none"
            direction = "lower" if name in lower_is_better else "higher"
            raise InputError(
                f"There are no scores of {name!r}, whose {direction} scores are better; only of {available}."
            )
        if name in lower_is_better and name in higher_is_better:
            raise InputError(f"Both lower and higher scores of {name!r} were said to be better; expected one of them.")
    metrics = {}
    for name, rows in scores.items():
        if name.lower() in computed:
            raise InputError(f"The metric {name!r} is computed here too. Give these scores another name.")
        corpus = SegmentMeans([scores_of(row) for row in rows], lower_is_better=name in lower_is_better)
        metrics[name] = MetricScores(
            corpus.observed(),
            corpus.segment_scores,
            f"{name}|scores:given",
            lower_is_better=corpus.lower_is_better,
            corpus=corpus,
        )
    return metrics
