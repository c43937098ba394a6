"""The bundles that mutations start from: one for each kind of tokenizer, all with the same tiny graph."""

import io
import json
import shutil
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.manifest import Manifest, write_manifest
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, SentencePieceSpec
from reliability.cases.mutated.sealing import reseal

PAIR = ("the cat sat", "That hat, É ﬁ [SEP] a\u0301 中 9, \U0001f600")
"""What is scored."""

_LETTERS = "acehst"
_WORDS = ["the cat sat", "that hat", "a chat", "the test", "cats eat"]
_RULES = "41\t61\n54\t74\nFB01\t66 69\n"
"""How SentencePiece normalizes: A to a, T to t, and the ligature fi to its letters."""


def make_bases(tiny: Path, folder: Path) -> list[Path]:
    """Copy a bundle into a folder, once for each kind of tokenizer."""
    model = _sentencepiece_model()
    bundles = {name: shutil.copytree(tiny, folder / name) for name in ("words", "merges", "unigrams", "pieces")}
    manifest = read_manifest(tiny)
    _use_fast(bundles["merges"], manifest, _merges())
    _use_fast(bundles["unigrams"], manifest, _unigrams(model))
    _use_pieces(bundles["pieces"], manifest, model)
    return list(bundles.values())


def _use_fast(bundle: Path, manifest: Manifest, tokenizer: dict[str, Any]) -> None:
    (bundle / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    write_manifest(bundle, msgspec.structs.replace(manifest, tokenizer_mode="fast", tokenizer_spec=None))
    reseal(bundle)


def _use_pieces(bundle: Path, manifest: Manifest, model: bytes) -> None:
    (bundle / SENTENCEPIECE_FILE).write_bytes(model)
    count = len(ModelProto.FromString(model).pieces)
    pieces = SentencePieceSpec(id_runs=[(0, 1), (count // 2, 2)], split_number_comma=True, split_punctuation=True)
    assert manifest.tokenizer_spec is not None
    spec = msgspec.structs.replace(manifest.tokenizer_spec, sentencepiece=pieces)
    files = {**manifest.files, SENTENCEPIECE_FILE: "0" * 64}
    write_manifest(bundle, msgspec.structs.replace(manifest, tokenizer_spec=spec, files=files))
    reseal(bundle)


def _sentencepiece_model() -> bytes:
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        rules.write(_RULES)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(_WORDS * 4),
            model_writer=model,
            vocab_size=18,
            hard_vocab_limit=False,
            normalization_rule_tsv=rules.name,
            minloglevel=3,
        )
    return model.getvalue()


def _merges() -> dict[str, Any]:
    vocabulary = ["[CLS]", "[SEP]", "[UNK]", "Ġ", *_LETTERS, "at", "he", "the", "Ġc"]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "[UNK]",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": {token: number for number, token in enumerate(vocabulary)},
        "merges": [["a", "t"], ["h", "e"], ["t", "he"], ["Ġ", "c"]],
    }
    normalizers = [
        {"type": "NFKC"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": "[^a-z ]+"}, "content": " "},
    ]
    pre_tokenizers = [
        {"type": "Split", "pattern": {"Regex": r"\s+"}, "behavior": "MergedWithNext", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    ]
    return _tokenizer(
        model,
        {"type": "Sequence", "normalizers": normalizers},
        {"type": "Sequence", "pretokenizers": pre_tokenizers},
    )


def _unigrams(model: bytes) -> dict[str, Any]:
    parsed = ModelProto.FromString(model)
    charsmap = b64encode(parsed.normalizer_spec.precompiled_charsmap).decode()
    vocabulary = [["[CLS]", 0.0], ["[SEP]", 0.0], *([piece.piece, piece.score] for piece in parsed.pieces)]
    return _tokenizer(
        {"type": "Unigram", "unk_id": 2, "vocab": vocabulary, "byte_fallback": False},
        {"type": "Precompiled", "precompiled_charsmap": charsmap},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    )


def _tokenizer(model: dict[str, Any], normalizer: object, pre_tokenizer: object) -> dict[str, Any]:
    """Return a `tokenizer.json` with a [CLS] and a [SEP] around each text, of the ids 0 and 1."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    ends = {"[CLS]": 0, "[SEP]": 1}
    special = [{"SpecialToken": {"id": token, "type_id": 0}} for token in ends]
    text = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": id_, "content": token, "special": True, **flags} for token, id_ in ends.items()],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special[0], text[0], special[1]],
            "pair": [special[0], *text, special[1]],
            "special_tokens": {token: {"id": token, "ids": [id_], "tokens": [token]} for token, id_ in ends.items()},
        },
        "decoder": None,
        "model": model,
    }
