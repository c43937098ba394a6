"""The work of `bertscore-onnx meta`.

Reads judged systems and scores, and prints how well metrics agree with humans.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

import typer

from bertscore_onnx.cli.inputs import InputFile, check_tables
from bertscore_onnx.cli.options import check_effects
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import dialect_of
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.errors import InputError, check_installed, meant, shown_names
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.whole_table import read_table
from bertscore_onnx_evaluation.cli.judgements import systems_of_table
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.metric_scores import (
    BERTSCORE,
    MetricScores,
    preceding_sentences,
    score_systems,
)
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
    marked = []
    for judged in language_pairs:
        known |= dict.fromkeys(judged.metrics)
        metrics = {}
        for name, metric in judged.metrics.items():
            metrics[name] = replace(metric, lower_is_better=name in lower_better)
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
    """Add scores by metrics of sacreBLEU, and then by the model, loaded for each matching."""
    metrics = options.corpus_metrics
    scored: list[dict[str, MetricScores]] = []
    for judged in language_pairs:
        for name in options.metrics:
            if name in judged.metrics:
                raise InputError(
                    f"{judged.language_pair}: scores called {name!r} exist already. Rename them, "
                    "or leave out this `metric`."
                )
        scores = {}
        if metrics:
            scores = score_systems(metrics, judged.candidates or (), judged.references)
        scored.append(scores)

    for name, settings in options.scorers.items():
        num_context = options.num_context(name)
        contexts = [_contexts(judged, num_context) for judged in language_pairs]
        with BERTScorer(**settings) as scorer:
            for judged, scores, of_pair in zip(language_pairs, scored, contexts, strict=True):
                by_model = score_systems(
                    [BERTSCORE],
                    judged.candidates or (),
                    judged.references,
                    scorer=scorer,
                    contexts=of_pair,
                    verbose=False if options.quiet else None,
                    names=judged.systems,
                )
                scores[name] = by_model[BERTSCORE]

    with_scores = []
    for judged, scores in zip(language_pairs, scored, strict=True):
        all_metrics = dict(judged.metrics)
        for name in options.metrics:
            all_metrics[name] = scores[name]
        with_scores.append(replace(judged, metrics=all_metrics))
    return with_scores


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


# Systems, from a table.


def _read_systems(options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of each language pair, with given scores and then those of texts."""
    language_pairs = _with_directions(_of_table(options), options.lower_better or ())
    if not options.metrics:
        return language_pairs
    return _with_scores_of_texts(options, language_pairs)


def _of_table(options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of the language pairs of a table."""
    if not options.score and not options.metrics:
        texts = "score the texts, --model MODEL or --metric bleu"
        raise typer.BadParameter(
            f"name columns of scores, --score COLUMN, or {texts}.",
            param_hint="--score, --model, --metric",
        )
    _check_is_no_folder(options.source)
    dialect = dialect_of(options.input_format)
    check_tables([InputFile(options.source, (), dialect)], dialect)
    table = read_table(options.source, dialect)
    language_pairs = systems_of_table(table, options)
    for judged in language_pairs:
        if judged.dropped and not options.quiet:
            dropped = ", ".join(judged.dropped)
            echo(f"{judged.language_pair}: left out {dropped}, which lack a score.")
    return language_pairs


def _check_is_no_folder(source: str) -> None:
    """Raise InputError for a folder, with the command that makes a table of a set of WMT's."""
    if not Path(source).is_dir():
        return
    advice = "Name a table"
    if Path(source, "human-scores").is_dir():
        advice = (
            "It has the layout of mt-metrics-eval: in a checkout of bertscore-onnx, "
            f"`python -m reproduce.wmt {quote(source)} > judgements.tsv` makes the table"
        )
    raise InputError(f"{source} is a folder; expected a table. {advice}.")
