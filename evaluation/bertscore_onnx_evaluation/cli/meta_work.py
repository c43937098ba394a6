"""The work of `bertscore-onnx meta`.

Reads judged systems and scores, and prints how well metrics agree with humans.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from bertscore_onnx.cli.inputs import check_tables, input_file
from bertscore_onnx.cli.options import check_effects
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import dialect_of
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.errors import InputError, check_installed, meant, shown_names
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.roles import check_forms
from bertscore_onnx.tables.sources import STANDARD_INPUT
from bertscore_onnx.tables.whole_table import read_table
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.cli.meta_table import systems_of_table
from bertscore_onnx_evaluation.metric_scores import (
    BERTSCORE,
    MetricScores,
    preceding_sentences,
    score_systems,
)
from bertscore_onnx_evaluation.metrics.eval_set import EvalSetFiles, golds, read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.report.figures import check_figure, save_figure


def judge(options: MetaOptions) -> None:
    """Read the systems, judge the metrics, and print the result."""
    has_model = bool(options.model)
    has_context = options.context_sentences is not None
    is_plain = not any(map(options.num_context, options.scorers))
    check_effects(
        ("--matching", bool(options.matching) and not has_model, "without --model; add it"),
        ("--context-sentences", has_context and not has_model, "without --model; add it"),
        (
            "--context-sentences",
            has_context and is_plain,
            "without doc-bert-score among the matchings",
        ),
    )
    packages = ["scipy"]
    if options.corpus_metrics:
        packages.append("sacrebleu")
    check_installed(packages, "evaluation", "This command")
    check_figure(options.figure)
    check_destination(options.figure, [options.source], "--figure")
    systems = _read_systems(options)
    result = meta_evaluate(
        systems,
        permutations=options.resamples,
        seed=options.seed,
        sentinels=options.sentinels,
    )
    if options.output_format == "json":
        print(result.to_json())
    else:
        print(result.table(options.output_format))
    save_figure(result, options.figure)


def _with_directions(
    language_pairs: Sequence[JudgedSystems],
    lower_better: Sequence[str],
) -> list[JudgedSystems]:
    """Mark the scores with these names, in one language pair or in all, as better when lower."""
    known: dict[str, None] = {}
    names_of_lower = set(lower_better)
    marked = []
    for judged in language_pairs:
        metrics = dict(judged.metrics)
        for name, metric in judged.metrics.items():
            names = (name, metric.base_name)
            known |= dict.fromkeys(filter(None, names))
            is_named = not names_of_lower.isdisjoint(names)
            metrics[name] = replace(metric, lower_is_better=is_named)
        marked.append(replace(judged, metrics=metrics))
    for name in lower_better:
        if name not in known:
            available = f"there are {shown_names(list(known))}.{meant(name, known)}"
            raise InputError(f"--lower-better: no scores are called {name!r}; {available}")
    return marked


# How metrics are computed from texts.


def _with_scores_of_texts(
    options: MetaOptions,
    language_pairs: Sequence[JudgedSystems],
) -> list[JudgedSystems]:
    """Add scores by metrics of sacreBLEU, and then by the model.

    The model is loaded for each of its metrics in turn.
    """
    texts = [(judged.candidates or (), judged.references) for judged in language_pairs]
    metrics = options.corpus_metrics
    scores: list[dict[str, MetricScores]] = []
    for outputs in texts:
        scores.append(score_systems(metrics, *outputs) if metrics else {})

    verbose = False if options.quiet else None
    for name, settings in options.scorers.items():
        num_context = options.num_context(name)
        contexts = [_contexts(judged, num_context) for judged in language_pairs]
        with BERTScorer(**settings) as scorer:
            for judged, scores_of_pair, outputs, contexts_of_pair in zip(
                language_pairs,
                scores,
                texts,
                contexts,
                strict=True,
            ):
                scored = score_systems(
                    [BERTSCORE],
                    *outputs,
                    scorer=scorer,
                    contexts=contexts_of_pair,
                    verbose=verbose,
                    names=judged.systems,
                )
                scores_of_pair[name] = scored[BERTSCORE]

    names = options.metrics
    return [_with_scores(*pair, names) for pair in zip(language_pairs, scores, strict=True)]


def _contexts(judged: JudgedSystems, number: int) -> list[list[str]] | None:
    """Return for each segment up to `number` preceding sentences of its document; None for 0."""
    if not number:
        return None
    if not judged.documents:
        raise InputError(
            "The sentences before a segment are those of its document, and there are no documents. "
            "Name their column with --columns document=NAME, or give --context-sentences 0."
        )
    # Systems may lack references of a segment: the first system that has any counts.
    by_segment = zip(*judged.references, strict=True)
    references = (next(filter(None, of_systems), ()) for of_systems in by_segment)
    return preceding_sentences(references, judged.documents, number)


# Systems, from an EvalSet or a table.


def _read_systems(options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of each language pair, with their scores.

    The given scores come first, then the scores of texts.
    """
    if Path(options.source).is_dir():
        language_pairs = _of_eval_set(options)
    else:
        language_pairs = _of_table(options)
    language_pairs = _with_directions(language_pairs, options.lower_better or ())
    if not options.metrics:
        return language_pairs
    with_texts = [judged for judged in language_pairs if judged.candidates is not None]
    return _with_scores_of_texts(options, with_texts)


def _of_eval_set(options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of the language pairs of an EvalSet."""
    check_effects(
        ("--score", bool(options.score), "on an EvalSet"),
        ("--input-format", bool(options.input_format), "on an EvalSet"),
    )
    check_forms(options.named, "meta", ["an EvalSet"])
    by_pair = golds(options.source)
    folder = Path(options.source)
    available = {name: EvalSetFiles(folder, name).metrics for name in by_pair}
    chosen = options.language_pair or _pairs_with_gold(by_pair, options.gold)
    with_texts: bool | None = bool(options.metrics)
    if not with_texts and options.sentinels:
        with_texts = None  # sentinels read texts, if there are any
    language_pairs = []
    # Without the gold in any language pair, reading the first one names those that are there.
    for name in dict.fromkeys(chosen or by_pair):
        judged = read_eval_set(
            options.source,
            name,
            gold=options.gold,
            reference=options.reference,
            metrics=_metrics_of(available, name, options.metric_scores or ()),
            with_texts=with_texts,
        )
        language_pairs.append(judged)
    for judged in language_pairs:
        if not judged.metrics and not options.metrics:
            names = ", ".join(available[judged.language_pair]) or "none at all"
            raise InputError(
                f"{options.source} has no scores of metrics of {judged.language_pair} with the "
                f"reference {judged.reference}; it has {names}. Name some with --metric-scores, or "
                "score the texts, with --model MODEL or --metric bleu."
            )
    return language_pairs


def _pairs_with_gold(by_pair: Mapping[str, Container[str]], gold: str | None) -> list[str]:
    """Return the language pairs that have these judgements, or all pairs if `gold` is None."""
    if gold is None:
        return list(by_pair)
    return [name for name, judgements in by_pair.items() if gold in judgements]


def _metrics_of(
    available: Mapping[str, Sequence[str]],
    language_pair: str,
    requested: Sequence[str],
) -> list[str]:
    """Return the requested metrics that the language pair may have.

    Those that only another language pair has are left out, unless no metric is left. Names end
    with the reference.
    """
    everywhere = set[str]().union(*available.values())
    elsewhere = everywhere.difference(available.get(language_pair, ()))
    return [name for name in requested if name not in elsewhere] or list(requested)


def _of_table(options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of the language pairs of a table."""
    check_effects(
        ("--gold", options.gold is not None, "on a table"),
        ("--reference", options.reference is not None, "on a table"),
        ("--metric-scores", bool(options.metric_scores), "on a table"),
    )
    if not options.score and not options.metrics:
        texts = "score the texts, --model MODEL or --metric bleu"
        raise typer.BadParameter(
            f"name columns of scores, --score COLUMN, or {texts}.",
            param_hint="--score, --model, --metric",
        )
    if options.source != STANDARD_INPUT and not Path(options.source).exists():
        advice = "Name an EvalSet or a table."
        raise InputError(f"There is no folder or file {options.source!r}. {advice}")
    dialect = dialect_of(options.input_format)
    check_tables([input_file(options.source, (), dialect)], dialect)
    table = read_table(options.source, dialect)
    language_pairs = systems_of_table(table, options)
    for judged in language_pairs:
        if judged.dropped and not options.quiet:
            dropped = ", ".join(judged.dropped)
            echo(f"{judged.language_pair}: left out {dropped}, which lack a score.")
    return language_pairs


def _with_scores(
    judged: JudgedSystems,
    scores: Mapping[str, MetricScores],
    names: Sequence[str],
) -> JudgedSystems:
    """Add scores of texts.

    As in an EvalSet, their names end with the reference.
    """
    metrics = dict(judged.metrics)
    for base_name in names:
        name = f"{base_name}-{judged.reference}" if judged.reference else base_name
        if name in judged.metrics:
            raise InputError(
                f"{judged.language_pair}: scores called {name!r} exist already. Rename them, or "
                "leave out this `metric`."
            )
        metrics[name] = replace(scores[base_name], base_name=base_name)
    return replace(judged, metrics=metrics)
