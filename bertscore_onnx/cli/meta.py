"""`bertscore-onnx meta`: judges metrics by what people say of systems."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, cast, get_args

import typer

from bertscore_onnx.cli.meta_options import (
    MetaOptions,
    Metric,
    ResultFormat,
    TableColumns,
    Task,
    TaskOptions,
    check_extras,
    check_task,
)
from bertscore_onnx.cli.options import Device, Model, NumLayers, NumThreads, Quiet
from bertscore_onnx.cli.outputs import chosen_format
from bertscore_onnx.cli.terminal import silence_warnings
from bertscore_onnx.tables.sources import InputFormat


def meta(
    source: Annotated[
        str,
        typer.Argument(
            metavar="EVALSET|TABLE",
            help="A folder in the layout of mt-metrics-eval, or a table; - is standard input.",
        ),
    ],
    task: Annotated[Task, typer.Option(help="What to measure.")] = "correlation",
    language_pair: Annotated[
        list[str] | None, typer.Option(metavar="LP...", help="Language pairs, such as he-en.  [default: all]")
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The judgements of an EvalSet, such as mqm.  [default: the only ones]"),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The reference in use, such as refB, which is no system.  [default: the only one of metrics]",
        ),
    ] = None,
    metric_scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC-REF...", help="Scores of an EvalSet, such as BLEU-refB.  [default: all of the reference]"
        ),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN...",
            help="Columns of a table with scores, the higher the better; a system's is the mean over its segments.",
        ),
    ] = None,
    model_type: Model = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC...",
            help="Score the texts with bleu, chrf or ter too; with --model they are scored with bertscore.",
        ),
    ] = None,
    bleu_smooth: Annotated[
        Literal["exp", "floor", "add-k", "none"], typer.Option(help="How BLEU is smoothed, as in sacreBLEU.")
    ] = "exp",
    chrf_word_order: Annotated[
        int, typer.Option(metavar="N", min=0, help="The longest n-gram of words in chrF; 2 for chrF++.")
    ] = 0,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="How far two judgements of darr are apart at least.  [default: 25]"),
    ] = None,
    human_system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="Systems that are people, which darr and hybrid leave out.  [default: for darr those called Human-A, "
            "ref, refB, translator-A and the like; for hybrid none]",
        ),
    ] = None,
    num_hybrids: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="How many systems hybrid draws.  [default: 10000]")
    ] = None,
    num_candidates: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Of how many of them the best one is chosen.  [default: 100]"),
    ] = None,
    num_trials: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How often it is chosen.  [default: 100000]")
    ] = None,
    min_examples: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Examples of a category that phenomena shows.  [default: 5]"),
    ] = None,
    language_pair_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of language pairs.  [default: lang_pair]")
    ] = None,
    system_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of systems.  [default: system]")
    ] = None,
    segment_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column of segments; without one each row is a whole system.  [default: segment or segment_id]",
        ),
    ] = None,
    human_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of judgements.  [default: human or human_score]")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of labels for --task auc.  [default: label]")
    ] = None,
    candidate_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of outputs.  [default: candidate]")
    ] = None,
    reference_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="The column of references, or several; in JSON lines and Parquet a value may be a list.  "
            "[default: reference or references]",
        ),
    ] = None,
    input_format: Annotated[
        InputFormat | None, typer.Option(help="The format of the table.  [default: by the end of its name]")
    ] = None,
    perm_both: Annotated[
        int, typer.Option("--perm-both", metavar="N", min=1, help="Permutations of the tests.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of all that is drawn.")] = 4,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Write the scores there, as mt-metrics-eval reads them."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_tsv: Annotated[bool, typer.Option("--tsv", help="Print a table of tab-separated values.")] = False,
    num_layers: NumLayers = None,
    device: Device = None,
    nthreads: NumThreads = None,
    quiet: Quiet = False,
) -> None:
    """Judge metrics by what people say of systems.

    An EvalSet is a folder in the layout of mt-metrics-eval: human-scores, metric-scores, and for --model and --metric
    system-outputs and references. A table has a row for each output of a system, with the columns lang_pair, system,
    segment and human; with scores, --score, or with the texts, candidate and reference. Without segments each row is a
    whole system.

    Correlations keep their sign, ties are counted, and what has no value has its reason. Metrics share a rank where no
    difference is significant. With --task darr metrics order pairs that raw assessments tell apart; hybrid draws many
    systems from the real ones and chooses among them; auc tells label 1 from label 0; phenomena asks whether good
    translations get higher scores than bad ones, by category.

    Needs the extra `evaluation`.
    """
    result_format = chosen_format(as_json=as_json, as_tsv=as_tsv) or "text"
    metrics = _chosen_metrics(metric or (), model_type)
    if quiet:
        silence_warnings()
    columns = TableColumns(
        language_pair=language_pair_column,
        system=system_column,
        segment=segment_column,
        human=human_column,
        candidate=candidate_column,
        reference=tuple(reference_column or ()),
        label=label_column,
    )
    options = MetaOptions(
        source=source,
        input_format=input_format,
        columns=columns,
        language_pairs=tuple(language_pair or ()),
        gold=gold,
        reference=reference,
        metric_scores=tuple(metric_scores or ()),
        scores=tuple(score or ()),
        metrics=metrics,
        model=model_type,
        num_layers=num_layers,
        device=device,
        num_threads=nthreads,
        bleu_smooth=bleu_smooth,
        chrf_word_order=chrf_word_order,
        permutations=perm_both,
        seed=seed,
        output=output,
        result_format=cast(ResultFormat, result_format),
        quiet=quiet,
        of_task=TaskOptions(
            threshold=threshold,
            human_systems=tuple(human_system or ()),
            num_hybrids=num_hybrids,
            num_candidates=num_candidates,
            num_trials=num_trials,
            min_examples=min_examples,
        ),
    )
    check_task(task, options)
    check_extras(task, options)
    from bertscore_onnx.cli import meta_tasks

    run: Callable[[MetaOptions], None] = getattr(meta_tasks, f"run_{task}")
    run(options)


def _chosen_metrics(named: Sequence[str], model: str | None) -> tuple[Metric, ...]:
    """Return the metrics to compute, bertscore first where there is a model for it."""
    known: tuple[Metric, ...] = get_args(Metric)
    for name in named:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}.", param_hint="--metric")
    if "bertscore" in named and not model:
        raise typer.BadParameter("bertscore needs a model; add --model MODEL.", param_hint="--metric")
    return tuple(one for one in known if one in named or (one == "bertscore" and model))
