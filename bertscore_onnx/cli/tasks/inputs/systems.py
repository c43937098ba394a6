"""The systems that a task judges metrics by: from an EvalSet or a table, with the scores that were asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import typer

from bertscore_onnx.cli.inputs.judgements import read_table
from bertscore_onnx.cli.options.scorer import check_effects
from bertscore_onnx.cli.tasks.inputs.table_systems import systems_of_table
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.cli.tasks.scores import sacrebleu_options, scorer_of
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.eval_set import EvalSet, check_names, read_eval_set
from bertscore_onnx.evaluation.judged_systems import JudgedSystems, MetricScores
from bertscore_onnx.evaluation.metrics import score_system_texts
from bertscore_onnx.tables.sources import STANDARD_INPUT


def read_systems(
    options: MetaOptions, *, unscored: Collection[str] = (), several_judgements: bool = False
) -> list[JudgedSystems]:
    """Return the systems of each language pair, with the scores that are there and then those of their texts.

    Args:
        options: what to read and to score.
        unscored: those of the metrics that the task computes itself from the texts.
        several_judgements: whether a table may have several rows for one output, of whose judgements the mean counts.

    Raises:
        typer.BadParameter: an option has no effect on what is read, or no metric was asked for.
        InputError: something was asked for that is not there or is not what it should be, or two scores have one name.
    """
    language_pairs = _of_eval_set(options) if is_eval_set(options) else _of_table(options, several_judgements)
    if options.output is not None:  # told now, before work is put into the scores
        for one in language_pairs:
            check_names(one.language_pair, one.systems, one.metrics)
    metrics = [name for name in options.metrics if name not in unscored]
    if not metrics:
        return language_pairs
    with scorer_of(options) as scorer:
        told, verbose = sacrebleu_options(options), False if options.quiet else None
        return [
            _with_scores(one, score_system_texts(metrics, one.texts, scorer=scorer, options=told, verbose=verbose))
            for one in language_pairs
            if one.texts is not None
        ]


def is_eval_set(options: MetaOptions) -> bool:
    """Return whether the source is a folder."""
    return Path(options.source).is_dir()


def own_name(metric: str, judged: JudgedSystems) -> str:
    """Return what scores of texts are called: as those of an EvalSet are, with the reference at the end."""
    return f"{metric}-{judged.reference}" if judged.reference else metric


def _of_eval_set(options: MetaOptions) -> list[JudgedSystems]:
    of_tables = {"--score": options.scores, "--input-format": options.input_format}
    of_tables |= {f"--{name.replace('_', '-')}-column": value for name, value in asdict(options.columns).items()}
    check_effects(*((option, bool(value), "on a folder") for option, value in of_tables.items()))
    eval_set = EvalSet(options.source)
    chosen = options.language_pairs or [
        one for one in eval_set.language_pairs if options.gold in (None, *eval_set.golds(one))
    ]
    language_pairs = [
        read_eval_set(
            eval_set,
            one,
            gold=options.gold,
            reference=options.reference,
            metrics=_metrics_of(eval_set, one, options.metric_scores),
            with_texts=bool(options.metrics),
        )
        for one in dict.fromkeys(chosen or eval_set.language_pairs)
    ]
    for one in language_pairs:
        if not one.metrics and not options.metrics:
            there = ", ".join(eval_set.metrics(one.language_pair)) or "none at all"
            raise InputError(
                f"{options.source} has no scores of metrics of {one.language_pair} with the reference "
                f"{one.reference}; it has {there}. Name some with --metric-scores, or score the texts, with --model "
                "MODEL or --metric bleu."
            )
    return language_pairs


def _metrics_of(eval_set: EvalSet, language_pair: str, asked: Sequence[str]) -> list[str]:
    """Return those that were asked for, but not those that only another language pair has, with its reference."""
    here = eval_set.metrics(language_pair)
    elsewhere = {name for one in eval_set.language_pairs for name in eval_set.metrics(one)}.difference(here)
    return [name for name in asked if name not in elsewhere] or [*asked]


def _of_table(options: MetaOptions, several_judgements: bool) -> list[JudgedSystems]:
    of_folders = {"--gold": options.gold, "--reference": options.reference, "--metric-scores": options.metric_scores}
    check_effects(*((option, bool(value), "on a table") for option, value in of_folders.items()))
    if not options.scores and not options.metrics:
        raise typer.BadParameter(
            "name columns of scores, --score COLUMN, or score the texts, --model MODEL or --metric bleu.",
            param_hint="--score, --model, --metric",
        )
    if options.source != STANDARD_INPUT and not Path(options.source).exists():
        raise InputError(f"There is no folder or file {options.source!r}. Name an EvalSet or a table.")
    table = read_table(options.source, options.input_format)
    return systems_of_table(table, options, several_judgements=several_judgements)


def _with_scores(judged: JudgedSystems, scores: Mapping[str, MetricScores]) -> JudgedSystems:
    own = {own_name(name, judged): replace(one, base_name=name) for name, one in scores.items()}
    for name in own:
        if name in judged.metrics:
            raise InputError(
                f"{judged.language_pair}: there are scores called {name!r} already. Give them another name, or leave "
                "out this `metric`."
            )
    return replace(judged, metrics={**judged.metrics, **own})
