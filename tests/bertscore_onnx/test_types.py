"""A type checker finds in the package what a user's code needs of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "support" / "typed_user.py"

SETTINGS = """
[mypy]
strict = true
follow_imports = silent
[mypy-torch.*]
follow_imports = skip
"""


@pytest.mark.slow  # it reads the types of numpy
def test_a_users_code_passes_mypy(tmp_path):
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, (ROOT, ROOT / "models")))}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(SAMPLE)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", ["bertscore_onnx", "export/bertscore_onnx_export", "models/bertscore_onnx_models"])
def test_a_package_says_that_it_is_typed(package):
    assert (ROOT / package / "py.typed").is_file()
