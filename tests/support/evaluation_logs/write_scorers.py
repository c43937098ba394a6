"""Write logs of Inspect with the scorers of its package: `python write_scorers.py FOLDER`; `pip
install inspect-ai`.
"""

import sys
from pathlib import Path

import inspect_ai
from inspect_ai import model as models
from inspect_ai import scorer as scorers
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate

ANSWERS = {
    "first": ["ANSWER: 4", "ANSWER: 7 birds", "ANSWER: 10"],
    "second": ["ANSWER: 5", "ANSWER: 6", "9"],
}
QUESTIONS = {f"What is {number} + 3?": str(number + 3) for number in (1, 4, 6)}


@scorers.scorer(metrics=[scorers.std()])
def spread():
    """Score a number whose mean is in no result."""

    async def score(state, target):
        return scorers.Score(value=len(state.output.completion) ** 2)

    return score


def model(name):
    """Return a model with fixed answers, whose tokens are characters, and that grades by the length
    of its prompt.
    """
    answers = dict(zip(QUESTIONS, ANSWERS[name], strict=True))

    def answer(messages, *_):
        text = answers.get(messages[-1].text) or f"GRADE: {'CI'[len(messages[-1].text) % 2]}"
        tokens = [
            models.Logprob(token=one, logprob=-(len(text) + at) / 9) for at, one in enumerate(text)
        ]
        likely, message = models.Logprobs(content=tokens), models.ChatMessageAssistant(content=text)
        choice = models.ChatCompletionChoice(
            message=message, logprobs=likely, prompt_logprobs=likely
        )
        return models.ModelOutput(model=name, choices=[choice], usage=models.ModelUsage())

    return models.get_model(f"mockllm/{name}", custom_outputs=answer)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    samples = [
        Sample(id=text, input=text, target=target, metadata={"target_text": target})
        for text, target in QUESTIONS.items()
    ]
    for name in ANSWERS:
        graders = [
            scorers.model_graded_qa(model=model(name)),
            scorers.model_graded_fact(model=model(name)),
        ]
        texts = [
            scorers.match(),
            scorers.includes(),
            scorers.exact(),
            scorers.f1(),
            scorers.answer("line"),
        ]
        others = [
            scorers.pattern(r"ANSWER: (\d+)"),
            scorers.perplexity(),
            scorers.target_perplexity(1),
        ]
        task = inspect_ai.Task(
            samples, name="sums", solver=generate(), scorer=[*texts, *others, *graders, spread()]
        )
        inspect_ai.eval(
            task, model=model(name), log_dir=str(folder), log_format="json", display="none"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
