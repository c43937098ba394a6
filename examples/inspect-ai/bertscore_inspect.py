"""BERTScore as a scorer of inspect_ai: F of each completion against the best of its targets.

    pip install 'bertscore-onnx[cpu]' inspect_ai ./examples/inspect-ai
    inspect score LOG.eval --scorer bertscore_inspect/bertscore -S bundle=BUNDLE --action append

In a task: `Task(dataset, scorer=bertscore("path/to/bundle"))`. P, R and the signature are in each
score's metadata.
"""

from anyio import to_thread
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from bertscore_onnx import BERTScorer


@scorer(metrics=[mean(), stderr()])
def bertscore(bundle: str) -> Scorer:
    """Return a scorer for one bundle, given its path or the name of its model."""
    bert = BERTScorer(bundle)

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        [scores] = (await to_thread.run_sync(bert.score, [answer], [list(target)])).each()
        metadata = {"P": scores.P, "R": scores.R, "signature": str(bert.signature)}
        return Score(value=scores.F, answer=answer, metadata=metadata)

    return score
