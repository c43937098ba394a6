"""What tokens are called: text, whatever the vocabulary writes."""

import re
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bertscore_onnx.similarity import TokenNames
from bertscore_onnx.text.normalizers import BYTE_CHARACTERS
from bertscore_onnx.text.spec import SpecialToken

BYTES = {character: byte for byte, character in BYTE_CHARACTERS.items()}


def names_of(tokenizer, folder, special_ids=(), spec=None):
    tokenizer.save(str(folder / "tokenizer.json"))
    manifest = SimpleNamespace(special_ids=[*special_ids], tokenizer_spec=spec)
    return TokenNames(SimpleNamespace(tokenizer_path=folder / "tokenizer.json", manifest=manifest))


@pytest.fixture
def of_bytes(tmp_path):
    """Byte-level BPE whose ids below 256 are bytes; then come a few longer pieces, and a special token."""
    pieces = ["<s>", "The", "ĠThe", "CafÃ©", "ĠCafÃ©", "æĿ", "Ġæ", "±äº", "ĊĊ"]
    vocab = BYTES | {piece: 256 + place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = names_of(tokenizer, tmp_path, [vocab["<s>"]])
    return lambda *tokens: names([vocab[token] if isinstance(token, str) else token for token in tokens])


def test_bytes_become_text(of_bytes):
    assert of_bytes("<s>", "ĠThe", "ĠCafÃ©", "CafÃ©", "<s>") == ["<s>", "The", "Café", "Café", "<s>"]


def test_each_token_with_a_part_of_a_character_shows_it(of_bytes):
    east, capital = "東".encode(), "京".encode()
    assert of_bytes(*east, *capital) == ["東(1/3)", "東(2/3)", "東(3/3)", "京(1/3)", "京(2/3)", "京(3/3)"]
    assert of_bytes("æĿ", east[2], "Ġæ", *east[1:]) == ["東(1/2)", "東(2/2)", "東(1/3)", "東(2/3)", "東(3/3)"]


def test_a_token_may_end_one_character_and_begin_another(of_bytes):
    assert of_bytes("æĿ", "±äº", "京".encode()[2]) == ["東(1/2)", "東(2/2)京(1/2)", "京(2/2)"]


def test_a_character_that_was_cut_off_is_escaped(of_bytes):
    assert of_bytes("The", "æĿ", "<s>") == ["The", r"\xe6\x9d", "<s>"]
    assert of_bytes("æĿ") == [r"\xe6\x9d"]


def test_what_cannot_be_seen_is_escaped(of_bytes):
    assert of_bytes("Ġ", "ĊĊ", "ĉ", 0) == ["␣", r"\n\n", r"\t", r"\x00"]
    assert of_bytes(*"\u200b\u202e".encode()) == [
        *(rf"\u200b({part}/3)" for part in (1, 2, 3)),
        *(rf"\u202e({part}/3)" for part in (1, 2, 3)),
    ]


def test_a_sign_within_a_word_stays(tmp_path):
    vocab = {"[UNK]": 0, "می\u200cخواهم": 1, "\u200d": 2, "a\u202eb": 3, " ": 4, "\u3000": 5}
    names = names_of(Tokenizer(models.WordLevel(vocab, "[UNK]")), tmp_path)
    assert names(range(1, 6)) == ["می\u200cخواهم", r"\u200d", r"a\u202eb", "␣", r"\u3000"]


def test_sentencepiece_marks_are_spaces(tmp_path):
    pieces = ["<unk>", "▁the", "ing", "▁", "the▁", "<0xE6>", "<0x9D>", "<0xB1>", "<0xFF>"]
    vocab = {piece: place for place, piece in enumerate(pieces)}
    names = names_of(Tokenizer(models.WordLevel(vocab, "<unk>")), tmp_path)
    expected = ["<unk>", "the", "ing", "␣", "the", "東(1/3)", "東(2/3)", "東(3/3)", r"\xff"]
    assert names(range(9)) == expected


def test_marks_within_words_go(tmp_path):
    vocab = {"[UNK]": 0, "un": 1, "##happy": 2, "##": 3, "###": 4}
    names = names_of(Tokenizer(models.WordPiece(vocab)), tmp_path)
    assert names(range(5)) == ["[UNK]", "un", "happy", "##", "#"]


def test_marks_of_word_ends_go(tmp_path):
    tokenizer = Tokenizer(models.BPE({"lo": 0, "w</w>": 1, "</w>": 2}, [], end_of_word_suffix="</w>"))
    assert names_of(tokenizer, tmp_path)(range(3)) == ["lo", "w", "␣"]


def test_byte_level_is_known_from_the_decoder_too(tmp_path):
    tokenizer = Tokenizer(models.BPE(BYTES | {"Ġthe": 256}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel()])
    assert names_of(tokenizer, tmp_path)([256]) == ["the"]


def test_special_tokens_have_the_name_that_the_bundle_gives_them(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, " 1": 1}, "<unk>"))
    tokenizer.add_special_tokens(["<｜end▁of▁text｜>"])
    spec = SimpleNamespace(special_tokens=[SpecialToken("<s>", 1), SpecialToken("en_XX", 9)])
    assert names_of(tokenizer, tmp_path, [1, 9], spec)([1, 2, 9, 7]) == ["<s>", "<｜end▁of▁text｜>", "en_XX", "#7"]


@pytest.mark.slow
def test_no_tokenizer_shows_marks_or_bytes(tmp_path):
    import importlib.util

    from bertscore_onnx_export.tokenizer.write import write_tokenizer

    from bertscore_onnx.text.tokenizer import TextTokenizer
    from tests.support.tiny_models import KINDS

    has_sacremoses = importlib.util.find_spec("sacremoses") is not None
    shown = {}
    for kind, make in KINDS.items():
        if kind.startswith("xlm") and kind in ("xlm", "xlm-cased") and not has_sacremoses:
            continue
        folder = tmp_path / kind
        folder.mkdir()
        facts = write_tokenizer(make(folder), None, folder)
        tokenize = TextTokenizer(folder, spec=facts.spec, max_length=None, empty_ids=facts.empty_ids)
        manifest = SimpleNamespace(special_ids=facts.empty_ids, tokenizer_spec=facts.spec)
        names = TokenNames(SimpleNamespace(tokenizer_path=folder / "tokenizer.json", manifest=manifest))
        [ids], _ = tokenize(["the lowly Café in 東京"])
        shown[kind] = " ".join(names(ids.tolist()))
    assert len(shown) > 30
    for kind, text in shown.items():
        assert not re.search("[Ġ▁Ã\ufffd#@]|</w>|<0x", text), f"{kind}: {text}"
    assert shown["roberta"].endswith("東(1/3) 東(2/3) 東(3/3) 京(1/3) 京(2/3) 京(3/3) </s>")
    assert shown["mt5"].endswith("東(1/3) 東(2/3) 東(3/3) 京(1/3) 京(2/3) 京(3/3) </s>")
