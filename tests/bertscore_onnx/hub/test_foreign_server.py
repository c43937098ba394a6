"""Pulls from a hub that others wrote: olah, which serves local git repositories.

It is taken from the path or from the variable OLAH; install it into an environment of its own (`pip install olah`).
"""

import os
import shutil
import subprocess

import httpx
import pytest

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import BundleNotFoundError, InputError
from bertscore_onnx.hub import pull
from tests.bertscore_onnx.hub.conftest import VARIANT
from tests.support.http_server import wait_until

OLAH = os.environ.get("OLAH") or shutil.which("olah-cli")

pytestmark = pytest.mark.skipif(OLAH is None, reason="olah is not installed, nor named by OLAH")


@pytest.fixture
def git(tmp_path):
    """Return a function that runs git in the repository of the model."""
    repository = tmp_path / "mirrors" / "models" / "org" / "tiny"
    repository.mkdir(parents=True)

    def run(*arguments):
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(repository), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    run("init", "--quiet", "--initial-branch", "main")
    run.repository = repository
    return run


@pytest.fixture
def commit(git, tiny_bundle):
    """The commit that holds the tiny bundle."""
    shutil.copytree(tiny_bundle, git.repository / VARIANT)
    git("add", "--all")
    git("commit", "--quiet", "--message", "Add a bundle")
    return git("rev-parse", "HEAD")


@pytest.fixture
def olah(online, tmp_path, commit):
    """The server, where this process looks for a hub."""
    url = os.environ["HF_ENDPOINT"]
    address = url.removeprefix("http://")
    (tmp_path / "olah.toml").write_text(
        f'[basic]\nhost = "127.0.0.1"\nport = {address.partition(":")[2]}\n'
        f'mirror-scheme = "http"\nmirror-netloc = "{address}"\nmirror-lfs-netloc = "{address}"\n'
        f'repos-path = "{tmp_path}/repos"\nmirrors-path = ["{tmp_path}/mirrors"]\n'
        "[accessibility]\noffline = true\n"
    )
    command = [OLAH, "--config", str(tmp_path / "olah.toml"), "--log-path", str(tmp_path / "logs")]
    with (tmp_path / "olah.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
    try:
        wait_until(lambda: answers(f"{url}/api/models/org/tiny/revision/main"), seconds=30)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def answers(url):
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def test_a_bundle_is_pulled_and_found_offline(olah, commit, place, bundles_in, monkeypatch):
    assert pull(f"org/tiny@{commit}/{VARIANT}") == place
    assert bundles_in() == [place]
    assert pull("org/tiny@main") == place
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert pull("org/tiny@main") == place


def test_a_download_of_an_earlier_call_is_resumed(olah, place, tiny_bundle, bundles_in):
    pull("org/tiny@main")
    content = (place / "model.onnx").read_bytes()
    staging = place.with_name(f".{place.name}.pulling-{read_manifest(place).digest[:12]}")
    place.rename(staging)
    (staging / "bertscore.json").unlink()
    (staging / "source.json").unlink()
    (staging / "model.onnx").write_bytes(content[: len(content) // 2])
    assert bundles_in() == []
    assert pull("org/tiny@main") == place
    assert bundles_in() == [place]


def test_a_missing_name_is_an_error(olah, git, all_layers_bundle):
    with pytest.raises(BundleNotFoundError, match="org/other"):
        pull("org/other@main")
    with pytest.raises(BundleNotFoundError, match=VARIANT):
        pull("org/tiny@main/layer-9-slow-fp32")
    shutil.copytree(all_layers_bundle, git.repository / "all-layers-slow-fp32")
    git("add", "--all")
    git("commit", "--quiet", "--message", "Add another")
    with pytest.raises(InputError, match="several variants"):
        pull(f"org/tiny@{git('rev-parse', 'HEAD')}")
