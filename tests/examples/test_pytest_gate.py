"""`examples/pytest-gate/`: a test fails if scores drop by more than allowed and by more than
chance.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.examples.conftest import EXAMPLES

pytestmark = pytest.mark.full  # it starts pytest
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
TESTS = """
import json, pathlib, pytest
CASES = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())
REFERENCES = json.loads((pathlib.Path(__file__).parent / "references.json").read_text())

@pytest.mark.parametrize("name", CASES)
def test_system(name, assert_no_drop):
    candidates, allowed = CASES[name]
    assert_no_drop(name, candidates, REFERENCES[:len(candidates)], allowed=allowed)
"""


def lines_of(name):
    return (EXAMPLES / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def gate(tmp_path, minilm_bundle):
    """Run pytest with the example's conftest on cases of (candidates, allowed); return its output
    by name of case.
    """
    shutil.copy(EXAMPLES / "pytest-gate" / "conftest.py", tmp_path)
    (tmp_path / "test_system.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "references.json").write_text(
        json.dumps(lines_of("references.txt")), encoding="utf-8"
    )

    def run(cases, bundle=minilm_bundle, **variables):
        (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-rA",
                "--tb=line",
                "-p",
                "no:cacheprovider",
                tmp_path,
            ],
            cwd=tmp_path,
            env={**ALONE, "BERTSCORE_BUNDLE": str(bundle), "COLUMNS": "400", **variables},
            capture_output=True,
            text=True,
        )
        outcome = {
            name: line
            for name in cases
            for line in done.stdout.splitlines()
            if f"test_system[{name}]" in line
        }
        assert outcome.keys() == cases.keys(), done.stdout + done.stderr
        return done.returncode, outcome

    return run


def worse(texts):
    return [" ".join(text.split()[: len(text.split()) // 2]) for text in texts]


def test_a_significant_drop_beyond_the_allowance_fails(gate):
    now = lines_of("candidates.txt")
    names = ["same", "dropped", "dropped-as-allowed", "one-worse", "better", "few"]
    before = dict.fromkeys(names, (now, 0.005)) | {
        "better": (worse(now), 0.005),
        "few": (now[:4], 0.005),
    }
    changed = {
        "same": (now, 0.005),
        "dropped": (worse(now), 0.005),
        "dropped-as-allowed": (worse(now), 0.4),
        "one-worse": ([*now[:-1], "Yes."], 0.005),
        "better": (now, 0.005),
        "few": (now[:4], 0.005),
    }
    code, outcome = gate({"few": before["few"]})
    assert (code, "is missing" in outcome["few"]) == (1, True)
    code, outcome = gate(before, UPDATE_BASELINE="1")
    assert (code, {line.split()[0] for line in outcome.values()}) == (0, {"PASSED"})
    code, outcome = gate(changed)
    assert code == 1
    failed = {name: line for name, line in outcome.items() if line.startswith("FAILED")}
    assert failed.keys() == {"dropped", "few"}
    assert "The mean F of dropped dropped by 0." in failed["dropped"]
    assert "4 scores stored, 4 now" in failed["few"]


def test_another_scorer_fails(gate, tiny_bundle):
    cases = {"translations": (lines_of("candidates.txt"), 0.005)}
    gate(cases, UPDATE_BASELINE="1")
    code, outcome = gate(cases, bundle=tiny_bundle)
    assert (code, "another scorer" in outcome["translations"]) == (1, True)


def test_the_example_of_a_test_runs(minilm_bundle, tmp_path):
    for name in ("candidates.txt", "references.txt"):
        shutil.copy(EXAMPLES / name, tmp_path)
    shutil.copytree(
        EXAMPLES / "pytest-gate",
        tmp_path / "pytest-gate",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path / "pytest-gate"]
    environ = {**ALONE, "BERTSCORE_BUNDLE": str(minilm_bundle)}
    subprocess.run(
        command,
        cwd=tmp_path,
        env={**environ, "UPDATE_BASELINE": "1"},
        check=True,
        capture_output=True,
    )
    subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True)
