"""The wheel, and fresh environments with it; each is made once for all the workers of a test
run.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bundles import write_once

ROOT = Path(__file__).parents[2]
REPOSITORY = "owner/bertscore-onnx"
"""Where the packages are built as if they came from."""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        environment = os.environ | {"GITHUB_REPOSITORY": REPOSITORY}
        command = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--sdist",
            "--no-isolation",
            "--outdir",
            folder,
            ROOT,
        ]
        subprocess.run(command, check=True, capture_output=True, env=environment)

    return write_once(tmp_path_factory, "packages", build)


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    return next(packages.glob("*.whl"))


@pytest.fixture(scope="session")
def environment_of(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that makes an environment of a Python with the wheel and its extra `cpu`,
    and without pip.

    It has no bytecode, which takes half of the time of installing.
    """

    def environment(version: str) -> Path:
        python = find_python(version)

        def make(folder: Path) -> None:
            subprocess.run(
                [python, "-m", "venv", "--without-pip", folder], check=True, capture_output=True
            )
            pip = [
                sys.executable,
                "-m",
                "pip",
                "--python",
                python_of(folder),
                "install",
                "--quiet",
                "--no-compile",
            ]
            requirement = f"{wheel}[cpu]"
            subprocess.run(
                [*pip, "--constraint", ROOT / "constraints.txt", requirement], check=True
            )

        return write_once(tmp_path_factory, f"environment-{version}", make)

    return environment


def python_of(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def find_python(version: str) -> str:
    """Return a Python of a version such as 3.13; skip the test if there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    on_path = shutil.which(f"python{version}")
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for python in [*([on_path] if on_path else []), *map(str, of_pyenv)]:
        if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"there is no Python {version} here")
