"""The wheel with the extra `cpu` alone is enough to score, in an environment that has no framework
to import.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import python_of

SAMPLE = Path(__file__).with_name("sample.py")
VERSIONS = ["3.11", "3.13"]
FRAMEWORKS = ["torch", "transformers", "onnx"]
SCORE = """
import json, sys
from bertscore_onnx import BERTScorer
with BERTScorer(sys.argv[1]) as scorer:
    scores = scorer.score(["It is freezing today."], ["It is cold today."])
print(json.dumps([float(scores.F[0]), sorted(sys.modules)]))
"""


def run(*command: str | Path) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")
    }
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd="/", env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(params=VERSIONS)
def environment(request, environment_of):
    return environment_of(request.param)


def test_a_bundle_scores_without_any_framework(environment, minilm_bundle):
    score, loaded = json.loads(run(python_of(environment), "-c", SCORE, minilm_bundle))
    assert score == pytest.approx(0.9007199, abs=1e-5)  # bert-score 0.3.13
    assert "onnxruntime" in loaded
    assert not {*loaded} & {*FRAMEWORKS}


def test_no_framework_is_installed(environment):
    code = (
        f"import importlib.util as u, json; print(json.dumps([n for n in {FRAMEWORKS} if "
        "u.find_spec(n)]))"
    )
    assert json.loads(run(python_of(environment), "-c", code)) == []


def test_a_users_code_passes_mypy(environment_of, tmp_path):
    # away from the packages' sources, which mypy would find first
    sample = shutil.copy(SAMPLE, tmp_path)
    options = [
        "--strict",
        "--config-file=",
        "--python-version",
        VERSIONS[0],
        "--cache-dir",
        tmp_path / "cache",
    ]
    python = python_of(environment_of(VERSIONS[0]))
    assert "Success" in run(
        sys.executable, "-m", "mypy", *options, "--python-executable", python, sample
    )


@pytest.mark.parametrize(
    "file", ["page/index.html", "page/style.css", "page/script.js", "openapi.json"]
)
def test_the_data_of_the_server_is_in_the_wheel(wheel, file):
    assert f"bertscore_onnx_service/http/{file}" in zipfile.ZipFile(wheel).namelist()


def test_the_environment_stays_small(environment_of):
    environment = environment_of(VERSIONS[0])
    files = [file for file in environment.rglob("*") if file.is_file() and not file.is_symlink()]
    # bytecode adds 38 MB
    assert sum(file.stat().st_size for file in files if file.suffix != ".pyc") <= 199e6
