from dataclasses import replace

import msgspec
import pytest
import yaml

from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.bundle.card import CARD_MARK, model_card, read_license


@pytest.fixture
def manifest(tiny_bundle):
    return read_manifest(tiny_bundle)


def front_matter(card):
    """Return the front matter as a hub reads it."""
    _, matter, _ = card.split("---\n", 2)
    return yaml.safe_load(matter)


def test_a_card_has_the_facts_of_the_manifest(manifest):
    card = model_card({"path/to/bundle": manifest})
    facts = [
        'BERTScorer("path/to/bundle")',
        "| layer | 2, chosen at the export |",
        "| precision | fp32 |",
        f"| largest difference from PyTorch | {manifest.golden_difference:.1e}, over P, R and F of",
        "| tokenizer | the ids of the slow tokenizer of transformers",
        f"sha256 `{manifest.digest}`",
        *(f"| `{name}` | sha256 `{digest}` |" for name, digest in manifest.files.items()),
        f"torch {manifest.exported_with['torch']}",
        "@inproceedings{zhang2020bertscore",
        CARD_MARK,
    ]
    assert [line for line in facts if line not in card] == []


def test_a_card_has_the_signature_of_its_scores(manifest, scorer):
    signature = str(replace(scorer.signature, libraries=None))
    assert signature.replace("|", "\\|") in model_card({"x": manifest})


def test_a_card_names_a_tuned_layer_and_all_layers(manifest, all_layers_bundle):
    card = model_card(
        {"x": msgspec.structs.replace(manifest, model_id="roberta-large", num_layers=17)}
    )
    assert "17, which bert-score chose for this model" in card
    assert "| layer | all, 0 to 3" in model_card({"x": read_manifest(all_layers_bundle)})


def test_the_base_model_is_named_where_it_is_one_of_the_hub(manifest):
    assert "base_model" not in front_matter(model_card({"x": manifest}))
    of_catalogue = msgspec.structs.replace(manifest, model_id="roberta-large")
    assert front_matter(model_card({"x": of_catalogue}))["base_model"] == "roberta-large"
    of_hub = msgspec.structs.replace(manifest, model_id="someone/own-model", revision="a" * 40)
    assert front_matter(model_card({"x": of_hub}))["base_model"] == "someone/own-model"


def test_a_card_lists_the_languages_that_can_use_the_bundle(scoring_bundle, manifest):
    scoring = read_manifest(scoring_bundle)
    card, slow = model_card({"x": scoring}), scoring.slow_differences
    assert "| languages | any with ONNX Runtime" in card
    assert (
        "| scoring graph | `scoring.onnx`, from token ids to P, R and F; at most "
        f"{scoring.scoring_difference:.1e}" in card
    )
    assert (
        f"| slow tokenizer | gives {slow.num_different} of 61 texts tried at the export other ids |"
        in card
    )
    card = model_card({"x": msgspec.structs.replace(scoring, tokenizer_mode="slow")})
    assert (
        "| languages | Python, by the package: the ids follow rules that `tokenizer.slow.json`"
        in card
    )
    card = model_card({"x": manifest})
    assert "| languages | Python, by the package |" in card
    assert "| scoring graph | none |" in card
    assert "slow tokenizer |" not in card


def test_a_license_stands_only_where_it_is_known(manifest):
    assert "license" not in front_matter(model_card({"x": manifest}))
    known = {
        "license": "other",
        "license_name": "own: terms",
        "license_link": "https://example.org/terms#1",
    }
    assert front_matter(model_card({"x": manifest}, known)).items() >= known.items()


@pytest.mark.parametrize(
    "name", ["a: b", "- x", "{x}", "#", "'", '"', "`a`", "yes", "1e3", "模型", "😀", "x" * 5000]
)
def test_front_matter_is_yaml_whatever_the_model_is_called(manifest, name):
    card = model_card(
        {"x": msgspec.structs.replace(manifest, model_id=name, revision="a" * 40)},
        {"license": name},
    )
    assert front_matter(card)["license"] == name
    assert front_matter(card)["library_name"] == "bertscore-onnx"
    assert front_matter(card).get("base_model", name) == name


def test_the_license_of_a_card_is_read(tmp_path):
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: other\nlicense_name: own\ntags: [a]\n---\n# A model\n")
    assert read_license(card) == {"license": "other", "license_name": "own"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# none",
        b"---\n---\n",
        b"---\n[\n---\n",
        b"---\nlicense: [mit, bsd]\n---\n",
        b"---\n- x\n---\n",
        b"\xff\xfe",
    ],
)
def test_a_card_that_states_no_license_has_none(tmp_path, content):
    assert read_license(tmp_path / "README.md") == {}
    (tmp_path / "README.md").write_bytes(content)
    assert read_license(tmp_path / "README.md") == {}


def test_the_export_writes_a_card_that_is_no_part_of_the_bundle(tiny_bundle, manifest):
    assert (tiny_bundle / "README.md").read_text(encoding="utf-8") == model_card(
        {"path/to/bundle": manifest}
    )
    assert "README.md" not in open_bundle(tiny_bundle).manifest.files
