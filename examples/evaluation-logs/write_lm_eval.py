"""Write logs of lm-evaluation-harness, without a network.

    pip install lm-eval torch
    python write_lm_eval.py FOLDER NUMBER_OF_ITEMS

The folder gets a log and a file of results for each program of `adders.py`.
"""

import json
import os
import sys
from pathlib import Path

import lm_eval
from adders import PROGRAMS, add, questions
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager


class Adder(LM):
    """A program in place of a model."""

    def __init__(self, faults: dict) -> None:
        super().__init__()
        self._faults = faults

    def generate_until(self, requests, disable_tqdm=False):
        """Return the answers to requests."""
        return [f"The sum is {add(request.args[0], **self._faults)}." for request in requests]

    def loglikelihood(self, requests, disable_tqdm=False):
        """Raise an error: programs have no likelihoods."""
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def main(folder: Path, number: int) -> None:
    """Write the logs."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)  # the task reads its items from the current folder
    Path("sums.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in questions(number)), encoding="utf-8"
    )
    for name, faults in PROGRAMS.items():
        tracker = EvaluationTracker(output_path=".")
        tracker.general_config_tracker.log_experiment_args(
            model_source=name,
            model_args=f"model={name}",
            system_instruction=None,
            chat_template=None,
            fewshot_as_multiturn=False,
        )
        tasks = TaskManager(include_path=str(Path(__file__).parent))
        results = lm_eval.simple_evaluate(Adder(faults), tasks=["sums"], task_manager=tasks)
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        tracker.save_results_samples(task_name="sums", samples=samples["sums"])
    Path("sums.jsonl").unlink()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]))
