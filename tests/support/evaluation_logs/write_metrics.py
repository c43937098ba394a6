"""Write logs of lm-evaluation-harness with the metrics of its registry: `python write_metrics.py
FOLDER`.

`pip install lm-eval torch`. Two programs that draw their answers take the place of models.
"""

import json
import os
import random
import sys
from pathlib import Path

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

ITEMS = [
    {
        "text": f"{number} birds sit in the {tree}",
        "next": f"{tree} of {number} birds",
        "label": number % 2,
    }
    for number, tree in enumerate(["oak", "old elm", "birch", "pine", "tall fir", "ash"], 2)
]
KINDS = {
    "loglikelihood": ["perplexity", "acc"],
    "loglikelihood_rolling": ["word_perplexity", "byte_perplexity", "bits_per_byte"],
    "multiple_choice": [
        "acc",
        "acc_norm",
        "acc_bytes",
        "acc_mutual_info",
        "exact_match",
        "f1",
        "mcc",
        "brier_score",
    ],
    "generate_until": ["exact_match", "bleu", "chrf", "chrf++", "ter"],
}
OWN = {
    "error": ("mean", False),
    "loss": ("median", False),
    "acc_all": ("mean", True),
    "gain": ("nanmean", True),
}


class Drawing(LM):
    """Draws likelihoods and words by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._draw = random.Random(name)  # noqa: S311

    def loglikelihood(self, requests, disable_tqdm=False):
        return [(-20 * self._draw.random(), self._draw.random() < 0.5) for _ in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return [-50 * self._draw.random() for _ in requests]

    def generate_until(self, requests, disable_tqdm=False):
        return [
            self._draw.choice([request.doc["next"], "a fir of two birds"]) for request in requests
        ]


def own(doc, results):
    """Score an answer by metrics that are no registered ones, or are computed by the task."""
    error = abs(len(results[0]) - len(doc["next"]))
    return {"error": error, "loss": error**2, "acc_all": float(error == 0), "gain": float(error)}


def task(name, kind, metrics, **more):
    target = {
        "loglikelihood": "{{next}}",
        "loglikelihood_rolling": "{{text}}",
        "generate_until": "{{next}}",
    }
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "items.jsonl"}},
        "test_split": "test",
        "output_type": kind,
        "doc_to_text": "" if kind == "loglikelihood_rolling" else "{{text}}",
        "doc_to_target": target.get(kind, "{{label}}"),
        "doc_to_choice": ["yes", "certainly not"] if kind == "multiple_choice" else None,
        "metric_list": metrics,
        **more,
    }


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    Path("items.jsonl").write_text(
        "".join(f"{json.dumps(item)}\n" for item in ITEMS), encoding="utf-8"
    )
    tasks = [
        task(kind, kind, [{"metric": name} for name in names]) for kind, names in KINDS.items()
    ]
    listed = [
        {"metric": name, "aggregation": how, "higher_is_better": up}
        for name, (how, up) in OWN.items()
    ]
    tasks.append(task("own", "generate_until", listed, process_results=own))
    for name in ("first", "second"):
        tracker = EvaluationTracker(output_path=".")
        tracker.general_config_tracker.log_experiment_args(
            model_source=name,
            model_args=f"model={name}",
            system_instruction=None,
            chat_template=None,
            fewshot_as_multiturn=False,
        )
        results = lm_eval.simple_evaluate(Drawing(name), tasks=tasks, bootstrap_iters=0)
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for of_task, rows in samples.items():
            tracker.save_results_samples(task_name=of_task, samples=rows)
    Path("items.jsonl").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
