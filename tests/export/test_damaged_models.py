"""Damaged models: each is refused with an error of the library that names the fault, and nothing is
left behind.
"""

import json
from shutil import copytree, rmtree

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers import AutoTokenizer

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import ExportError, VerificationError
from bertscore_onnx_export.pipeline import export_model
from tests.support.bundles import saved

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 440473133\n"
CONTENTS = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "binary": lambda whole: bytes(range(255, -1, -1)) * 8,
    "pointer": lambda whole: POINTER,
    "list": lambda whole: b"[1, 2]",
    "string": lambda whole: b'"text"',
    "null": lambda whole: b"null",
}
FILES = {
    "bert": ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"],
    "roberta": ["model.safetensors", "merges.txt", "tokenizer_config.json", "vocab.json"],
    "t5": ["config.json", "spiece.model", "tokenizer_config.json"],
    "bert-fast": ["tokenizer.json"],
    "roberta-fast": ["tokenizer.json"],
}
MISSING = {
    "config.json": "config.json",
    "model.safetensors": "*.safetensors or *.bin",
    "vocab.txt": "tokenizer.json or *vocab*",
}
HARMLESS = {
    ("bert", "tokenizer_config.json", "missing"),
    ("bert", "vocab.txt", "cut"),
    ("roberta", "tokenizer_config.json", "missing"),
    ("t5", "tokenizer_config.json", "missing"),
    *(("roberta", "merges.txt", content) for content in ("cut", "empty", "list", "null", "string")),
}
"""What leaves a smaller tokenizer, and a whole one for transformers."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Tiny models by name, with the files of their slow tokenizers or of their fast ones too."""
    root = tmp_path_factory.mktemp("whole")
    models = {name: saved(name) for name in ("bert", "roberta", "t5")}
    for name in ("bert", "roberta"):
        models[f"{name}-fast"] = copytree(models[name], root / f"{name}-fast")
        AutoTokenizer.from_pretrained(models[name]).save_pretrained(models[f"{name}-fast"])
    return models


@pytest.fixture
def refusal(whole, tmp_path):
    def refused(name, damage, error=ExportError, **options):
        model = copytree(whole[name], tmp_path / "model")
        damage(model)
        mode = "fast" if name.endswith("fast") else "slow"
        with pytest.raises(error) as caught:
            export_model(
                str(model),
                **{"num_layers": 2, **options},
                output=tmp_path / "out" / "bundle",
                tokenizer_mode=mode,
            )
        assert [path.name for path in tmp_path.iterdir()] == ["model"]
        (line,) = str(caught.value).splitlines()
        return line

    return refused


def replaced(file, content):
    def damage(model):
        (model / file).write_bytes(CONTENTS[content]((model / file).read_bytes()))

    return (lambda model: (model / file).unlink()) if content == "missing" else damage


def configured(file="config.json", **settings):
    """Change settings; remove those that are `...`."""

    def damage(model):
        changed = json.loads((model / file).read_text()) | settings
        (model / file).write_text(
            json.dumps({name: value for name, value in changed.items() if value is not ...})
        )

    return damage


def weighted(change):
    def damage(model):
        file = model / "model.safetensors"
        save_file(change(load_file(file)), file, metadata={"format": "pt"})

    return damage


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        (name, file, content)
        for name, files in FILES.items()
        for file in files
        for content in ("missing", *CONTENTS)
        if (name, file, content) not in HARMLESS
        and not (name.endswith("fast") and content == "missing")
    ],
)
def test_a_damaged_file_is_refused(name, file, content, refusal):
    line = refusal(name, replaced(file, content))
    if content == "pointer" and file != "merges.txt":
        assert f"pointers of git-lfs in place of {file}: run `git lfs pull`" in line
    if content == "missing" and name == "bert":
        assert f"the folder has no {MISSING[file]}" in line
        assert "Expected a Hub id or a folder written by `save_pretrained`" in line


@pytest.mark.parametrize(("name", "file", "content"), sorted(HARMLESS))
def test_what_leaves_a_working_tokenizer_is_exported(name, file, content, whole, tmp_path):
    model = copytree(whole[name], tmp_path / "model")
    replaced(file, content)(model)
    assert (
        open_bundle(
            export_model(str(model), num_layers=1, output=tmp_path / "bundle")
        ).manifest.family
        == name
    )


@pytest.mark.parametrize("merge", ["a", "a b c"])
def test_merges_of_no_two_pieces_are_skipped_as_in_the_original(merge, whole, tmp_path):
    model = copytree(whole["roberta"], tmp_path / "model")
    merges = (model / "merges.txt").read_text()
    (model / "merges.txt").write_text(f"{merges}{merge}\n")
    export_model(str(model), num_layers=1, output=tmp_path / "bundle")
    assert open_bundle(tmp_path / "bundle").manifest.tokenizer_differences == 0


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bert", {"num_hidden_layers": 10**9}),
        ("bert", {"num_hidden_layers": "three"}),
        ("bert", {"num_hidden_layers": None}),
        ("bert", {"vocab_size": 10**9}),
        ("bert", {"vocab_size": 0}),
        ("bert", {"vocab_size": 691}),
        ("bert", {"vocab_size": ...}),
        ("bert", {"hidden_size": 10**6}),
        ("bert", {"hidden_size": True}),
        ("bert", {"num_attention_heads": 0}),
        ("bert", {"intermediate_size": [48]}),
        ("bert", {"max_position_embeddings": ...}),
        ("bert", {"hidden_act": "no such function"}),
        ("bert", {"model_type": ["bert"]}),
        ("bert", {"model_type": ...}),
        ("bert", {"model_type": "no such model"}),
        ("bert", {"quantization_config": 4}),
        ("roberta", {"pad_token_id": "<pad>"}),
        ("t5", {"num_layers": {}}),
        ("t5", {"d_kv": None}),
        ("t5", {"feed_forward_proj": 7}),
    ],
)
def test_a_damaged_configuration_is_refused(name, settings, refusal):
    assert refusal(name, configured(**settings)).startswith(
        ("Cannot load the ", "The configuration of ")
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bert", {"model_max_length": "long"}),
        ("bert", {"model_max_length": -1}),
        ("bert", {"added_tokens_decoder": [1]}),
        ("bert", {"added_tokens_decoder": {"0": {"content": "[PAD]", "lstrip": "no"}}}),
        ("bert", {"unk_token": None}),
        ("bert", {"cls_token": "a token beyond the model's last"}),
        ("bert", {"tokenizer_class": "NoSuchTokenizer"}),
        ("bert", {"do_lower_case": "yes"}),
        ("roberta", {"sep_token": None}),
        ("t5", {"cls_token": "a token beyond the model's last"}),
        ("t5", {"model_max_length": 1.5}),
        ("t5", {"extra_ids": "many"}),
    ],
)
def test_damaged_settings_of_a_tokenizer_are_refused(name, settings, refusal):
    refusal(name, configured("tokenizer_config.json", **settings))


def test_a_tokenizer_that_samples_is_refused(refusal):
    settings = {"sp_model_kwargs": {"enable_sampling": True, "alpha": 0.1, "nbest_size": -1}}
    line = refusal("t5", configured("tokenizer_config.json", **settings))
    assert (
        'has "enable_sampling" in its sp_model_kwargs, so that the tokens of a text are drawn at '
        "random" in line
    )


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("bert", "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"),
        ("roberta", "vocab.json", "{}"),
        ("roberta", "vocab.json", '{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}'),
        ("roberta", "vocab.json", '{"<unk>": -1, "a": 1}'),
        ("roberta", "vocab.json", '{"<unk>": 3, "a": 1000000000}'),
        ("roberta", "vocab.json", '{"<unk>": "a"}'),
        ("roberta", "merges.txt", "#version: 0.2\nno piece\n"),
    ],
)
def test_vocabularies_that_cannot_be_the_models_are_refused(name, file, content, refusal):
    refusal(name, lambda model: (model / file).write_text(content))


@pytest.mark.parametrize("name", ["bert", "bert-fast"])
def test_a_wordpiece_vocabulary_needs_its_unknown_token(name, refusal):
    def damage(model):
        for file in {"vocab.txt", "tokenizer.json"} & {path.name for path in model.iterdir()}:
            content = (model / file).read_text(encoding="utf-8")
            marks = (
                ("[UNK]\n", "[unk]\n") if file == "vocab.txt" else ('"[UNK]": 1,', '"[unk]": 1,')
            )
            assert marks[0] in content
            (model / file).write_text(content.replace(*marks), encoding="utf-8")

    line = refusal(name, damage)
    assert "lacks '[UNK]'" in line
    assert "Put that token into it" in line


def that_grows(content):
    growing = {"type": "Replace", "pattern": {"String": "o"}, "content": "o" * 900}
    content["normalizer"] = {"type": "Sequence", "normalizers": [growing, growing]}


def that_recurs(content):
    pattern = {"Regex": r"(?<x>a\g<x>?a?)+b"}
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": pattern,
        "behavior": "Isolated",
        "invert": False,
    }


def of_endless_words(content):
    content["model"]["max_input_chars_per_word"] = 10**9


def that_draws(content):
    content["model"]["dropout"] = 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            that_draws,
            'its "dropout" is 0.3, so that the tokens of a text would be drawn at random in every '
            "call; set",
        ),
        (that_grows, "its normalizers add more than 1,000,000 bytes to a text"),
        (that_recurs, "without calls, back references and conditions"),
        (
            of_endless_words,
            "its longest word has 1,000,000,000 characters, and at most 100 are accepted",
        ),
    ],
)
def test_a_fast_tokenizer_beyond_its_budget_is_refused(change, message, refusal):
    def damage(model):
        content = json.loads((model / "tokenizer.json").read_text())
        change(content)
        (model / "tokenizer.json").write_text(json.dumps(content))

    assert message in refusal("bert-fast", damage)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_told_as_such(value, refusal):
    def fill(weights):
        return weights | {"encoder.layer.1.output.dense.bias": np.full(32, value, np.float32)}

    line = refusal("bert", weighted(fill), VerificationError)
    assert "encoder.layer.1.output.dense.bias has weights that are not finite" in line


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: {name: np.zeros_like(weight) for name, weight in weights.items()},
        lambda weights: {name: np.full_like(weight, 1e38) for name, weight in weights.items()},
    ],
)
def test_weights_that_give_no_vectors_are_told_as_such(change, refusal):
    assert "its vectors are zero or overflow" in refusal(
        "bert", weighted(change), VerificationError
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: {name: np.ascontiguousarray(weight.T) for name, weight in weights.items()},
        lambda weights: {
            name: weight[: len(weight) // 2].copy() for name, weight in weights.items()
        },
        lambda weights: {name: np.zeros(0, np.float32) for name in weights},
    ],
)
def test_weights_of_other_shapes_are_refused(change, refusal):
    assert "size mismatch" in refusal("bert", weighted(change))


def test_a_size_that_the_weights_do_not_have_is_named(refusal):
    line = refusal("bert", configured(intermediate_size=64))
    assert "size mismatch: a tensor of the shape (48), where config.json describes (64)" in line


@pytest.mark.parametrize("content", ["empty", "binary", "pointer"])
def test_a_damaged_pickle_is_refused(content, refusal):
    def damage(model):
        (model / "model.safetensors").rename(model / "pytorch_model.bin")
        replaced("pytorch_model.bin", content)(model)

    assert refusal("bert", damage).startswith("Cannot load the weights of ")


@pytest.mark.parametrize(
    "index", ["[]", "{}", '{"metadata": {}, "weight_map": {"a": "no-such-shard.safetensors"}}']
)
def test_a_damaged_index_of_shards_is_refused(index, refusal):
    def damage(model):
        (model / "model.safetensors").unlink()
        (model / "model.safetensors.index.json").write_text(index)

    assert refusal("bert", damage).startswith("Cannot load the weights of ")


def test_a_configuration_without_a_type_and_weights_cut_short_are_named(refusal, tmp_path):
    assert "its config.json has no model_type" in refusal("bert", configured(model_type=...))
    rmtree(tmp_path / "model")
    assert "a file of weights is damaged or cut short" in refusal(
        "bert", replaced("model.safetensors", "cut")
    )


class PanicException(BaseException):  # the name of what Rust code raises
    pass


@pytest.mark.parametrize("kind", [ImportError, RecursionError, MemoryError, PanicException])
def test_what_loading_raises_is_named(kind, refusal, monkeypatch):
    def fail(*place, **options):
        raise kind("XLMTokenizer needs sacremoses")

    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", fail)
    line = refusal("bert", lambda model: None)
    assert line.startswith("Cannot load the tokenizer of ")
    assert "XLMTokenizer needs sacremoses. " in line


def test_an_error_of_the_exports_own_stays_what_it_is(whole, tmp_path, monkeypatch):
    def fail(*converted):
        raise KeyError("a bug")

    monkeypatch.setattr("bertscore_onnx_export.tokenizer.write.convert", fail)
    with pytest.raises(KeyError, match="a bug"):
        export_model(str(whole["bert"]), num_layers=1, output=tmp_path / "bundle")
