"""Write logs of Inspect, without a network.

    pip install inspect-ai
    python write_inspect.py FOLDER NUMBER_OF_ITEMS EPOCHS [eval | json]

The folder gets a log for each program of `adders.py`. From the second epoch on a program makes a
carry more.
"""

import sys
from pathlib import Path

import inspect_ai
from adders import PROGRAMS, add, questions, right_digits
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, PARTIAL, Score, accuracy, mean, scorer, stderr
from inspect_ai.solver import generate


@scorer(metrics=[accuracy(), stderr(cluster="group")])
def grade():
    """Grade a sum: correct, partially if only its first digit is right, or incorrect."""

    async def score(state, target):
        answer = state.output.completion
        partial = (
            PARTIAL
            if answer[:1] == target.text[:1] and len(answer) == len(target.text)
            else INCORRECT
        )
        return Score(value=CORRECT if answer == target.text else partial, answer=answer)

    return score


@scorer(metrics={"digits": [mean()], "length": [mean()]})
def shape():
    """Score the share of digits that are right, and whether their number is."""

    async def score(state, target):
        answer = state.output.completion
        is_whole = len(answer) == len(target.text)
        return Score(value={"digits": right_digits(answer, target.text), "length": is_whole})

    return score


def main(folder: str, number: str, epochs: str, log_format: str = "eval") -> None:
    """Write the logs."""
    samples = [
        Sample(
            id=row["question"],
            input=row["question"],
            target=row["answer"],
            metadata={"group": row["group"]},
        )
        for row in questions(int(number))
    ]
    for name, faults in PROGRAMS.items():
        answered: dict[str, int] = {}

        def answer(messages, *_, name=name, faults=faults, answered=answered):
            text = messages[-1].text
            answered[text] = answered.get(text, 0) + 1
            more = {"carries": faults["carries"] + (answered[text] > 1)}
            output = ModelOutput.from_content(f"mockllm/{name}", add(text, **{**faults, **more}))
            output.usage = ModelUsage()  # the mock would fetch a tokenizer to count with
            return output

        task = inspect_ai.Task(samples, name="sums", solver=generate(), scorer=[grade(), shape()])
        model = get_model(f"mockllm/{name}", custom_outputs=answer)
        inspect_ai.eval(
            task,
            model=model,
            epochs=int(epochs),
            log_dir=folder,
            log_format=log_format,
            display="none",
        )


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(*sys.argv[1:])
