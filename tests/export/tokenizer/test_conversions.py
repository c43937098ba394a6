"""Every kind of slow tokenizer, converted, gives the ids of the original on plain and on edge-case texts."""

import importlib.util
import random
from collections.abc import Sequence
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
from tests.support.tiny_models import KINDS, TRAINING_TEXTS

has_sacremoses = importlib.util.find_spec("sacremoses") is not None
needs_sacremoses = pytest.mark.skipif(not has_sacremoses, reason="XLM's tokenizer needs sacremoses")
EVERY_CONVERSION = {
    *("albert", "bert", "bert-cased", "bertweet", "bigbird-bpe", "bigbird-characters", "blenderbot-small", "byt5"),
    *("deberta-v2", "roberta", "t5", "xlm", "xlm-roberta-plain", "xlnet"),
}
"""A tokenizer for each function that converts, and for each way of SentencePiece; `make test-full` takes all."""


def marks(kind: str) -> list[pytest.MarkDecorator]:
    of_xlm = [needs_sacremoses] if kind in ("xlm", "xlm-cased") else []
    return of_xlm if kind in EVERY_CONVERSION else [*of_xlm, pytest.mark.full]


slow_kinds = [pytest.param(kind, marks=marks(kind)) for kind in KINDS]
fast_kinds = [
    "albert",
    "bart",
    "bert",
    "camembert",
    "deberta",
    "mbart",
    "mpnet",
    "pegasus",
    "roberta",
    "t5",
    "xlm-roberta",
    "xlnet",
]


AMOUNTS = ["€1670000000", "£0000000000000000", *(f"£167{'0' * count} €{'0' * count}" for count in range(60))]
"""Ties between cuts, behind user-defined pieces of several bytes (ALBERT, XLNet)."""


_BLOCKS = (
    (0x00, 0x1F), (0x20, 0x7E), (0x7F, 0x24F), (0x250, 0x3FF), (0x400, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF),
    (0xE00, 0xEFF), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x20CF), (0x20D0, 0x2BFF), (0x3000, 0x30FF),
    (0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFFF),
    (0x10000, 0x1FFFF), (0x20000, 0x2FA1F), (0xE0000, 0xE01EF),
)  # fmt: skip
_SPACES = (" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u200b", "\x1c", "\x85", "\u2028", "")
_REPEATED = "abehinost.!-?0123456789,_=*#'"


def edge_case_texts(count: int, special_tokens: Sequence[str], seed: int = 0) -> list[str]:
    """Return random strings; the same ones for the same arguments."""
    chance = random.Random(seed)  # noqa: S311
    words = [word for text in PLAIN_TEXTS for word in text.split()[:40]]
    specials = [*special_tokens, *(token.upper() for token in special_tokens), *map(_widened, special_tokens)]

    def part() -> str:
        match chance.randrange(8):
            case 0 | 1 | 2:
                return chance.choice(words)
            case 3:
                return chance.choice(specials)
            case 4:
                unit = "".join(chance.choices(_REPEATED, k=chance.randrange(1, 3)))
                return unit * chance.randrange(1, 20)
            case _:
                first, last = chance.choice(_BLOCKS)
                return "".join(chr(chance.randint(first, last)) for _ in range(chance.randrange(1, 6)))

    return ["".join(part() + chance.choice(_SPACES) for _ in range(chance.randrange(1, 14))) for _ in range(count)]


def _widened(text: str) -> str:
    """Return a text in full-width letters, which compatibility normalisation undoes."""
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


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


ADDED = [
    AddedToken("wug", single_word=True),
    AddedToken("Fep", single_word=True, normalized=False),
    AddedToken("a.b", single_word=True, lstrip=True, rstrip=True),
    AddedToken("<ent>", single_word=True, special=True),
    AddedToken("U.S.", normalized=False),
    AddedToken("ＮＡＴＯ", normalized=False),
    AddedToken("Café", normalized=True, lstrip=True),
]
"""Tokens with every flag that `tokenizer_config.json` may give them."""

WITH_ADDED = [
    *(f"{before}{token.content}{after}" for token in ADDED for before in ("", "x", "x ", ".", "\t", "wug", "<ent>") for
      after in ("", "s", " s", "!", "\n", "wug", " wug", "<ent>")),
    "wugs wug wugwug wug wug",
    "two wugs, one wug. A U.S. senator of the U.S.A.",
    "fep FEP Fep Feps  a.b  xa.bx nato ＮＡＴＯ ＮＡＴＯs cafe Café café cafés",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["slow", "fast"])
@pytest.mark.parametrize(
    "kind",
    ["albert", "bert", "bert-cased", "bart", "camembert", "mbart", "mpnet", "roberta", "t5", "xlm-roberta", "xlnet"],
)
def test_added_tokens_keep_their_flags(kind: str, mode: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    slow = KINDS[kind](made)
    slow.add_tokens(ADDED)
    slow.save_pretrained(tmp_path / "saved")
    original = load_tokenizer(Source(str(tmp_path / "saved")), mode)
    assert original.added_tokens_decoder[original.convert_tokens_to_ids("wug")].single_word
    written = text_tokenizer(tmp_path, write_tokenizer(original, None, tmp_path))
    ids = [ids.tolist() for ids in written(WITH_ADDED)[0]]
    assert ids == [original_ids(original, text, None) for text in WITH_ADDED]


@pytest.mark.parametrize("kind", ["bertweet", "blenderbot-small", "byt5", "deberta-v2", "prophetnet"])
def test_added_tokens_keep_their_flags_where_there_is_no_fast_tokenizer(kind: str, tmp_path: Path) -> None:
    slow = KINDS[kind](tmp_path)
    slow.add_tokens(ADDED)
    written = text_tokenizer(tmp_path, write_tokenizer(slow, None, tmp_path))
    ids = [ids.tolist() for ids in written(WITH_ADDED)[0]]
    assert ids == [original_ids(slow, text, None) for text in WITH_ADDED]


@pytest.mark.parametrize("kind", ["bert", "bert-cased", "bert-accents", "distilbert", "electra", "mpnet"])
def test_words_that_are_never_split_stay_whole(kind: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    slow = KINDS[kind](made)
    known = next(word for word in slow.vocab if len(word) > 4 and word.isalpha())
    never_split = ["U.S.", "us", "re-", "Café", "state-of-the-art", "zürich's", known, "y" * 120, "", "two words", "."]
    slow.init_kwargs["never_split"] = never_split
    slow.save_pretrained(tmp_path / "saved")
    original = load_tokenizer(Source(str(tmp_path / "saved")), "slow")
    assert original.basic_tokenizer.never_split >= {"U.S."}
    written = text_tokenizer(tmp_path, write_tokenizer(original, None, tmp_path))
    texts = [
        *("U.S.", "the U.S. senate", "U.S.A.", "u.s.", "US us Us user", "re-enter re- enter", "Café café CAFÉ Cafés"),
        *("state-of-the-art", "a state-of-the-art.", "Zürich's zürich's", f"{known} {known}s x{known}", "y" * 120),
        *("two words", "a . b.", "U.\u200bS. U.S.\u200b", "[SEP] [UNK] us[SEP]us", "u\u0301s u.s", "東us京"),
        *PLAIN_TEXTS,
        *EDGE_CASE_TEXTS,
    ]
    assert [ids.tolist() for ids in written(texts)[0]] == [original_ids(original, text, None) for text in texts]


@pytest.mark.parametrize("kind", fast_kinds)
def test_the_fast_mode_gives_the_fast_tokenizers_ids(kind: str, tmp_path: Path) -> None:
    assert differences(kind, "fast", tmp_path) == (0, [])


def test_a_word_that_is_never_split_and_too_long_for_wordpiece_is_refused(tmp_path: Path) -> None:
    slow = KINDS["bert"](tmp_path)
    slow.basic_tokenizer.never_split |= {next(word for word in slow.vocab if len(word) > 100)}
    with pytest.raises(ExportError, match=r"`never_split`, 'x+'…, has more than the 100 characters"):
        convert(slow)


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
