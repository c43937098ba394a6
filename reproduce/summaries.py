"""Metrics of summaries against annotators: SummEval, by BERTScore at every layer and by metrics
that share no model.
"""

import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from bertscore_onnx.files import read_regular
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx_evaluation.metric_scores import score_systems
from bertscore_onnx_evaluation.metrics.correlation import (
    METRIC_CONSTANT,
    Floats,
    Measure,
    correlate_pairs,
    mean_by_system,
)
from reproduce.encoder_page import Agreement, Value, interval_of_mean, kendall

ORIGIN = "SummEval (Fabbri et al., 2021), means of three expert annotators, from neulab/BARTScore"
ARTICLE = "article"
LEXICAL: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "chrF3++": {"chrf": {"word_order": 2, "beta": 3}},
    "chrF": {"chrf": {}},
    "BLEU": {"bleu": {}},
}
"""What `score_systems` takes for each metric of sacreBLEU."""
ROUGE = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}
COEFFICIENTS: Mapping[str, Callable[[Floats, Floats], Measure]] = {
    "kendall": kendall,
    "pearson": correlate_pairs,
}
MAX_BYTES = 100_000_000


class _Summary(msgspec.Struct):
    sys_summ: str
    scores: dict[str, float]


class _Article(msgspec.Struct):
    src: str
    ref_summ: str
    ref_summs: list[str]
    sys_summs: dict[str, _Summary]


class _PlainUnpickler(pickle.Unpickler):
    """Reads texts, numbers, lists and dictionaries alone: anything else in a pickle may run a
    program.
    """

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


@dataclass(frozen=True)
class Summaries:
    """Summaries of articles by several systems, with the scores of annotators; or the reason why
    there are none.
    """

    title: str
    articles: tuple[str, ...] = ()
    references: tuple[tuple[str, ...], ...] = ()
    """Of each article: the one that came with it, and then the others."""
    systems: tuple[str, ...] = ()
    outputs: tuple[tuple[str, ...], ...] = ()
    """By system and article."""
    human: Mapping[str, Floats] | None = None
    """The scores of each aspect, (systems, articles)."""
    reason: str = ""

    def references_by_kind(self) -> dict[str, list[tuple[str, ...]]]:
        """Return what the summary of each article is compared with: one reference, all, or the
        article itself.
        """
        most = max(map(len, self.references))
        return {
            "1 reference": [of_article[:1] for of_article in self.references],
            **({f"{most} references": [*self.references]} if most > 1 else {}),
            ARTICLE: [(article,) for article in self.articles],
        }


def is_summaries(path: str) -> bool:
    """Return whether a file of judgements is one of summaries, by its name."""
    return Path(path).suffix == ".pkl"


def read_summaries(title: str, path: str) -> Summaries:
    """Read `SUM/SummEval/data.pkl` of neulab/BARTScore."""
    if not Path(path).is_file():
        return Summaries(title, reason=f"{Path(path).name} is no file")
    try:
        content = _PlainUnpickler(io.BytesIO(read_regular(path, MAX_BYTES))).load()
        articles = msgspec.convert(content, dict[str, _Article])
    except Exception as error:  # damaged pickles raise errors of many kinds
        return Summaries(
            title,
            reason=f"{Path(path).name} is not SUM/SummEval/data.pkl of neulab/BARTScore: {error}",
        )
    in_order = [articles[name] for name in sorted(articles)]
    systems = sorted({system for article in in_order for system in article.sys_summs})
    aspects = sorted(
        {
            aspect
            for article in in_order
            for one in article.sys_summs.values()
            for aspect in one.scores
        }
    )
    try:
        outputs = [[article.sys_summs[system] for article in in_order] for system in systems]
        human = {
            aspect: np.array([[one.scores[aspect] for one in of_system] for of_system in outputs])
            for aspect in aspects
        }
    except KeyError as error:
        return Summaries(
            title,
            reason=f"{Path(path).name}: not every article has the system or the score {error}",
        )
    return Summaries(
        title,
        tuple(article.src for article in in_order),
        tuple(
            (article.ref_summ, *(one for one in article.ref_summs if one != article.ref_summ))
            for article in in_order
        ),
        tuple(systems),
        tuple(tuple(one.sys_summ for one in of_system) for of_system in outputs),
        human,
    )


Scored = tuple[str, int | None, Floats, Floats]
"""A metric, its layer, and its scores: of each summary, (systems, articles), and of systems,
(systems,).
"""


def lexical_scores(summaries: Summaries, references: Sequence[Sequence[str]]) -> Iterator[Scored]:
    """Yield the scores by metrics that have no model; those of ROUGE if its package is
    installed.
    """
    shared = [references] * len(summaries.systems)
    for name, options in LEXICAL.items():
        [scores] = score_systems(options, summaries.outputs, shared).values()
        yield name, None, np.asarray(scores.segment), np.asarray(scores.system)
    if find_spec("rouge_score"):
        from rouge_score.rouge_scorer import RougeScorer

        rouge = RougeScorer([*ROUGE.values()], use_stemmer=True)
        found = [
            [
                rouge.score_multi(of_article, output)
                for of_article, output in zip(references, of_system, strict=True)
            ]
            for of_system in summaries.outputs
        ]
        for name, kind in ROUGE.items():
            segment = np.array([[one[kind].fmeasure for one in of_system] for of_system in found])
            yield name, None, segment, mean_by_system(segment)


def correlate_lexical(summaries: Summaries) -> list[Agreement]:
    """Correlate metrics that have no model with annotators."""
    return [
        agreement(summaries, kind, scored)
        for kind, references in summaries.references_by_kind().items()
        for scored in lexical_scores(summaries, references)
    ]


def agreement(summaries: Summaries, reference: str, scored: Scored) -> Agreement:
    """Correlate a metric with each aspect, within each article and over systems, and average these
    over the aspects.

    An article where annotators gave all systems the same score is left out, and one where only the
    metric did counts as 0. Intervals are from resampled articles.
    """
    name, layer, segment, system = scored
    aspects, within = {}, {}
    for aspect, of_aspect in (summaries.human or {}).items():
        by_article = {
            name: _within(of_aspect, segment, correlate) for name, correlate in COEFFICIENTS.items()
        }
        of_systems = {
            name: correlate(mean_by_system(of_aspect), system).value
            for name, correlate in COEFFICIENTS.items()
        }
        aspects[aspect] = {
            **{f"summary {one}": _mean(by_article[one]) for one in COEFFICIENTS},
            **{f"system {one}": value for one, value in of_systems.items()},
        }
        within[aspect] = by_article
    intervals = {
        f"summary {one}": interval_of_mean(
            np.array([of_aspect[one] for of_aspect in within.values()])
        )
        for one in COEFFICIENTS
    }
    means = {
        measure: _mean([one[measure] for one in aspects.values()])
        for measure in next(iter(aspects.values()))
    }
    return Agreement(
        reference,
        name,
        layer,
        aspects,
        {
            measure: Value(mean, *intervals.get(measure, (None, None)))
            for measure, mean in means.items()
        },
        {
            aspect: [None if np.isnan(one) else one for one in of["kendall"].tolist()]
            for aspect, of in within.items()
        },
    )


def _within(
    human: Floats, metric: Floats, correlate: Callable[[Floats, Floats], Measure]
) -> Floats:
    """Return the correlation within each article, (articles,), NaN where the human scores are
    constant.
    """
    found = [correlate(*of_article) for of_article in zip(human.T, metric.T, strict=True)]
    zero = {METRIC_CONSTANT: 0.0}
    return np.array(
        [zero.get(one.reason, np.nan) if one.value is None else one.value for one in found]
    )


def _mean(values: Sequence[float | None] | Floats) -> float | None:
    known = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return None if np.isnan(known).all() else float(np.nanmean(known))


# These functions run in child processes.


def correlate_summaries(bundle: Path, summaries: Summaries, device: str) -> list[Agreement]:
    """Correlate P, R and F at every layer with annotators."""
    found = []
    shape = (-1, len(summaries.articles), len(summaries.systems))
    candidates = [
        output for of_article in zip(*summaries.outputs, strict=True) for output in of_article
    ]
    with BERTScorer(bundle, all_layers=True, device=device) as scorer:
        layers = [*scorer.manifest.layers]
        for kind, references in summaries.references_by_kind().items():
            # side by side: encoded once
            repeated = [[*one] for one in references for _ in summaries.systems]
            scores = scorer.score(candidates, repeated)
            for name, values in zip("PRF", scores, strict=True):
                for layer, by_article in zip(
                    layers, np.asarray(values, dtype=np.float64).reshape(shape), strict=True
                ):
                    segment = by_article.T  # (systems, articles)
                    found.append(
                        agreement(summaries, kind, (name, layer, segment, mean_by_system(segment)))
                    )
    return found
