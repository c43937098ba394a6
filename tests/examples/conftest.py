"""Texts that the examples score, and the environments that they are run in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertscore_onnx import BERTScorer

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFLINE = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",  # nothing listens there
    "LANGSMITH_TRACING": "false",
    "DO_NOT_TRACK": "1",  # evidently
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "OPIK_TRACK_DISABLE": "true",
    "OPIK_SENTRY_ENABLE": "false",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "RAGAS_DO_NOT_TRACK": "true",
}


@pytest.fixture(scope="session")
def pairs():
    return [
        {
            "candidate": "It is freezing today.",
            "reference": ["The sun shines.", "It is cold today."],
        },
        {"candidate": "A dog ran across the garden.", "reference": ["The dog runs in the garden."]},
        {
            "candidate": "He sold the house.",
            "reference": ["She cooked dinner for the family.", "A boat."],
        },
    ]


@pytest.fixture(scope="session")
def scorer(minilm_bundle):
    with BERTScorer(minilm_bundle, device="cpu") as scorer:
        yield scorer


@pytest.fixture(scope="session")
def expected(scorer, pairs):
    return scorer.score(
        [pair["candidate"] for pair in pairs], [pair["reference"] for pair in pairs]
    )


@pytest.fixture
def run(tmp_path):
    """Run a program of an integration, from an empty folder, so that it can import the examples;
    return its output.

    With `fails` it must end with another status than 0.
    """

    def run(integration, program, *arguments, cwd=tmp_path, fails=False, **variables):
        folder = Path(sys.prefix) / "integrations" / integration / "bin"
        assert folder.exists(), f"{folder} is missing: make it with `make test-integrations`."
        path = os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [folder / program, *map(str, arguments)],
            cwd=cwd,
            env={
                **os.environ,
                **OFFLINE,
                "HF_HOME": str(tmp_path / "hf"),
                "PROMPTFOO_CONFIG_DIR": str(tmp_path / "promptfoo"),
                "PROMPTFOO_PYTHON": str(folder / "python"),
                "PYTHONPATH": path,
                **variables,
            },
            capture_output=True,
            text=True,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout

    return run
