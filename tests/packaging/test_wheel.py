"""The wheel with the extra `cpu` alone is enough to score, in an environment that has no framework to import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCORE = """
import json, sys
from bertscore_onnx import BERTScorer
with BERTScorer(sys.argv[1]) as scorer:
    scores = scorer.score(["It is freezing today."], ["It is cold today."])
print(json.dumps([float(scores.F[0]), sorted(sys.modules)]))
"""


def run(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, cwd="/").stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and its extra `cpu`, without pip."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    wheel = next(folder.glob("*.whl"))
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    run(*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", f"{wheel}[cpu]")
    return environment


def test_a_bundle_scores_without_any_framework(environment, minilm_bundle):
    score, loaded = json.loads(run(environment / "bin" / "python", "-c", SCORE, minilm_bundle))
    assert score == pytest.approx(0.9007199, abs=1e-5)  # bert-score 0.3.13
    assert "onnxruntime" in loaded
    assert not {*loaded} & {"torch", "transformers", "optimum", "onnx"}


@pytest.mark.parametrize("framework", ["torch", "transformers", "optimum", "onnx"])
def test_no_framework_is_installed(environment, framework):
    code = f"import importlib.util; print(importlib.util.find_spec({framework!r}))"
    assert run(environment / "bin" / "python", "-c", code).strip() == "None"


@pytest.mark.parametrize("file", ["page/index.html", "page/style.css", "page/script.js", "endpoints/openapi.json"])
def test_the_data_of_the_server_is_installed(environment, file):
    assert [*environment.rglob(f"bertscore_onnx/server/{file}")]


def test_the_environment_stays_small(environment):
    size = sum(file.stat().st_size for file in environment.rglob("*") if file.is_file() and not file.is_symlink())
    assert size <= 237e6
