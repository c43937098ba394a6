"""Scores the examples' texts with another package of BERTScore.

    python scripts/score_elsewhere.py PACKAGE MODEL

Run it with a Python that has the package; MODEL is the folder of a model, such as the one that
`examples/minilm.py` prints, and its layer 4 is used. It prints the versions, F of each pair scored
alone, and the largest difference from F of the same pairs scored in one call, for
docs/alternatives.md.
"""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
LAYER = 4
Score = Callable[[list[str], list[str]], list[float]]


def bert_score(model: str) -> Score:
    """Return the function of bert-score and of its forks."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=model, num_layers=LAYER, device="cpu")
    return lambda candidates, references: scorer.score(candidates, references)[2].tolist()


def code_bert_score(model: str) -> Score:
    """Return that of code-bert-score."""
    from code_bert_score import score

    def f1(candidates: list[str], references: list[str]) -> list[float]:
        return score(candidates, references, model_type=model, num_layers=LAYER, device="cpu")[
            2
        ].tolist()

    return f1


def torchmetrics(model: str) -> Score:
    """Return that of torchmetrics."""
    from torchmetrics.functional.text import bert_score

    def f1(candidates: list[str], references: list[str]) -> list[float]:
        found = bert_score(
            candidates, references, model_name_or_path=model, num_layers=LAYER, device="cpu"
        )
        return found["f1"].reshape(-1).tolist()

    return f1


def modern_bert_score(model: str) -> Score:
    """Return that of modern-bert-score, which has no layers: all of the model is used."""
    from modern_bert_score import BertScore

    scorer = BertScore(model_id=model)
    return lambda candidates, references: [f1 for _, _, f1 in scorer(candidates, references)]


PACKAGES = {
    "bert-score": bert_score,
    "fitzyracing-bert-score": bert_score,
    "code-bert-score": code_bert_score,
    "torchmetrics": torchmetrics,
    "modern-bert-score": modern_bert_score,
}


def main(package: str, model: str) -> None:
    """Print the scores."""
    texts = [
        (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
        for name in ("candidates.txt", "references.txt")
    ]
    score = PACKAGES[package](model)
    together = score(*texts)
    alone = [
        score([candidate], [reference])[0] for candidate, reference in zip(*texts, strict=True)
    ]
    print(
        json.dumps(
            {
                "versions": {name: version(name) for name in (package, "torch", "transformers")},
                "difference": max(
                    abs(one - other) for one, other in zip(together, alone, strict=True)
                ),
                "F": alone,
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
