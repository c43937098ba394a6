"""What a task of `bertscore-onnx meta` needs beyond the core, looked for before anything is computed."""

from bertscore_onnx.cli.tasks.options import MetaOptions, Task
from bertscore_onnx.errors import check_installed


def check_extras(task: Task, options: MetaOptions) -> None:
    """Raise MissingExtraError for the first package that is needed and not installed."""
    needed = {
        "tabulate": options.result_format == "text",
        "sacrebleu": bool({"bleu", "chrf", "ter"} & {*options.metrics}),
        "scipy": task in ("correlation", "hybrid"),
    }
    check_installed((package for package, is_needed in needed.items() if is_needed), "evaluation", "This task")
