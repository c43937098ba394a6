"""`bertscore-onnx meta --task phenomena`: what errors metrics see, by linguistic category."""

import typer

from bertscore_onnx.cli.inputs.judgements import read_table
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.cli.tasks.scores import references_of_rows, sacrebleu_options, scorer_of
from bertscore_onnx.evaluation.challenge_sets import MIN_EXAMPLES, PhenomenonExample, phenomena_of_texts


def run(options: MetaOptions) -> None:
    """Run the task and print its result."""
    if not options.metrics:
        raise typer.BadParameter("name a model, or a metric such as bleu.", param_hint="--model, --metric")
    examples = _examples(options)
    with scorer_of(options) as scorer:
        result = phenomena_of_texts(
            examples,
            metrics=options.metrics,
            scorer=scorer,
            options=sacrebleu_options(options),
            min_examples=options.of_task.min_examples or MIN_EXAMPLES,
            verbose=False if options.quiet else None,
        )
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


def _examples(options: MetaOptions) -> list[PhenomenonExample]:
    table = read_table(options.source, options.input_format)
    categories = table.keys(table.find("category", ""))
    references = references_of_rows(options, table)
    good, bad = (table.lists(table.find(name, ""), may_be_empty=True) for name in ("good", "bad"))
    return [PhenomenonExample(*fields) for fields in zip(categories, references, good, bad, strict=True)]
