"""The reward function, called as TRL's trainers call it: with keywords, and columns that it does
not know.
"""

import subprocess
import sys

import pytest
from reward import bertscore_reward

from bertscore_onnx import BERTScorer
from bertscore_onnx_service import MicroBatcher
from tests.examples.conftest import EXAMPLES
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL


@pytest.fixture(scope="module")
def scorer(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        yield scorer


@pytest.fixture
def batcher(scorer):
    with MicroBatcher(scorer) as batcher:
        yield batcher


def reward_of(batcher, completions, references, reward="F"):
    function = bertscore_reward(batcher, reward, "answer")
    return function(
        prompts=["?"] * len(completions),
        completions=completions,
        answer=references,
        completion_ids=[[1]],
        state=None,
    )


@pytest.mark.parametrize("reward", ["P", "R", "F"])
@pytest.mark.parametrize("references", [REFERENCES, SEVERAL])
def test_rewards_are_scores(scorer, batcher, reward, references):
    expected = getattr(scorer.score(CANDIDATES, references), reward).tolist()
    assert reward_of(batcher, CANDIDATES, references, reward) == expected
    assert bertscore_reward(batcher, reward).__name__ == f"bertscore_{reward.lower()}"


def test_conversations(scorer, batcher):
    messages = [[{"role": "assistant", "content": text}] for text in CANDIDATES]
    assert (
        reward_of(batcher, messages, REFERENCES) == scorer.score(CANDIDATES, REFERENCES).F.tolist()
    )
    calls = [
        [
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "assistant", "content": "a dog ran"},
        ]
    ]
    assert reward_of(batcher, calls, ["a dog ran"]) == pytest.approx([1], abs=1e-6)


def test_a_missing_column(batcher):
    with pytest.raises(KeyError, match="reference"):
        bertscore_reward(batcher)(prompts=["?"], completions=["a cat"], target=["a cat"])


def test_the_script(scorer, tiny_bundle):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "reward.py", tiny_bundle],
        capture_output=True,
        text=True,
        check=True,
    )
    texts = [
        (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
        for name in ("candidates.txt", "references.txt")
    ]
    expected = scorer.score(*texts).F.tolist()
    assert [float(line) for line in done.stdout.split()] == pytest.approx(expected, abs=2e-6)
