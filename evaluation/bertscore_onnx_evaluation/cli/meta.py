"""`bertscore-onnx meta`: measures how well metrics agree with human judgements."""

from bertscore_onnx.cli.options import check_contexts, check_effects, option_name
from bertscore_onnx.cli.shared_options import shared_options
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions


@shared_options("model_type", "num_layers", "device", "nthreads", needs_model=False)
def meta(options: MetaOptions) -> None:
    """Measure how well metrics agree with human judgements.

    An EvalSet is a folder in the layout of mt-metrics-eval: human-scores, metric-scores, perhaps documents, and for
    --model and --metric system-outputs and references. A table has a row for each output of a system, with the
    columns lang_pair, system, segment and human; and with scores, --score, or texts, in the columns candidate and
    reference. Without segments each row is a whole system.

    Correlations are signed and ties are counted; a missing value comes with a reason. A rank ends where a
    metric in it is significantly better than the next, by exchanging the scores of two metrics in whole segments, or
    documents if they are known. --task darr measures how often metrics order pairs of outputs as direct assessments do;
    hybrid draws many systems from the real ones and selects among them; auc separates label 1 from label 0; phenomena
    measures whether good translations get higher scores than bad ones, by category.

    Needs the extra `evaluation`.

    Examples:
        # Judge BERTScore, and scores in the column comet, against human scores
        bertscore-onnx meta judgements.tsv -m BUNDLE --score comet
        # Name the columns of the table
        bertscore-onnx meta a.csv -m BUNDLE --columns candidate=mt human=da id=line
        # Judge BLEU and chrF beside them
        bertscore-onnx meta judgements.tsv -m BUNDLE --score comet --metric bleu chrf
        # Judge the metric scores of an EvalSet
        bertscore-onnx meta EVALSET --language-pair he-en --gold mqm --reference refB
        # Rank by direct assessments, or by hybrid systems
        bertscore-onnx meta judgements.tsv --task darr --score comet
        bertscore-onnx meta judgements.tsv --task hybrid --score comet --metric bleu
        # Tell paraphrases from other pairs, or test linguistic phenomena
        bertscore-onnx meta paraphrases.tsv --task auc -m BUNDLE --metric bleu
        bertscore-onnx meta phenomena.jsonl --task phenomena -m BUNDLE
    """
    metrics = options.metrics
    from bertscore_onnx.errors import check_installed
    from bertscore_onnx_evaluation.cli.meta_tasks import TASKS

    task = options.task
    for settings in options.scorers.values() if task in ("auc", "phenomena") else ():
        check_contexts(settings, f"--task {task} reads none")
    run, _ = TASKS[task]
    readers = {name: [other for other, (_, reads) in TASKS.items() if name in reads] for name in options.given}
    has_model, has_context = bool(options.model), bool(options.context_sentences)
    is_plain = not any(map(options.num_context, options.scorers))
    check_effects(
        *(
            (option_name(name), bool(tasks) and task not in tasks, f"on --task {task}")
            for name, tasks in readers.items()
        ),
        ("--matching", bool(options.matching) and not has_model, "without --model; add it"),
        ("--matching", len(options.scorers) > 1 and task == "phenomena", "more than once on --task phenomena"),
        ("--context-sentences", has_context and not has_model, "without --model; add it"),
        ("--context-sentences", has_context and is_plain, "without doc-bert-score among the matchings"),
    )
    needed = {
        "sacrebleu": bool({"bleu", "chrf", "ter"} & {*metrics}),
        "scipy": task != "hybrid",
    }
    check_installed((package for package, is_needed in needed.items() if is_needed), "evaluation", "This task")
    run(options)
