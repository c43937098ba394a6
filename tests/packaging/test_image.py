"""The steps of `examples/Dockerfile` install a server, which also runs in a very strict container.

The container is made with Linux namespaces: its root can only be read, and it has no home, no user
by that number, and one CPU.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from bertscore_onnx import __version__
from tests.support.bundles import write_once
from tests.support.fake_hub import free_port

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "examples" / "Dockerfile").read_text(encoding="utf-8")
LINES = [line for line in DOCKERFILE.splitlines() if line and line[0] != "#"]
KEY = "k" * 32
MEMORY = 512e6
SYSTEM = ["/usr", "/bin", "/lib", "/lib64", "/dev", "/sys"]
GUARD = 60

CONTAIN = """
set -e
root=$1; shift
mount -t tmpfs -o mode=755 image "$root"
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
    shift
done
shift
mkdir "$root/proc"
mount -t proc -o ro proc "$root/proc"
mount -o remount,ro "$root"
exec chroot --userspec=12345:12345 --groups= "$root" taskset -c 0 env -i "$@"
"""
"""Takes a folder to make a root of, the folders to show in there, `--`, and the command."""


RULES = {
    "the base image has a version": r"FROM \S+:\d[\w.-]*$",
    "packages have the tested versions": r"RUN pip install [^&]*--constraint \S+",
    "pip keeps no cache": r"RUN pip install [^&]*--no-cache-dir",
    "the user is a number, and not root": r"USER [1-9]\d*:[1-9]\d*$",
}
"""What a line of the Dockerfile must be like."""


FORBIDDEN = r"ADD |ENV .*(KEY|SECRET|TOKEN)|USER (root|0)\b|RUN .*\bsudo\b|FROM \S+:latest"
"""Nothing is added from elsewhere, secret or root's."""


def instruction(name: str) -> list[str]:
    """Return the words of an instruction of the Dockerfile in its exec form."""
    [line] = [line for line in LINES if line.startswith(name)]
    words: list[str] = json.loads(line[line.index("[") :])
    return words


@pytest.fixture(scope="session")
def image(packages, minilm_bundle, tmp_path_factory) -> Path:
    """Run the steps of the image in a clean folder, in place of its root, with the same Python as
    these tests.
    """

    def build(root: Path) -> None:
        context = tmp_path_factory.mktemp("context")
        (context / "dist").mkdir()
        wheel = next(packages.glob("*.whl"))
        shutil.copy(wheel, context / "dist")
        older = wheel.name.replace(__version__, "0.0.1")  # of an earlier build
        shutil.copy(wheel, context / "dist" / older)
        shutil.copy(ROOT / "constraints.txt", context)
        shutil.copytree(minilm_bundle, context / "bundle")
        subprocess.run([sys.executable, "-m", "venv", root / "python"], check=True)
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BERTSCORE", "PYTHON"))
        }
        variables["PATH"] = f"{root}/python/bin:/usr/bin:/bin"
        variables["PIP_COMPILE"] = "0"  # bytecode takes half of the time of installing
        for step in LINES:
            if not step.startswith(("COPY", "RUN")):
                continue
            command = re.sub(r"^RUN |--chmod=\d+ |--no-cache-dir ", "", step)
            command = re.sub(r"(?<=[\s(])/(wheels|bundle)", rf"{root}/\1", command)
            if command.startswith("COPY"):
                *sources, target = command.split()[1:]
                command = f"mkdir -p {target} && cp -r {' '.join(sources)} {target}"
            subprocess.run(["/bin/sh", "-ec", command], cwd=context, env=variables, check=True)
        (root / "keys.txt").write_text(KEY + "\n", encoding="utf-8")

    return write_once(tmp_path_factory, "image", build)


def container(root: Path, image: Path) -> list[str | Path]:
    """Return the command that runs another one, of an image, in a container."""
    folders = [*filter(os.path.isdir, SYSTEM), os.path.realpath(sys.base_prefix), image]
    command = ["unshare", "--mount", "sh", "-c", CONTAIN, "sh", root, *folders, "--"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this user may make no namespaces here: {error}")
    return command


@contextmanager
def serving(command: list[str | Path], check: list[str | Path], log: Path):
    """Run a server until the check of its health passes; yields its process."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stderr=file, env={}, cwd="/")
    try:
        until = time.monotonic() + GUARD
        while subprocess.run(check, capture_output=True).returncode:
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < until
            threading.Event().wait(0.2)
        yield process
    finally:
        process.kill()
        process.wait()


def peak_memory(process: subprocess.Popen) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])


@pytest.mark.parametrize("is_contained", [False, True])
def test_it_is_healthy_serves_in_little_memory_and_ends_with_0(image, tmp_path, is_contained):
    prefix = container(tmp_path, image) if is_contained else []
    port = str(free_port())
    words = {"/bundle": image / "bundle" / "bundle", "/keys.txt": image / "keys.txt", "8080": port}
    program, *options = [*instruction("ENTRYPOINT"), *instruction("CMD")]
    command = [*prefix, image / "python" / "bin" / program]
    _, *check = instruction("HEALTHCHECK")
    check[-1] = check[-1].replace("8080", port)
    check = [image / "python" / "bin" / "python", *check]
    log = tmp_path / "log"
    with serving([*command, *(words.get(word, word) for word in options)], check, log) as process:
        texts = [" ".join([f"word {number}"] * 40) for number in range(96)]
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/score",
            json={"pairs": [{"candidate": text, "reference": text[10:]} for text in texts]},
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=GUARD,
        )
        assert answer.status_code == 200
        if sys.platform == "linux":
            weights = sum(file.stat().st_size for file in words["/bundle"].iterdir())
            assert peak_memory(process) <= weights + MEMORY
        process.terminate()
        assert process.wait(GUARD) == 0
    assert "Stopped." in log.read_text(encoding="utf-8")


def test_the_dockerfile_follows_the_rules():
    missing = [
        rule for rule, form in RULES.items() if not any(re.match(form, line) for line in LINES)
    ]
    assert missing == []
    assert [line for line in LINES if re.match(FORBIDDEN, line)] == []
