import json
import resource
import shutil
import sys
import threading

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, score
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.errors import (
    BundleNotFoundError,
    DigestError,
    HubError,
    HubUnreachableError,
    InputError,
    ManifestError,
    MissingExtraError,
    UnsafePathError,
)
from bertscore_onnx.hub import pull
from tests.bertscore_onnx.hub.conftest import VARIANT
from tests.support.processes import forks, in_forked_child

PAIRS = (["the cat sat"], ["the dog sat on the mat"])


@pytest.fixture
def commit(hub, tiny_bundle):
    """The commit of a repository that holds the tiny bundle."""
    return hub.add("org/tiny", tiny_bundle, VARIANT)


def downloads(hub):
    return [request for request in hub.requests if "model.onnx" in request]


def go_offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_a_bundle_lands_where_its_model_is_looked_for(hub, commit, place, tiny_bundle, bundles_in):
    assert pull("org/tiny") == place
    assert bundles_in() == [place]
    names = {"bertscore.json", *read_manifest(tiny_bundle).files, "source.json"}
    assert {file.name for file in place.iterdir()} == names
    with BERTScorer("tiny-bert", num_layers=2, device="cpu") as pulled, BERTScorer(tiny_bundle, device="cpu") as own:
        assert pulled.hash == own.hash
        assert np.array_equal(pulled.score(*PAIRS).F, own.score(*PAIRS).F)


def test_where_it_came_from_is_remembered(hub, commit):
    [origin] = json.loads((pull("org/tiny") / "source.json").read_bytes())
    assert origin.pop("pulled").startswith("20")
    assert origin == {"place": "hf://org/tiny", "revision": None, "variant": VARIANT, "commit": commit}


def test_a_second_pull_downloads_nothing(hub, commit, place):
    pull("org/tiny")
    hub.requests.clear()
    assert pull("org/tiny") == place
    assert not downloads(hub)


@pytest.mark.parametrize("name", ["org/tiny@v1", "hf://org/tiny@v1", f"org/tiny@v1/{VARIANT}"])
def test_a_revision_can_be_named(hub, tiny_bundle, changed, name):
    hub.add("org/tiny", tiny_bundle, VARIANT, ref="v1")
    hub.add("org/tiny", changed(golden_difference=0.5), VARIANT)
    assert read_manifest(pull(name)).golden_difference != 0.5


def test_a_revision_may_have_slashes(hub, tiny_bundle, place):
    hub.add("org/tiny", tiny_bundle, VARIANT, ref="refs/pr/1")
    assert pull("org/tiny@refs/pr/1") == place


def test_the_only_variant_need_not_be_named(hub, commit, all_layers_bundle, place):
    hub.add("org/tiny", all_layers_bundle, "all-layers-slow-fp32")
    with pytest.raises(InputError, match=rf"several variants: all-layers-slow-fp32, {VARIANT}"):
        pull("org/tiny")
    assert pull("org/tiny", variant=VARIANT) == place
    assert pull("org/tiny/all-layers-slow-fp32").name == "all-layers-slow-fp32"


def test_a_repository_may_hold_a_bundle_itself(hub, tiny_bundle, place):
    hub.add("org/tiny", tiny_bundle, "")
    assert pull("org/tiny") == place


def test_what_is_not_there_is_told_with_what_is(hub, commit):
    with pytest.raises(BundleNotFoundError, match="no repository org/other"):
        pull("org/other")
    with pytest.raises(BundleNotFoundError, match=r"no revision 'v9'\. Its branches and tags are: main"):
        pull("org/tiny@v9")
    with pytest.raises(BundleNotFoundError, match=rf"no variant 'layer-9-slow-fp32'\. Its variants are: {VARIANT}"):
        pull("org/tiny/layer-9-slow-fp32")
    hub.repositories["org/tiny"].commit({"README.md": b"nothing"})
    with pytest.raises(BundleNotFoundError, match="holds no bundle"):
        pull("org/tiny")


def test_a_hub_that_lists_no_revisions_will_do(hub, commit):
    hub.lists_refs = False
    with pytest.raises(BundleNotFoundError, match=r"no revision 'v9'\.$"):
        pull("org/tiny@v9")


def test_a_commit_is_asked_for_once(hub, commit, place):
    assert pull(f"org/tiny@{commit}") == place
    hub.requests.clear()
    assert pull(f"org/tiny@{commit}") == place
    assert hub.requests == []


@pytest.mark.parametrize("name", ["org/tiny", "org/tiny@main", f"org/tiny/{VARIANT}"])
def test_what_was_pulled_is_found_offline(hub, commit, place, monkeypatch, name):
    pull(name)
    go_offline(monkeypatch)
    hub.requests.clear()
    assert pull(name) == place
    assert pull(f"org/tiny@{commit}") == place
    assert hub.requests == []


def test_the_store_alone_can_be_asked(hub, commit, place):
    with pytest.raises(HubUnreachableError, match="not in the home folder"):
        pull("org/tiny", offline=True)
    pull("org/tiny")
    hub.requests.clear()
    assert pull("org/tiny", offline=True) == place
    assert hub.requests == []


def test_a_hub_that_is_away_leaves_what_was_pulled(hub, commit, place, caplog):
    pull("org/tiny")
    hub.leave()
    assert pull("org/tiny") == place
    assert "pulled from there earlier" in caplog.text


def test_another_revision_is_not_taken_for_the_one_pulled(hub, commit, monkeypatch):
    pull("org/tiny")
    go_offline(monkeypatch)
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE"):
        pull("org/tiny@v1")


def test_nothing_pulled_and_no_network_is_told(hub, commit, monkeypatch, bundles_in):
    hub.leave()
    with pytest.raises(HubUnreachableError, match="org/tiny cannot be reached"):
        pull("org/tiny")
    go_offline(monkeypatch)
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE=1 forbids"):
        pull("org/tiny")
    assert bundles_in() == []


def test_another_bundle_in_its_place_is_kept_unless_forced(hub, commit, changed, place, bundles_in):
    other = changed(golden_difference=0.5)
    shutil.copytree(other, place)
    with pytest.raises(HubError, match="holds another bundle"):
        pull("org/tiny")
    assert read_manifest(place).golden_difference == 0.5
    assert not downloads(hub)
    assert pull("org/tiny", force=True) == place
    assert read_manifest(place).golden_difference != 0.5
    assert bundles_in() == [place]


def test_no_room_for_temporary_files_is_told(hub, commit, monkeypatch, tmp_path, bundles_in):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nothing"))
    with pytest.raises(HubError, match="temporary folder: No such file or directory"):
        pull("org/tiny")
    assert bundles_in() == []


def test_what_is_no_bundle_is_kept_even_by_force(hub, commit, place):
    place.mkdir(parents=True)
    (place / "notes").write_text("mine")
    with pytest.raises(HubError, match="is no bundle"):
        pull("org/tiny", force=True)
    assert (place / "notes").read_text() == "mine"


def test_the_same_bundle_from_elsewhere_is_taken(hub, commit, tiny_bundle, place, monkeypatch):
    shutil.copytree(tiny_bundle, place)
    assert pull("org/tiny") == place
    assert not downloads(hub)
    go_offline(monkeypatch)
    assert pull("org/tiny") == place


def test_a_damaged_bundle_in_its_place_is_mended(hub, commit, tiny_bundle, place, bundles_in):
    shutil.copytree(tiny_bundle, place)
    (place / "model.onnx").write_bytes(b"damaged")
    assert pull("org/tiny") == place
    assert bundles_in() == [place]


def test_a_bundle_that_a_killed_process_had_moved_away_comes_back(hub, commit, changed, place):
    shutil.copytree(changed(golden_difference=0.5), place.with_name(f".{place.name}.replaced"))
    with pytest.raises(HubError, match="holds another bundle"):
        pull("org/tiny")
    assert read_manifest(place).golden_difference == 0.5


class TestNames:
    """`hf://…` where a model is named."""

    def test_a_scorer_pulls_what_it_needs(self, hub, commit, place, tiny_bundle):
        with BERTScorer(f"hf://org/tiny@{commit}/{VARIANT}", device="cpu") as scorer:
            found = scorer.score(*PAIRS).F
        assert place.is_dir()
        assert np.array_equal(found, score(*PAIRS, model_type=str(tiny_bundle), device="cpu").F)

    def test_what_is_here_is_not_asked_for(self, hub, commit):
        score(*PAIRS, model_type="hf://org/tiny", device="cpu")
        hub.requests.clear()
        score(*PAIRS, model_type="hf://org/tiny", device="cpu")
        assert hub.requests == []

    def test_revisions_live_side_by_side(self, hub, tiny_bundle, changed, place):
        hub.add("org/tiny", tiny_bundle, VARIANT, ref="v1")
        hub.add("org/tiny", changed(golden_difference=0.5), VARIANT, ref="v2")
        for _ in range(2):
            for name, is_second in (("v1", False), ("v2", True)):
                with BERTScorer(f"hf://org/tiny@{name}", device="cpu") as scorer:
                    assert (scorer.manifest.golden_difference == 0.5) is is_second
        assert read_manifest(place).golden_difference != 0.5
        with BERTScorer("tiny-bert", device="cpu") as scorer:
            assert scorer.manifest.golden_difference != 0.5

    def test_a_branch_that_moved_is_brought_by_pull(self, hub, commit, changed):
        with BERTScorer("hf://org/tiny", device="cpu") as scorer:
            before = scorer.hash
        hub.add("org/tiny", changed(golden_difference=0.5), VARIANT)
        with BERTScorer("hf://org/tiny", device="cpu") as scorer:
            assert scorer.hash == before
        pull("org/tiny", force=True)
        with BERTScorer("hf://org/tiny", device="cpu") as scorer:
            assert scorer.hash != before

    def test_without_the_extra_the_command_is_named(self, home, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(MissingExtraError, match=r"bertscore-onnx\[hub\]"):
            BERTScorer("hf://org/tiny")


class TestRefusals:
    """What a hub may answer instead."""

    def test_a_private_repository_takes_a_token(self, hub, commit, place, monkeypatch):
        hub.repositories["org/tiny"].private, hub.token = True, "right"
        with pytest.raises(BundleNotFoundError, match=r"or it is private .* HF_TOKEN"):
            pull("org/tiny")
        with pytest.raises(HubError, match=r"refused the request \(401\)"):
            pull("org/tiny", token="wrong")  # noqa: S106 (of the test's hub)
        monkeypatch.setenv("HF_TOKEN", "right")
        assert pull("org/tiny") == place

    def test_a_gated_repository_is_told(self, hub, commit):
        hub.repositories["org/tiny"].gated = True
        with pytest.raises(HubError, match="is gated"):
            pull("org/tiny")

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
    def test_every_status_is_an_error(self, hub, commit, status, bundles_in):
        hub.status = status
        with pytest.raises((HubError, BundleNotFoundError), match="org/tiny"):
            pull("org/tiny")
        assert bundles_in() == []

    def test_a_hub_that_says_nothing_is_given_up(self, hub, commit, monkeypatch):
        monkeypatch.setattr("bertscore_onnx.hub.remote.TIMEOUT", 0.2)
        hub.silence = threading.Event()
        try:
            with pytest.raises(HubUnreachableError, match="org/tiny cannot be reached"):
                pull("org/tiny")
        finally:
            hub.silence.set()

    def test_a_hub_that_says_sizes_in_its_tree_only_is_heard(self, hub, commit, place, bundles_in):
        hub.lists_sizes = hub.declares_sizes = False
        assert pull("org/tiny") == place
        assert bundles_in() == [place]

    def test_a_page_instead_of_an_answer_is_told(self, hub, commit, bundles_in):
        hub.html = True
        with pytest.raises(HubError, match="did not answer as a hub does"):
            pull("org/tiny")
        assert bundles_in() == []

    @pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
    def test_a_file_with_another_digest_is_refused(self, hub, commit, name, bundles_in, place):
        right = hub.repositories["org/tiny"].commits[commit][f"{VARIANT}/{name}"]
        hub.replaced[name] = right[:-1] + b"?"
        with pytest.raises(DigestError, match=f"SHA-256 of {name}"):
            pull("org/tiny")
        assert bundles_in() == []
        hub.replaced.clear()
        assert pull("org/tiny") == place

    def test_a_file_that_is_missing_is_named(self, hub, tiny_bundle, tmp_path, bundles_in):
        bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")
        (bundle / "tokenizer.json").unlink()
        hub.add("org/tiny", bundle, VARIANT)
        with pytest.raises(BundleNotFoundError, match=r"tokenizer\.json is not there"):
            pull("org/tiny")
        assert bundles_in() == []

    @pytest.mark.parametrize("content", [b"", b"{", b"<html>", b'{"format_version": 2}'])
    def test_a_manifest_that_is_none_is_refused(self, hub, commit, content, bundles_in):
        hub.replaced["bertscore.json"] = content
        with pytest.raises((ManifestError, HubError), match="org/tiny"):
            pull("org/tiny")
        assert bundles_in() == []

    def test_a_manifest_with_another_digest_is_refused(self, hub, commit):
        manifest = hub.repositories["org/tiny"].commits[commit][f"{VARIANT}/bertscore.json"]
        hub.replaced["bertscore.json"] = manifest.replace(b'"hidden_size": 32', b'"hidden_size": 31')
        with pytest.raises(DigestError, match="org/tiny"):
            pull("org/tiny")

    @pytest.mark.parametrize(
        "name",
        ["../secret", "/etc/passwd", "..", "sub/file", "bertscore.json", "source.json", ".source.json", "Source.JSON"],
    )
    def test_a_manifest_that_names_other_places_is_refused(self, hub, tiny_bundle, changed, name, bundles_in, home):
        files = {**read_manifest(tiny_bundle).files, name: "0" * 64}
        hub.add("org/tiny", changed(files=files), VARIANT)
        with pytest.raises(UnsafePathError, match="org/tiny"):
            pull("org/tiny")
        assert bundles_in() == []

    @pytest.mark.parametrize("name", ["..", ".", "a\\b"])
    def test_a_model_whose_name_is_no_folder_is_refused(self, hub, changed, name, bundles_in):
        hub.add("org/tiny", changed(model_id=name), VARIANT)
        with pytest.raises(UnsafePathError, match="cannot be the name of a folder"):
            pull("org/tiny")
        assert bundles_in() == []

    def test_a_model_whose_name_is_too_long_is_told(self, hub, changed):
        hub.add("org/tiny", changed(model_id="x" * 300), VARIANT)
        with pytest.raises(HubError, match="Cannot put a bundle into"):
            pull("org/tiny")

    def test_a_folder_that_holds_another_variant_is_refused(self, hub, tiny_bundle):
        hub.add("org/tiny", tiny_bundle, "layer-9-slow-fp32")
        with pytest.raises(ManifestError, match=f"holds the variant {VARIANT}"):
            pull("org/tiny")

    @pytest.mark.parametrize("name", ["bertscore.json", "model.onnx"])
    def test_a_file_without_an_end_is_given_up(self, hub, commit, name, home, bundles_in):
        hub.endless = name
        with pytest.raises(HubError, match="sends more of"):
            pull("org/tiny")
        assert bundles_in() == []
        assert sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) < 100_000

    def test_a_disk_without_room_is_told_before(self, hub, commit, monkeypatch, bundles_in):
        monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
        with pytest.raises(HubError, match=r"has room for 1\."):
            pull("org/tiny")
        assert not downloads(hub)
        assert bundles_in() == []

    @forks
    def test_a_write_that_fails_is_told(self, hub, commit, place, bundles_in):
        def pull_with_small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            return pull("org/tiny")

        with pytest.raises(HubError, match="Cannot put a bundle into"):
            in_forked_child(pull_with_small_files)
        assert bundles_in() == []
        assert pull("org/tiny") == place


def test_a_pulled_bundle_is_verified_again_as_any_other(hub, commit):
    folder = pull("org/tiny")
    (folder / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(DigestError):
        open_bundle(folder)
