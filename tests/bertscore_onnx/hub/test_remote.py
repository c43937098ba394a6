import contextlib
import shutil
import sys

import fsspec
import pytest

from bertscore_onnx.errors import (
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    InputError,
    MissingExtraError,
)
from bertscore_onnx.hub import pull
from tests.bertscore_onnx.hub.conftest import VARIANT


@pytest.fixture
def url(hub, tiny_bundle):
    """The URL of a bundle on a web server, which lists nothing."""
    hub.add("org/tiny", tiny_bundle, VARIANT)
    return f"{hub.url}/files/org/tiny/{VARIANT}"


@pytest.fixture
def in_memory(hub, tiny_bundle):
    """The URL of a bundle in a store of fsspec."""
    store = fsspec.filesystem("memory")
    store.put(str(tiny_bundle), "/bundles/tiny", recursive=True)
    yield "memory://bundles/tiny"
    store.rm("/bundles", recursive=True)


@pytest.mark.parametrize(("name", "variant"), [(VARIANT, None), (f"{VARIANT}/bertscore.json", None), ("", VARIANT)])
def test_a_web_server_needs_no_list(url, hub, place, bundles_in, name, variant):
    assert pull(url.removesuffix(VARIANT) + name, variant=variant) == place
    assert bundles_in() == [place]
    assert not any("/api/" in request for request in hub.requests)


def test_a_server_that_declares_no_sizes_will_do(url, hub, place, bundles_in):
    hub.declares_sizes = False
    assert pull(url) == place
    assert bundles_in() == [place]


def test_a_file_without_an_end_is_given_up(url, hub, home, bundles_in, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.hub.download.MAX_UNDECLARED", 1_000_000)
    hub.endless = "model.onnx"
    with pytest.raises(HubError, match=r"more of model\.onnx than the 1,000,000 bytes"):
        pull(url)
    assert bundles_in() == []
    assert sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) < 100_000


@pytest.mark.parametrize("status", [403, 404, 500])
def test_every_status_is_an_error(url, hub, status):
    hub.status = status
    with pytest.raises((HubError, BundleNotFoundError), match=str(status)):
        pull(url)


def test_a_url_of_nothing_is_told(url, hub):
    with pytest.raises(BundleNotFoundError, match=r"bertscore\.json is not there"):
        pull(f"{hub.url}/files/org/other")
    with pytest.raises(InputError, match="names no machine"):
        pull("https:///files")


def test_what_was_pulled_is_found_offline(url, hub, place, monkeypatch):
    pull(url)
    hub.requests.clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert pull(url) == place
    assert hub.requests == []


def test_secrets_of_a_url_are_not_kept(url, hub, place):
    secret = url.replace("//", "//me:hunter2@") + "?key=hunter3"
    assert pull(secret) == place
    assert any("key=hunter3" in request for request in hub.requests)
    assert "hunter" not in (place / "source.json").read_text()
    assert pull(secret, offline=True) == place


def test_user_and_password_come_from_netrc(url, hub, place, tmp_path, monkeypatch):
    with contextlib.suppress(ImportError):  # requests looks there itself; newer clients do not send by it
        monkeypatch.setattr("requests.sessions.get_netrc_auth", lambda url: None)
    hub.login = "me:hunter2"
    with pytest.raises(HubError, match="401"):
        pull(url)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert pull(url) == place


def test_a_damaged_netrc_is_ignored(url, place, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("a line of something else")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert pull(url) == place


def test_stores_of_fsspec_are_read(in_memory, place, bundles_in, tiny_bundle):
    assert pull(in_memory) == place
    assert bundles_in() == [place]
    shutil.rmtree(place)
    assert pull(f"file://{tiny_bundle}") == place


def test_a_store_without_the_file_is_told(in_memory, tiny_bundle, tmp_path):
    with pytest.raises(BundleNotFoundError, match=r"bertscore\.json is not there"):
        pull(f"{in_memory}/other")
    bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")
    (bundle / "model.onnx").unlink()
    with pytest.raises(BundleNotFoundError, match=r"model\.onnx is not there"):
        pull(f"file://{bundle}")


def test_a_store_whose_package_is_missing_names_it(hub, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match=r"needs s3fs, .* `pip install s3fs`"):
        pull("s3://bucket/tiny")


def test_an_unknown_store_is_refused(hub):
    with pytest.raises(InputError, match="nowhere"):
        pull("nowhere://bucket/tiny")


def test_offline_holds_for_every_store_but_this_machine(in_memory, place, tiny_bundle, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE"):
        pull(in_memory)
    assert pull(f"file://{tiny_bundle}") == place
