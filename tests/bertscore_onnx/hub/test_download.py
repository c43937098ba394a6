import json
import resource
import shutil
import sys

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, score
from bertscore_onnx.bundle.bundle import read_manifest
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
from tests.support.scorers import forget_sessions

PAIRS = (["the cat sat"], ["the dog sat on the mat"])


@pytest.fixture
def commit(hub, tiny_bundle):
    return hub.add("org/tiny", tiny_bundle, VARIANT)


@pytest.fixture
def go_offline(monkeypatch):
    def go():
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        forget_sessions()

    return go


@pytest.fixture
def refused(bundles_in):
    """Return a function that pulls `org/tiny`, which has to fail and to leave no bundle."""

    def check(error, message):
        with pytest.raises(error, match=message):
            pull("org/tiny")
        assert bundles_in() == []

    return check


def downloads(hub):
    return [request for request in hub.requests if "model.onnx" in request]


def test_a_bundle_lands_where_its_model_is_looked_for(hub, commit, place, tiny_bundle, bundles_in):
    assert pull("org/tiny") == place
    assert bundles_in() == [place]
    names = {"bertscore.json", *read_manifest(tiny_bundle).files, "source.json"}
    assert {file.name for file in place.iterdir()} == names
    assert json.loads((place / "source.json").read_bytes()) == [
        *(
            "hf://org/tiny",
            f"hf://org/tiny/{VARIANT}",
            f"hf://org/tiny@{commit}",
            f"hf://org/tiny@{commit}/{VARIANT}",
        )
    ]
    assert [*place.parent.parent.iterdir()] == [place.parent]
    with (
        BERTScorer("tiny-bert", num_layers=2, device="cpu") as pulled,
        BERTScorer(tiny_bundle, device="cpu") as own,
    ):
        assert pulled.hash == own.hash
        assert np.array_equal(pulled.score(*PAIRS).F, own.score(*PAIRS).F)


def test_a_bundle_lands_in_a_folder_of_a_long_path(hub, commit, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(tmp_path / ("long" * 20)))
    assert (pull("org/tiny") / "model.onnx").is_file()


@pytest.mark.parametrize("variant", ["", f"/{VARIANT}"])
@pytest.mark.parametrize("name", ["org/tiny@v1", "hf://org/tiny@v1", "org/tiny@refs/pr/1"])
def test_a_revision_can_be_named(hub, tiny_bundle, changed, name, variant):
    for ref in ("v1", "refs/pr/1"):
        hub.add("org/tiny", tiny_bundle, VARIANT, ref=ref)
    hub.add("org/tiny", changed(golden_difference=0.5), VARIANT)
    assert read_manifest(pull(name + variant)).golden_difference != 0.5


def test_the_only_variant_need_not_be_named(hub, commit, all_layers_bundle, place):
    hub.add("org/tiny", all_layers_bundle, "all-layers-slow-fp32")
    with pytest.raises(InputError, match=rf"several variants: all-layers-slow-fp32, {VARIANT}"):
        pull("org/tiny")
    assert pull(f"org/tiny/{VARIANT}") == place
    assert pull("org/tiny/all-layers-slow-fp32").name == "all-layers-slow-fp32"


def test_a_repository_may_hold_a_bundle_itself(hub, tiny_bundle, place):
    hub.add("org/tiny", tiny_bundle, "")
    assert pull("org/tiny") == place


def test_the_error_for_a_missing_name_lists_those_that_exist(hub, commit):
    with pytest.raises(BundleNotFoundError, match="no repository hf://org/other"):
        pull("org/other")
    with pytest.raises(
        BundleNotFoundError, match="hf://org/tiny@v9 does not exist: the repository has no such rev"
    ):
        pull("org/tiny@v9")
    for variant in ("layer-9-slow-fp32", "some/folder"):
        with pytest.raises(
            BundleNotFoundError, match=rf"no variant '{variant}'\. Its variants are: {VARIANT}"
        ):
            pull(f"org/tiny/{variant}")
    hub.repositories["org/tiny"].commit({"README.md": b"nothing"})
    with pytest.raises(BundleNotFoundError, match="holds no bundle"):
        pull("org/tiny")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "tiny",
        "hf://",
        "hf://tiny",
        "./bundle",
        "/bundle",
        "org/tiny@",
        "o rg/tiny",
        "@v",
        "org/a--b",
        "org/a..",
    ],
)
def test_what_is_no_name_on_the_hub_is_refused(name):
    with pytest.raises(InputError, match="expected ORG/REPO"):
        pull(name)


@pytest.mark.parametrize("url", ["https://host/a", "s3://bucket/a"])
def test_for_other_storage_a_path_is_advised(url):
    with pytest.raises(InputError, match=r"expected ORG/REPO.* give its path to --model"):
        pull(url)


@pytest.mark.parametrize("name", ["org/tiny", "org/tiny/", "org/tiny@main", f"org/tiny/{VARIANT}"])
def test_a_pulled_bundle_is_found_offline(hub, commit, place, go_offline, name):
    pull(name)
    go_offline()
    hub.requests.clear()
    assert pull(name) == place
    assert pull(f"org/tiny@{commit}/{VARIANT}") == place
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE"):
        pull("org/tiny@v1")
    assert hub.requests == []


def test_if_the_hub_is_unreachable_a_pulled_bundle_is_used(hub, commit, place, caplog):
    pull("org/tiny")
    hub.leave()
    assert pull("org/tiny") == place
    assert "pulled from there earlier" in caplog.text


def test_without_a_pulled_bundle_and_a_network_a_pull_fails(hub, commit, go_offline, refused):
    hub.leave()
    refused(HubUnreachableError, "org/tiny cannot be reached")
    go_offline()
    refused(HubUnreachableError, "HF_HUB_OFFLINE")


def test_another_bundle_in_its_place_is_kept_unless_forced(hub, commit, changed, place, bundles_in):
    shutil.copytree(changed(golden_difference=0.5), place)
    with pytest.raises(HubError, match="holds something else"):
        pull("org/tiny")
    assert read_manifest(place).golden_difference == 0.5
    assert not downloads(hub)
    assert pull("org/tiny", force=True) == place
    assert read_manifest(place).golden_difference != 0.5
    assert bundles_in() == [place]


def test_a_folder_that_is_no_bundle_is_kept_even_by_force(hub, commit, place):
    place.mkdir(parents=True)
    (place / "notes").write_text("mine")
    with pytest.raises(HubError, match="holds something else"):
        pull("org/tiny", force=True)
    assert (place / "notes").read_text() == "mine"


def test_the_same_bundle_from_elsewhere_is_taken(hub, commit, tiny_bundle, place, go_offline):
    shutil.copytree(tiny_bundle, place)
    assert pull("org/tiny") == place
    assert not downloads(hub)
    go_offline()
    assert pull("org/tiny") == place


def test_a_damaged_bundle_in_its_place_is_replaced(hub, commit, tiny_bundle, place, bundles_in):
    shutil.copytree(tiny_bundle, place)
    (place / "model.onnx").write_bytes(b"damaged")
    assert pull("org/tiny") == place
    assert bundles_in() == [place]


class TestNames:
    """`hf://…` where a model is named."""

    @pytest.mark.parametrize("name", ["hf://org/tiny", f"hf://org/tiny@{{}}/{VARIANT}"])
    def test_a_scorer_pulls_its_bundle_once(self, hub, commit, place, tiny_bundle, name):
        name = name.format(commit)
        with BERTScorer(name, device="cpu") as scorer:
            found = scorer.score(*PAIRS).F
        assert place.is_dir()
        assert np.array_equal(found, score(*PAIRS, model_type=str(tiny_bundle), device="cpu").F)
        hub.requests.clear()
        assert np.array_equal(found, score(*PAIRS, model_type=name, device="cpu").F)
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

    def test_a_branch_that_moved_is_followed_by_pull(self, hub, commit, changed):
        def scorer_hash():
            with BERTScorer("hf://org/tiny", device="cpu") as scorer:
                return scorer.hash

        before = scorer_hash()
        hub.requests.clear()
        assert pull(f"org/tiny@{commit}").exists()
        assert hub.requests == []  # a commit does not move
        hub.add("org/tiny", changed(golden_difference=0.5), VARIANT)
        assert scorer_hash() == before
        pull("org/tiny", force=True)
        assert scorer_hash() != before

    def test_without_the_extra_the_command_is_named(self, home, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(MissingExtraError, match=r"huggingface-hub"):
            BERTScorer("hf://org/tiny")


class TestRefusals:
    """Answers of a hub, folders and disks that make a pull fail."""

    def test_a_private_repository_takes_a_token(self, hub, commit, place, monkeypatch):
        hub.repositories["org/tiny"].private, hub.token = True, "right"
        with pytest.raises(BundleNotFoundError, match=r"or it is private: .*HF_TOKEN"):
            pull("org/tiny")
        with pytest.raises(HubError, match=r"refused the request \(401\)"):
            pull("org/tiny", token="wrong")  # noqa: S106 (of the test's hub)
        monkeypatch.setenv("HF_TOKEN", "right")
        assert pull("org/tiny") == place

    def test_a_gated_repository_is_refused(self, hub, commit, refused):
        hub.repositories["org/tiny"].gated = True
        refused(HubError, r"is gated\. Request access")

    @pytest.mark.parametrize(
        ("answers", "message"),
        [
            *(({"status": status}, "org/tiny") for status in (400, 401, 403, 404, 429, 500, 503)),
            ({"replaced": {"": b"<!doctype html>"}}, "did not answer as a hub does"),
            (
                {"replaced": {"/org/tiny": b'{"id": "org/tiny", "siblings": [3]}'}},
                "did not answer as a hub does",
            ),
        ],
    )
    def test_a_wrong_answer_is_an_error(self, hub, commit, answers, message, refused):
        vars(hub).update(answers)
        refused((HubError, BundleNotFoundError), message)

    @pytest.mark.parametrize("name", ["bertscore.json", "model.onnx"])
    def test_a_download_that_breaks_off_is_an_error_and_leaves_nothing(
        self, hub, commit, place, name, refused, monkeypatch
    ):
        # the client waits before each of its attempts
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        hub.broken = name
        refused(HubUnreachableError, "org/tiny")
        assert not any(file.is_file() for file in place.parent.parent.rglob("*"))
        hub.broken = None
        assert pull("org/tiny") == place

    @pytest.mark.parametrize("name", ["model.onnx", "tokenizer.slow.json"])
    def test_a_file_with_another_digest_is_refused(self, hub, commit, name, refused, place):
        files = hub.repositories["org/tiny"].commits[commit]
        right = files[f"{VARIANT}/{name}"]
        files[f"{VARIANT}/{name}"] = right[:-1] + b"?"
        refused(
            DigestError,
            rf"hf://org/tiny cannot be used\. .*{name} is not the file that was exported",
        )
        files[f"{VARIANT}/{name}"] = right
        assert pull("org/tiny") == place

    def test_a_file_that_is_missing_is_named(self, hub, changed, refused):
        bundle = changed()
        (bundle / "tokenizer.slow.json").unlink()
        hub.add("org/tiny", bundle, VARIANT)
        refused(BundleNotFoundError, r"lacks a file of its bundle: .*tokenizer\.slow\.json")

    @pytest.mark.parametrize(
        "name",
        ["../secret", "/etc/passwd", "..", "sub/file"],
    )
    def test_a_manifest_that_names_other_places_is_refused(
        self, hub, tiny_bundle, changed, name, refused
    ):
        files = {**read_manifest(tiny_bundle).files, name: "0" * 64}
        hub.add("org/tiny", changed(files=files), VARIANT)
        refused(UnsafePathError, "org/tiny")

    @pytest.mark.parametrize(
        ("model_id", "error", "message"),
        [
            *(
                (name, UnsafePathError, "cannot be the name of a folder")
                for name in ("..", ".", "a\\b")
            ),
            ("x" * 300, HubError, "Cannot put a bundle into"),
        ],
    )
    def test_a_model_whose_name_is_no_folder_is_refused(
        self, hub, changed, model_id, error, message, refused
    ):
        hub.add("org/tiny", changed(model_id=model_id), VARIANT)
        refused(error, message)

    def test_a_folder_that_holds_another_variant_is_refused(self, hub, tiny_bundle, refused):
        hub.add("org/tiny", tiny_bundle, "layer-9-slow-fp32")
        refused(ManifestError, f"holds the variant {VARIANT}")

    @forks
    def test_a_failed_write_is_an_error(self, hub, commit, place, refused):
        def pull_with_small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            refused(HubError, "Cannot put a bundle into")

        in_forked_child(pull_with_small_files)
        assert pull("org/tiny") == place
