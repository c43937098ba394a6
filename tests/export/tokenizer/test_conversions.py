"""Every kind of slow tokenizer, converted, gives the ids of the original on plain and on edge-case texts."""

import importlib.util
from pathlib import Path

import pytest
import transformers
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.tokenizer.conversions import CONVERSIONS, convert
from bertscore_onnx_export.tokenizer.write import TokenizerFacts, load_tokenizer, original_ids, write_tokenizer
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS
from transformers import AddedToken

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.tokenizer import TextTokenizer
from tests.support.edge_case_texts import edge_case_texts
from tests.support.tiny_tokenizers import KINDS, TRAINING_TEXTS

has_sacremoses = importlib.util.find_spec("sacremoses") is not None
needs_sacremoses = pytest.mark.skipif(not has_sacremoses, reason="XLM's tokenizer needs sacremoses")
slow_kinds = [pytest.param(kind, marks=needs_sacremoses) if kind in ("xlm", "xlm-cased") else kind for kind in KINDS]
fast_kinds = ["albert", "bart", "bert", "deberta", "mbart", "mpnet", "pegasus", "roberta", "t5", "xlm-roberta", "xlnet"]


AMOUNTS = ["€1670000000", "£0000000000000000", *(f"£167{'0' * count} €{'0' * count}" for count in range(60))]
"""Ties between cuts, behind user-defined pieces of several bytes (ALBERT, XLNet)."""


def saved(kind: str, folder: Path) -> Source:
    """Make a tokenizer and save it as models are."""
    made = folder / "made"
    made.mkdir()
    slow = KINDS[kind](made)
    slow.save_pretrained(folder / "saved")
    return Source(str(folder / "saved"))


def text_tokenizer(folder: Path, facts: TokenizerFacts) -> TextTokenizer:
    return TextTokenizer(folder, spec=facts.spec, max_length=facts.max_length, empty_ids=facts.empty_ids)


def differences(kind: str, mode: str, folder: Path) -> tuple[int, list[str]]:
    source = saved(kind, folder)
    original = load_tokenizer(source, mode)
    facts = write_tokenizer(original, None, folder)
    written = text_tokenizer(folder, facts)
    special_tokens = [token.content for token in original.added_tokens_decoder.values()][:12]
    hidden = [f"a {token[:2]}\u200b{token[2:]} b" for token in special_tokens]
    texts = [*PLAIN_TEXTS, *hidden, *EDGE_CASE_TEXTS, *TRAINING_TEXTS, *AMOUNTS, *edge_case_texts(300, special_tokens)]
    different = [
        text
        for text, ids in zip(texts, written(texts)[0], strict=True)
        if ids.tolist() != original_ids(original, text, facts.max_length)
    ]
    return facts.differences, different


@pytest.mark.parametrize("kind", slow_kinds)
def test_a_converted_slow_tokenizer_gives_the_original_ids(kind: str, tmp_path: Path) -> None:
    assert differences(kind, "slow", tmp_path) == (0, [])


@pytest.mark.parametrize("kind", ["albert", "bert", "bert-cased", "mpnet", "prophetnet"])
def test_added_tokens_that_are_not_special_are_found_as_in_the_original(kind: str, tmp_path: Path) -> None:
    slow = KINDS[kind](tmp_path)
    slow.add_tokens(["Foo-Bar", AddedToken("Baz!", normalized=False)])
    written = text_tokenizer(tmp_path, write_tokenizer(slow, None, tmp_path))
    texts = ["a Foo-Bar b", "a Baz! b", "a FoO-bAr baz! b", "a Foo\u200b-Bar b Baz\u200b! c", "a foo\u200b-bar b"]
    assert [ids.tolist() for ids in written(texts)[0]] == [original_ids(slow, text, None) for text in texts]


@pytest.mark.parametrize("kind", fast_kinds)
def test_the_fast_mode_gives_the_fast_tokenizers_ids(kind: str, tmp_path: Path) -> None:
    assert differences(kind, "fast", tmp_path) == (0, [])


def test_every_conversion_is_of_a_class_of_transformers() -> None:
    assert [name for name in CONVERSIONS if not hasattr(transformers, name)] == []


def test_a_subclass_is_converted_as_its_parent(tmp_path: Path) -> None:
    class Renamed(transformers.ByT5Tokenizer):
        pass

    assert convert(Renamed()).tokenizer.encode("a").ids == [ord("a") + 3]


def test_an_unknown_class_is_refused() -> None:
    class Unknown(transformers.PreTrainedTokenizer):
        vocab_size = 0

        def get_vocab(self) -> dict[str, int]:
            return {}

    with pytest.raises(ExportError, match="Unknown cannot be converted"):
        convert(Unknown())


def test_a_t5_that_is_not_legacy_is_refused(tmp_path: Path) -> None:
    slow = KINDS["t5"](tmp_path)
    slow.legacy = False

    with pytest.raises(ExportError, match="legacy"):
        convert(slow)


def test_a_bertweet_that_rewrites_tweets_is_refused(tmp_path: Path) -> None:
    slow = KINDS["bertweet"](tmp_path)
    slow.normalization = True

    with pytest.raises(ExportError, match="normalization"):
        convert(slow)
