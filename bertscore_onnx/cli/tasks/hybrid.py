"""`bertscore-onnx meta --task hybrid`: how metrics correlate with people over hybrid systems, and choose among them."""

from bertscore_onnx.cli.tasks.inputs import read_systems
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.cli.tasks.scores import sacrebleu_options
from bertscore_onnx.evaluation.hybrid import HybridSettings, hybrid_by_language_pair
from bertscore_onnx.evaluation.metrics import CLASSES


def run(options: MetaOptions) -> None:
    """Run the task and print its result."""
    told = sacrebleu_options(options)
    of_corpora = {str(name): told.get(name, {}) for name in options.metrics if name in CLASSES}
    result = hybrid_by_language_pair(
        read_systems(options, unscored=of_corpora, several_judgements=True),
        corpus_metrics=of_corpora,
        settings=_settings(options),
        people=options.of_task.human_systems,
    )
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


def _settings(options: MetaOptions) -> HybridSettings:
    asked, default = options.of_task, HybridSettings()
    num_hybrids = asked.num_hybrids or default.num_hybrids
    return HybridSettings(
        num_hybrids,
        asked.num_candidates or min(default.num_candidates, num_hybrids),
        asked.num_trials or default.num_trials,
        options.seed,
    )
