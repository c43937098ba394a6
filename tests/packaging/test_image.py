"""The server runs in a very strict container, made with Linux namespaces, as `examples/Dockerfile`
intends.

Its root can only be read, it has no home and no user by that number, one CPU, and the server is PID
1.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from bertscore_onnx import __version__
from tests.support.fake_hub import free_port

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "examples" / "Dockerfile"
PYTHON = Path(os.path.realpath(sys.prefix)) / "bin" / "python"
USER = "12345:12345"
KEY = "k" * 32
MEMORY = 512e6
SYSTEM = ["/usr", "/bin", "/lib", "/lib64", "/dev", "/sys"]
GUARD = 60

CONTAIN = """
set -e
root=$1; shift
mount -t tmpfs -o mode=755 image "$root"
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else : > "$root$2"; fi
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
    shift 2
done
shift
mkdir "$root/proc"
mount -t proc -o ro proc "$root/proc"
mount -o remount,ro "$root"
exec chroot --userspec=%s --groups= "$root" "$@"
"""
"""Takes a folder to make a root of, pairs of a path and its name in there, `--`, and the
command.
"""


RULES = {
    "the base image has a version": r"FROM \S+:\d[\w.-]*$",
    "packages have the tested versions": r"RUN pip install [^&]*--constraint \S+",
    "pip keeps no cache": r"RUN pip install [^&]*--no-cache-dir",
    "the bundle is inside": r"COPY (--chmod=\d+ )?bundle /bundle$",
    "the user is a number, and not root": r"USER [1-9]\d*:[1-9]\d*$",
    "signals reach the server": r"ENTRYPOINT \[.*\]$",
    "its health is checked": r"HEALTHCHECK .*CMD \[.*\]$",
}
"""What a line of the Dockerfile must be like."""


FORBIDDEN = r"ADD |ENV .*(KEY|SECRET|TOKEN)|USER (root|0)\b|RUN .*\bsudo\b|FROM \S+:latest"
"""Nothing is added from elsewhere, secret or root's."""


def instruction(name: str) -> list[str]:
    """Return the words of an instruction of the Dockerfile in its exec form."""
    found = re.search(
        rf"^{name} .*?(\[.*\])$", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert found, name
    words: list[str] = json.loads(found[1])
    return words


def contained(root: Path, bundle: Path, keys: Path, *command: str | Path) -> list[str]:
    """Return the command that runs another one in a container."""
    folders = [
        *filter(os.path.isdir, SYSTEM),
        os.path.realpath(sys.base_prefix),
        os.path.realpath(sys.prefix),
        ROOT,
    ]
    mounts = [(folder, folder) for folder in folders] + [(bundle, "/bundle"), (keys, "/keys.txt")]
    variables = ["PATH=/usr/bin:/bin", f"PYTHONPATH={ROOT}:{ROOT / 'models'}"]
    words = [
        *(
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            CONTAIN % USER,
            "sh",
            root,
        ),
        *(path for mount in mounts for path in mount),
        *("--", "/usr/bin/env", "-i", *variables, "taskset", "-c", "0", *command),
    ]
    return [str(word) for word in words]


class Container:
    """The process in the container, and its log."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("w") as file:
            self._outer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def pids(self) -> list[int]:
        """The outer number of PID 1, or nothing after its end."""
        pid = self._outer.pid
        return [
            int(number)
            for number in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        ]

    def await_port(self) -> int:
        until = time.monotonic() + GUARD
        while time.monotonic() < until and self._outer.poll() is None:
            if found := re.search(r"Serving .* on http://[^:]+:(\d+)", self.log):
                return int(found[1])
            threading.Event().wait(0.05)
        raise AssertionError(f"It does not serve: {self.log}")

    def peak_memory(self) -> float:
        [pid] = self.pids
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def wait(self) -> int:
        return self._outer.wait(GUARD)

    def kill(self) -> None:
        if self._outer.poll() is None:
            self._send(signal.SIGKILL)  # to change the user has freed it from --kill-child
            self._outer.kill()
        self._outer.wait()

    def _send(self, number: int) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@pytest.fixture
def start(tmp_path, minilm_bundle):
    """Returns a function that runs a command in a container with the bundle and a file of keys."""
    root, keys = tmp_path / "root", tmp_path / "keys.txt"
    root.mkdir()
    keys.write_text(KEY + "\n", encoding="utf-8")
    try:
        subprocess.run(
            contained(root, minilm_bundle, keys, "true"), check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this user may make no namespaces here: {error}")

    @contextmanager
    def run() -> Iterator[Container]:
        _, *entry = instruction("ENTRYPOINT")
        entry[entry.index("--port") + 1] = "0"
        command = [PYTHON, "-m", "bertscore_onnx", *entry, *instruction("CMD")]
        container = Container(contained(root, minilm_bundle, keys, *command), tmp_path / "log")
        try:
            yield container
        finally:
            container.kill()

    return run


def test_it_serves_in_little_memory_and_ends_with_0(start, minilm_bundle):
    with start() as container:
        url = f"http://127.0.0.1:{container.await_port()}"
        headers = {"Authorization": f"Bearer {KEY}"}
        texts = [" ".join([f"word {number}"] * 40) for number in range(96)]
        pairs = [{"candidate": text, "reference": text[10:]} for text in texts]
        answer = httpx.post(
            f"{url}/v1/score", json={"pairs": pairs}, headers=headers, timeout=GUARD
        )
        assert answer.status_code == 200
        weights = sum(file.stat().st_size for file in minilm_bundle.iterdir())
        assert container.peak_memory() <= weights + MEMORY
        container.terminate()
        assert container.wait() == 0
    assert "Stopped." in container.log


def test_the_check_of_its_health_reads_the_port_that_it_serves():
    entry, [_, _, check] = instruction("ENTRYPOINT"), instruction("HEALTHCHECK")
    assert f"127.0.0.1:{entry[entry.index('--port') + 1]}/health/ready" in check


def test_the_dockerfile_follows_the_rules():
    lines = [
        line
        for line in DOCKERFILE.read_text(encoding="utf-8").splitlines()
        if line and line[0] != "#"
    ]
    assert [
        rule for rule, form in RULES.items() if not any(re.match(form, line) for line in lines)
    ] == []
    assert [line for line in lines if re.match(FORBIDDEN, line)] == []


def test_its_steps_install_a_server_that_is_healthy(packages, minilm_bundle, tmp_path):
    """The steps of the image run in a clean folder, in place of its root, with the same Python as
    these tests.
    """
    steps = [
        line
        for line in DOCKERFILE.read_text(encoding="utf-8").splitlines()
        if line.startswith(("COPY", "RUN"))
    ]
    context, root = tmp_path / "context", tmp_path / "root"
    (context / "dist").mkdir(parents=True)
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
    variables["PATH"] = f"{root / 'python' / 'bin'}:/usr/bin:/bin"
    variables["PIP_COMPILE"] = "0"  # bytecode takes half of the time of installing

    def inside(text: str) -> str:
        return re.sub(r"(?<=[\s(])/(wheels|bundle|keys)", rf"{root}/\1", text)

    for step in steps:
        command = inside(re.sub(r"^RUN |--chmod=\d+ |--no-cache-dir ", "", step))
        if command.startswith("COPY"):
            *sources, target = command.split()[1:]
            command = f"mkdir -p {target} && cp -r {' '.join(sources)} {target}"
        subprocess.run(["/bin/sh", "-ec", command], cwd=context, env=variables, check=True)
    keys = root / "keys.txt"
    keys.write_text(KEY + "\n", encoding="utf-8")
    words = {
        "/bundle": root / "bundle" / "bundle",
        "/keys.txt": keys,
        "0.0.0.0": "127.0.0.1",  # noqa: S104
        "8080": str(port := free_port()),
    }
    serve = [
        str(words.get(word, word)) for word in [*instruction("ENTRYPOINT"), *instruction("CMD")]
    ]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [root / "python" / "bin" / serve[0], *serve[1:]], env=variables, cwd="/", stderr=log
        )
    try:
        _, *check = instruction("HEALTHCHECK")
        check[-1] = check[-1].replace("8080", str(port))
        until = time.monotonic() + GUARD
        while subprocess.run(
            [root / "python" / "bin" / "python", *check], capture_output=True
        ).returncode:
            assert server.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
            assert time.monotonic() < until
            threading.Event().wait(0.2)
        server.terminate()
        assert server.wait(GUARD) == 0
    finally:
        server.kill()
        server.wait()
