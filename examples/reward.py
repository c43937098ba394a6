"""BERTScore as a reward for trainers of language models, such as the GRPO trainer of TRL.

    pip install trl 'bertscore-onnx[cpu]'

In a training script, with a data set that has a column `reference`:

    scorer = BERTScorer("path/to/bundle", nthreads=4)
    batcher = MicroBatcher(scorer)
    trainer = GRPOTrainer(..., reward_funcs=[bertscore_reward(batcher, "R")])

Scoring runs on the CPU, on threads of its own, so that rewards of several trainers or workers in a
process come from one model. Run as a script with the path of a bundle, this rewards the example
texts in this folder.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from bertscore_onnx import BERTScorer
from bertscore_onnx_service import MicroBatcher

LONGEST_STEP = 3600.0
"""Seconds that a trainer waits for the rewards of a step."""


def bertscore_reward(
    batcher: MicroBatcher, reward: Literal["P", "R", "F"] = "F", column: str = "reference"
) -> Callable[..., list[float]]:
    """Return a reward function: precision, recall or F of each completion against the references in
    a column.

    A row of the column is a text, or a list of texts, of which the best counts. An empty completion
    is worth 0.
    """

    def bertscore(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float]:
        if column not in columns:
            raise KeyError(
                f"The data set has no column {column!r}; it has {', '.join(columns) or 'none'}."
            )
        texts = [_text(completion) for completion in completions]
        scores = batcher.submit(texts, columns[column], deadline=LONGEST_STEP).result()
        rewards: list[float] = getattr(scores, reward).tolist()
        return rewards

    bertscore.__name__ = f"bertscore_{reward.lower()}"  # the trainer's name for it in its logs
    return bertscore


def _text(completion: Any) -> str:
    """Return a completion's text: itself, or the contents of its messages if the data set has
    conversations.
    """
    if isinstance(completion, str):
        return completion
    return "\n".join(message.get("content") or "" for message in completion)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"Usage: python {sys.argv[0]} BUNDLE")
    here = Path(__file__).parent
    candidates, references = (
        (here / name).read_text(encoding="utf-8").splitlines()
        for name in ("candidates.txt", "references.txt")
    )
    with BERTScorer(sys.argv[1]) as scorer, MicroBatcher(scorer) as batcher:
        reward = bertscore_reward(batcher)
        for value in reward(
            prompts=[""] * len(candidates), completions=candidates, reference=references
        ):
            print(f"{value:.6f}")
