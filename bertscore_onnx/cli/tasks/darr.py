"""`bertscore-onnx meta --task darr`: whether metrics rank outputs as their direct assessments do."""

from bertscore_onnx.cli.tasks.inputs import read_systems
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.evaluation.relative_ranking import THRESHOLD, darr_by_language_pair


def run(options: MetaOptions) -> None:
    """Run the task and print its result."""
    threshold, people = options.of_task.threshold, options.of_task.human_systems
    result = darr_by_language_pair(
        read_systems(options, several_judgements=True),
        threshold=THRESHOLD if threshold is None else threshold,
        people=people or None,
    )
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))
