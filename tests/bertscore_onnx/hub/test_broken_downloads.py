"""Downloads that break off, are killed, or go on side by side."""

import os
import subprocess
import sys
import threading

import pytest

from bertscore_onnx.errors import HubError, HubUnreachableError
from bertscore_onnx.hub import pull
from bertscore_onnx.hub.download import ATTEMPTS
from bertscore_onnx.hub.remote import CHUNK
from tests.bertscore_onnx.hub.conftest import VARIANT

pytestmark = pytest.mark.slow


@pytest.fixture
def size(hub, tiny_bundle):
    """The bytes of the graph of a bundle on the hub."""
    hub.add("org/tiny", tiny_bundle, VARIANT)
    return (tiny_bundle / "model.onnx").stat().st_size


@pytest.fixture
def start(hub, home):
    """Start to pull in a process of its own."""
    processes = []

    def run():
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "0",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        command = [sys.executable, "-m", "bertscore_onnx", "pull", "org/tiny"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, env=environment, **pipes))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def ranges(hub):
    """Return the first bytes of the parts that were requested."""
    return [int(request.rpartition("bytes=")[2].strip("-")) for request in hub.requests if "bytes=" in request]


@pytest.mark.parametrize("is_called_again", [False, True])
@pytest.mark.parametrize("part", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("source", ["hub", "url"])
def test_a_download_that_breaks_off_is_resumed(hub, size, place, source, part, is_called_again, bundles_in):
    source = "org/tiny" if source == "hub" else f"{hub.url}/files/org/tiny/{VARIANT}"
    cut = min(int(part * size), size - 1)
    hub.cuts = [cut]
    if is_called_again:
        hub.cuts += [0] * ATTEMPTS
        with pytest.raises(HubUnreachableError, match=r"org/tiny"):
            pull(source)
        assert bundles_in() == []
        hub.cuts.clear()
        hub.requests.clear()
    assert pull(source) == place
    assert bundles_in() == [place]
    assert {path.name for path in place.parent.iterdir()} == {place.name, ".lock"}
    if cut >= CHUNK:
        [start] = ranges(hub)
        assert cut - CHUNK < start <= cut


@pytest.mark.parametrize("name", ["bertscore.json", "tokenizer.json"])
def test_other_files_break_off_too(hub, size, place, name, bundles_in):
    hub.file_of_cuts, hub.cuts = name, [100, *[0] * ATTEMPTS]
    with pytest.raises(HubUnreachableError):
        pull("org/tiny")
    assert bundles_in() == []
    hub.cuts.clear()
    assert pull("org/tiny") == place


@pytest.mark.parametrize("answers", [{"ignores_ranges": True}, {"shifts_ranges": -1000}])
def test_a_part_that_begins_too_early_is_put_where_it_belongs(hub, size, place, bundles_in, answers):
    vars(hub).update(answers, cuts=[size // 2])
    assert pull("org/tiny") == place
    assert bundles_in() == [place]


def test_a_part_that_begins_too_late_is_an_error(hub, size, bundles_in):
    hub.shifts_ranges, hub.cuts = 1000, [size // 2]
    with pytest.raises(HubError, match="sends from byte"):
        pull("org/tiny")
    assert bundles_in() == []


def test_a_damaged_beginning_is_downloaded_again(hub, size, place, bundles_in):
    hub.cuts = [size // 2, *[0] * ATTEMPTS]
    with pytest.raises(HubUnreachableError):
        pull("org/tiny")
    hub.cuts.clear()
    [part] = place.parent.rglob("model.onnx")
    part.write_bytes(b"\0" * part.stat().st_size)
    assert pull("org/tiny") == place
    assert bundles_in() == [place]


def test_a_killed_download_is_resumed(hub, size, place, start, bundles_in):
    hub.half_sent = barrier = threading.Barrier(2)
    process = start()
    barrier.wait(30)
    wait_for_bytes(place, size // 2)
    process.kill()
    process.wait(30)
    barrier.wait(30)
    assert bundles_in() == []
    hub.requests.clear()
    assert pull("org/tiny") == place
    assert bundles_in() == [place]
    assert len(ranges(hub)) == 1


@pytest.mark.parametrize("is_killed", [False, True])
def test_of_two_processes_one_waits_and_finishes_if_the_other_is_killed(hub, size, place, start, bundles_in, is_killed):
    hub.half_sent = barrier = threading.Barrier(2)
    first = start()
    barrier.wait(30)
    second = start()
    assert "waiting" in second.stderr.readline()
    if is_killed:
        first.kill()
    barrier.wait(30)
    for process in [second] if is_killed else [first, second]:
        printed, logged = process.communicate(timeout=60)
        assert process.returncode == 0, logged
        assert printed == f"{place}\n"
    assert bundles_in() == [place]
    if not is_killed:
        assert sum("model.onnx" in request for request in hub.requests) == 1


def wait_for_bytes(place, size):
    """Wait until as many bytes of the graph are on the disk as the client buffers for sure."""
    event = threading.Event()
    for _ in range(1000):
        if sum(file.stat().st_size for file in place.parent.rglob("model.onnx")):
            return
        event.wait(0.01)
    raise TimeoutError(f"None of {size} bytes came.")
