import json
import shutil

import pytest
import yaml

from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.bundle.card import CARD_MARK
from bertscore_onnx.errors import DigestError, HubError, HubUnreachableError, InputError
from bertscore_onnx.hub import pull, push
from bertscore_onnx.scoring.golden import difference_by_pairs
from tests.bertscore_onnx.hub.conftest import VARIANT
from tests.support.manifests import seal
from tests.support.scorers import forget_sessions

pytestmark = pytest.mark.slow


@pytest.fixture
def writable(hub, monkeypatch):
    hub.token = "right"  # noqa: S105 (of the test's hub)
    monkeypatch.setenv("HF_TOKEN", "right")
    return hub


def files_of(hub):
    repository = hub.repositories["org/tiny"]
    return repository.commits[repository.refs["main"]]


def card_of(hub):
    return files_of(hub)["README.md"].decode()


def test_a_pushed_bundle_can_be_pulled(writable, tiny_bundle, place, bundles_in):
    name = push(tiny_bundle, "org/tiny")
    commit = writable.repositories["org/tiny"].refs["main"]
    assert name == f"hf://org/tiny@{commit}/{VARIANT}"
    names = {
        f"{VARIANT}/{name}" for name in ("bertscore.json", "model.onnx", "tokenizer.slow.json")
    }
    assert files_of(writable).keys() == {*names, "README.md", ".gitattributes"}
    assert f'BERTScorer("hf://org/tiny/{VARIANT}")' in card_of(writable)
    assert pull(name) == place
    assert bundles_in() == [place]


def test_a_scoring_graph_goes_with_its_bundle(writable, scoring_bundle):
    pulled = pull(push(scoring_bundle, "org/tiny"))
    assert read_manifest(pulled) == read_manifest(scoring_bundle)
    assert "| languages | any with ONNX Runtime and" in card_of(writable)
    assert difference_by_pairs(open_bundle(pulled), device="cpu") <= 1e-6


@pytest.mark.parametrize("private", [True, False])
def test_a_new_repository_is_private_if_requested(writable, tiny_bundle, private):
    push(tiny_bundle, "org/tiny", private=private)
    assert writable.repositories["org/tiny"].private is private
    if not private:
        before = files_of(writable)
        with pytest.raises(HubError, match="is public"):
            push(tiny_bundle, "org/tiny", private=True)
        assert files_of(writable) == before


def test_a_card_of_somebody_else_is_kept(writable, tiny_bundle, caplog):
    push(tiny_bundle, "org/tiny")
    own = card_of(writable).replace(CARD_MARK, "").encode() + b"\nMine."
    writable.repositories["org/tiny"].commit({**files_of(writable), "README.md": own})
    push(tiny_bundle, "org/tiny")
    assert files_of(writable)["README.md"] == own
    assert "keeps the model card" in caplog.text


def test_the_license_comes_from_the_card_of_the_bundle(
    writable, bundle, all_layers_bundle, tmp_path
):
    (bundle / "README.md").write_text("---\nlicense: mit\n---\n")
    push(bundle, "org/tiny")
    assert yaml.safe_load(card_of(writable).split("---")[1])["license"] == "mit"
    plain = shutil.copytree(all_layers_bundle, tmp_path / "plain")
    (plain / "README.md").unlink(missing_ok=True)
    push(plain, "org/tiny")
    assert yaml.safe_load(card_of(writable).split("---")[1])["license"] == "mit"


def test_a_bundle_replaces_the_one_of_its_variant_alone(
    writable, tiny_bundle, all_layers_bundle, bundle
):
    push(all_layers_bundle, "org/tiny")
    push(tiny_bundle, "org/tiny")
    assert f"## `hf://org/tiny/{VARIANT}`" in card_of(writable)
    assert "## `hf://org/tiny/all-layers-slow-fp32`" in card_of(writable)
    old = {**files_of(writable), f"{VARIANT}/model.onnx.data": b"old"}
    writable.repositories["org/tiny"].commit(old)
    push(seal(bundle, golden_difference=0.5), "org/tiny")
    assert json.loads(files_of(writable)[f"{VARIANT}/bertscore.json"])["golden_difference"] == 0.5
    assert files_of(writable).keys() == old.keys() - {f"{VARIANT}/model.onnx.data"}


def test_only_files_of_the_manifest_are_pushed(writable, bundle):
    (bundle / "secret.txt").write_text("mine")
    (bundle / "source.json").write_text("[]")
    push(bundle, "org/tiny")
    assert not {f"{VARIANT}/secret.txt", f"{VARIANT}/source.json"} & files_of(writable).keys()


def test_links_are_pushed_as_their_files(writable, tiny_bundle, tmp_path):
    (tmp_path / "links").mkdir()
    for file in tiny_bundle.iterdir():
        (tmp_path / "links" / file.name).symlink_to(file)
    push(tmp_path / "links", "org/tiny")
    assert files_of(writable)[f"{VARIANT}/model.onnx"] == (tiny_bundle / "model.onnx").read_bytes()


def test_a_damaged_bundle_is_not_pushed(writable, bundle):
    (bundle / "tokenizer.slow.json").write_bytes(b"{}")
    with pytest.raises(DigestError):
        push(bundle, "org/tiny")
    assert writable.repositories == {}
    assert writable.requests == []


def test_a_bundle_there_that_is_damaged_is_left_out_of_the_card(
    writable, tiny_bundle, all_layers_bundle, caplog
):
    push(all_layers_bundle, "org/tiny")
    name = "all-layers-slow-fp32/bertscore.json"
    writable.repositories["org/tiny"].commit({**files_of(writable), name: b"{"})
    push(tiny_bundle, "org/tiny")
    assert "all-layers-slow-fp32" not in card_of(writable)
    assert "leaves out the bundle of" in caplog.text


@pytest.mark.parametrize(
    ("token", "status"), [(None, 401), ("wrong", 401), ("right", 403), ("right", 500)]
)
def test_a_refusal_of_the_hub_is_an_error(hub, tiny_bundle, monkeypatch, token, status):
    hub.token = "right"  # noqa: S105 (of the test's hub)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    if status != 401:
        hub.status = status
    with pytest.raises(HubError, match=str(status)):
        push(tiny_bundle, "org/tiny")
    assert hub.repositories == {}


@pytest.mark.parametrize("repo", ["tiny", "org/tiny@v1", f"org/tiny/{VARIANT}", "s3://bucket/tiny"])
def test_other_places_are_refused(writable, tiny_bundle, repo):
    with pytest.raises(InputError, match="expected ORG/REPO"):
        push(tiny_bundle, repo)


def test_offline_nothing_is_pushed(writable, tiny_bundle, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    forget_sessions()
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE"):
        push(tiny_bundle, "org/tiny")
