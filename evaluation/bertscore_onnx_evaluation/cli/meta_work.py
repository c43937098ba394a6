"""What `bertscore-onnx meta` does: reads judged systems and scores, and prints how well metrics agree with humans."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from bertscore_onnx.cli.inputs import check_tables, input_file
from bertscore_onnx.cli.options import check_effects
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import dialect_of
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.errors import InputError, check_installed, listed, meant
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.columns import check_forms
from bertscore_onnx.tables.sources import STANDARD_INPUT
from bertscore_onnx.tables.whole_table import read_table
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.cli.meta_table import systems_of_table
from bertscore_onnx_evaluation.metric_scores import BERTSCORE, MetricScores, preceding_sentences, score_systems
from bertscore_onnx_evaluation.metrics.eval_set import EvalSetFiles, golds, read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.report.figures import check_figure, save_figure


def judge(options: MetaOptions) -> None:
    """Read the systems, judge the metrics, and print the result."""
    has_model, has_context = bool(options.model), bool(options.context_sentences)
    is_plain = not any(map(options.num_context, options.scorers))
    check_effects(
        ("--matching", bool(options.matching) and not has_model, "without --model; add it"),
        ("--context-sentences", has_context and not has_model, "without --model; add it"),
        ("--context-sentences", has_context and is_plain, "without doc-bert-score among the matchings"),
    )
    check_installed(("scipy", *(("sacrebleu",) if options.corpus_metrics else ())), "evaluation", "This command")
    check_figure(options.figure)
    check_destination(options.figure, [options.source], "--figure")
    systems = _read_systems(options)
    result = meta_evaluate(systems, permutations=options.resamples, seed=options.seed, sentinels=options.sentinels)
    print(result.to_json() if options.output_format == "json" else result.table(options.output_format))
    save_figure(result, options.figure)


def _with_directions(language_pairs: Sequence[JudgedSystems], lower_better: Sequence[str]) -> list[JudgedSystems]:
    """Mark the given scores of these names, in each language pair or in all, of which lower ones are better."""
    known: dict[str, None] = {}
    found = []
    for judged in language_pairs:
        metrics = dict(judged.metrics)
        for name, metric in judged.metrics.items():
            names = (name, metric.base_name)
            known |= dict.fromkeys(filter(None, names))
            metrics[name] = replace(metric, lower_is_better=any(each in lower_better for each in names))
        found.append(replace(judged, metrics=metrics))
    for name in lower_better:
        if name not in known:
            raise InputError(
                f"--lower-better: no scores are called {name!r}; there are {listed([*known])}.{meant(name, known)}"
            )
    return found


# How metrics are computed from texts.


def _with_scores_of_texts(options: MetaOptions, language_pairs: Sequence[JudgedSystems]) -> list[JudgedSystems]:
    """Add scores by metrics of sacreBLEU, and then by the model, which is loaded for each metric in turn."""
    texts = [(judged.candidates or (), judged.references) for judged in language_pairs]
    metrics = options.corpus_metrics
    scores = [score_systems(metrics, *outputs) if metrics else {} for outputs in texts]
    verbose = False if options.quiet else None
    for name, settings in options.scorers.items():
        contexts = [_contexts(judged, options.num_context(name)) for judged in language_pairs]
        with BERTScorer(**settings) as scorer:
            for judged, of_pair, outputs, before in zip(language_pairs, scores, texts, contexts, strict=True):
                scored = score_systems(
                    [BERTSCORE], *outputs, scorer=scorer, contexts=before, verbose=verbose, names=judged.systems
                )
                of_pair[name] = scored[BERTSCORE]
    return [_with_scores(*pair, options.metrics) for pair in zip(language_pairs, scores, strict=True)]


def _contexts(judged: JudgedSystems, number: int) -> list[list[str]] | None:
    """Return up to this many sentences before each segment in its document; None for 0."""
    if not number:
        return None
    if not judged.documents:
        raise InputError(
            "The sentences before a segment are those of its document, and there are no documents. Name their "
            "column with --columns document=NAME, or give --context-sentences 0."
        )
    references = ([*filter(None, by_system), ()][0] for by_system in zip(*judged.references, strict=True))
    return preceding_sentences(references, judged.documents, number)


# Systems, from an EvalSet or a table.


def _read_systems(options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of each language pair, with given scores and then the scores of texts."""
    language_pairs = _of_eval_set(options) if Path(options.source).is_dir() else _of_table(options)
    language_pairs = _with_directions(language_pairs, options.lower_better or ())
    if not options.metrics:
        return language_pairs
    return _with_scores_of_texts(options, [judged for judged in language_pairs if judged.candidates is not None])


def _of_eval_set(options: MetaOptions) -> list[JudgedSystems]:
    of_tables = {"--score": options.score, "--input-format": options.input_format}
    check_effects(*((name, bool(value), "on an EvalSet") for name, value in of_tables.items()))
    check_forms(options.named, "meta", ["an EvalSet"])
    by_pair = golds(options.source)
    available = {name: EvalSetFiles(Path(options.source), name).metrics for name in by_pair}
    chosen = options.language_pair or [
        name for name, judgements in by_pair.items() if options.gold is None or options.gold in judgements
    ]
    language_pairs = [
        read_eval_set(
            options.source,
            name,
            gold=options.gold,
            reference=options.reference,
            metrics=_metrics_of(available, name, options.metric_scores or ()),
            with_texts=True if options.metrics else None if options.sentinels else False,
        )
        for name in dict.fromkeys(chosen or by_pair)
    ]
    for judged in language_pairs:
        if not judged.metrics and not options.metrics:
            names = ", ".join(available[judged.language_pair]) or "none at all"
            raise InputError(
                f"{options.source} has no scores of metrics of {judged.language_pair} with the reference "
                f"{judged.reference}; it has {names}. Name some with --metric-scores, or score the texts, with "
                "--model MODEL or --metric bleu."
            )
    return language_pairs


def _metrics_of(available: Mapping[str, Sequence[str]], language_pair: str, requested: Sequence[str]) -> list[str]:
    """Return the requested metrics without metrics that only another language pair has, with its reference."""
    everywhere = {metric for metrics in available.values() for metric in metrics}
    elsewhere = everywhere.difference(available.get(language_pair, ()))
    return [name for name in requested if name not in elsewhere] or [*requested]


def _of_table(options: MetaOptions) -> list[JudgedSystems]:
    of_folders = {"--gold": options.gold, "--reference": options.reference, "--metric-scores": options.metric_scores}
    check_effects(*((name, value not in (None, []), "on a table") for name, value in of_folders.items()))
    if not options.score and not options.metrics:
        raise typer.BadParameter(
            "name columns of scores, --score COLUMN, or score the texts, --model MODEL or --metric bleu.",
            param_hint="--score, --model, --metric",
        )
    if options.source != STANDARD_INPUT and not Path(options.source).exists():
        raise InputError(f"There is no folder or file {options.source!r}. Name an EvalSet or a table.")
    dialect = dialect_of(options.input_format)
    check_tables([input_file(options.source, (), dialect)], dialect)
    table = read_table(options.source, dialect)
    language_pairs = systems_of_table(table, options)
    for judged in language_pairs:
        if judged.dropped and not options.quiet:
            echo(f"{judged.language_pair}: left out {', '.join(judged.dropped)}, which lack a score.")
    return language_pairs


def _with_scores(judged: JudgedSystems, scores: Mapping[str, MetricScores], names: Sequence[str]) -> JudgedSystems:
    """Add scores of texts; as in an EvalSet, their names end with the reference."""
    metrics = dict(judged.metrics)
    for base_name in names:
        name = f"{base_name}-{judged.reference}" if judged.reference else base_name
        if name in judged.metrics:
            raise InputError(
                f"{judged.language_pair}: scores called {name!r} exist already. Rename them, or leave out this "
                "`metric`."
            )
        metrics[name] = replace(scores[base_name], base_name=base_name)
    return replace(judged, metrics=metrics)
