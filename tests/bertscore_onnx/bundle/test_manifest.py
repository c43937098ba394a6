"""What a sealed manifest may say: numbers within reason, ids of the model, lists that fit the
layers, plain names.
"""

import hashlib
import json
import shutil

import msgspec
import pytest

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import ManifestError

GOLDEN = {"candidate": "a", "reference": "b", "precision": [1.0], "recall": [1.0], "f1": [1.0]}


@pytest.fixture
def sealed(tiny_bundle, tmp_path):
    """Return a function that changes fields of the manifest and writes the digest that is right for
    them.
    """
    bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")

    def change(**fields):
        content = {**json.loads((bundle / "bertscore.json").read_bytes()), **fields, "digest": ""}
        content["digest"] = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
        (bundle / "bertscore.json").write_text(json.dumps(content))
        return bundle

    return change


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 10**12),
        ("hidden_size", 10**9),
        ("num_layers", 10**6),
        ("max_length", 2**63),
        ("pad_id", 2**63),
        ("zero_weight_ids", [2**63]),
        ("empty_ids", [2**31]),
        ("tokenizer_differences", 2**63),
        ("golden", None),
        ("zero_weight_ids", [-1]),
        ("empty_ids", []),
        ("tokenizer_spec", {"normalizers": [{"type": "magic"}]}),
    ],
)
def test_a_wrong_type_or_a_number_beyond_reason_is_refused(sealed, field, value):
    with pytest.raises(ManifestError, match=field):
        read_manifest(sealed(**{field: value}))


@pytest.mark.parametrize(
    "name", ["bert-base-uncased", "roberta-large", "google/electra-small-generator"]
)
def test_the_name_of_another_model_of_the_catalogue_is_refused(sealed, name):
    with pytest.raises(
        ManifestError,
        match=f"{name} is a model of the catalogue with type .*; this one has type bert",
    ):
        read_manifest(sealed(model_id=name))


@pytest.mark.parametrize(
    "field", ["pad_id", "zero_weight_ids", "empty_ids", "prefix_ids", "suffix_ids"]
)
def test_an_id_that_the_model_does_not_have_is_refused(sealed, field):
    spec = json.loads((sealed() / "bertscore.json").read_bytes())["tokenizer_spec"]
    ids = 100 if field == "pad_id" else [2, 100]
    changes = {"tokenizer_spec": {**spec, field: ids}} if field in spec else {field: ids}
    with pytest.raises(ManifestError, match=rf"{field}.*vocab_size"):
        read_manifest(sealed(**changes))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("normalizers", [{"type": "prefix_space"}] * 9),
        ("pre_tokenizers", [{"type": "prefix_space"}] * 9),
        ("pre_tokenizers", [{"type": "unknown_words", "words": ["a"], "unknown_token": "u" * 101}]),
        ("suffix_ids", [0] * 1_001),
    ],
)
def test_a_spec_that_does_much_more_than_a_tokenizer_is_refused(sealed, field, value):
    spec = json.loads((sealed() / "bertscore.json").read_bytes())["tokenizer_spec"]
    with pytest.raises(ManifestError, match=rf"`tokenizer_spec.{field}\b.*a length of at most"):
        read_manifest(sealed(tokenizer_spec={**spec, field: value}))


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@pytest.mark.parametrize("scores", [[], [0.5, 0.5]])
def test_golden_scores_that_do_not_fit_the_layers_are_refused(sealed, name, scores):
    with pytest.raises(ManifestError, match=f"golden.*got {len(scores)}"):
        read_manifest(sealed(golden=[{**GOLDEN, name: scores}]))


BASELINE = {"precision": 0.5, "recall": 0.5, "f1": 0.5}


@pytest.mark.parametrize(
    ("baselines", "message"),
    [([], "got 0"), *(([{**BASELINE, field: 1.0}], "below 1") for field in BASELINE)],
)
def test_baselines_that_do_not_fit_or_cannot_divide_are_refused(sealed, baselines, message):
    with pytest.raises(ManifestError, match=f"baselines.*{message}"):
        read_manifest(sealed(baselines={"en": baselines}))


@pytest.mark.parametrize("name", ["a|b", "a\nb", "a\x1b[2J", "a\u2028b", "\x7f", "a\u202eb"])
@pytest.mark.parametrize("field", ["model_id", "family", "revision", "output"])
def test_a_name_that_could_forge_a_line_is_refused(sealed, field, name):
    with pytest.raises(ManifestError, match="printed") as caught:
        read_manifest(sealed(**{field: name}))
    assert str(caught.value).isprintable()


def test_names_in_lists_and_tables_are_checked_too(sealed):
    for fields in (
        {"inputs": ["\x1b"]},
        {"exported_with": {"torch": "\n"}},
        {"exported_with": {"\n": "1"}},
    ):
        with pytest.raises(ManifestError, match="printed"):
            read_manifest(sealed(**fields))


def test_an_unknown_field_is_named_in_printable_characters(sealed):
    with pytest.raises(ManifestError, match="unknown field") as caught:
        read_manifest(sealed(**{"x\x1b[2J\nINFO all is well": 1}))
    assert str(caught.value).isprintable()


UNRELATED = {"num_pairs": 10, "precision": "fp32", "f1_quantiles": [[0.1, 0.2]]}


def test_scores_of_unrelated_pairs_are_read(sealed):
    manifest = read_manifest(sealed(baselines={"en": [BASELINE]}, unrelated={"en": UNRELATED}))
    assert manifest.unrelated_scores["en"].f1_quantiles == [[0.1, 0.2]]
    assert manifest.baseline_precision("en") == "fp32"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"f1_quantiles": []}, "1 lists"),
        ({"f1_quantiles": [[0.1, 0.2], [0.1, 0.2]]}, "1 lists"),
        ({"f1_quantiles": [[0.2, 0.1]]}, "ascending"),
        ({"f1_quantiles": [[0.2]]}, "length of at least 2"),
        ({"f1_quantiles": [["a", "b"]]}, "expected a number"),
        ({"num_pairs": 0}, "num_pairs"),
        ({"precision": "fp32\n"}, "printed"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_scores_of_unrelated_pairs_that_do_not_fit_are_refused(sealed, changes, message):
    with pytest.raises(ManifestError, match=message):
        read_manifest(
            sealed(baselines={"en": [BASELINE]}, unrelated={"en": {**UNRELATED, **changes}})
        )


def test_unrelated_scores_without_a_baseline_are_refused(sealed):
    with pytest.raises(ManifestError, match="1 lists"):
        read_manifest(sealed(unrelated={"en": UNRELATED}))
