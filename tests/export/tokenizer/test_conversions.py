"""Every kind of slow tokenizer, converted, gives the ids of the original on plain and on edge-case
texts.
"""

import importlib.util
import random
import re
from types import SimpleNamespace

import pytest
import transformers
from transformers import AddedToken

from bertscore_onnx.errors import ExportError
from bertscore_onnx.similarity import TokenNames
from bertscore_onnx.text.spec import tokenizer_file
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.tokenizer.conversions import CONVERSIONS, convert
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import original_ids, write_tokenizer
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS
from tests.support.tiny_models import KINDS, TRAINING_TEXTS

has_sacremoses = importlib.util.find_spec("sacremoses") is not None
needs_sacremoses = pytest.mark.skipif(not has_sacremoses, reason="XLM's tokenizer needs sacremoses")
EVERY_CONVERSION = {
    *(
        "albert",
        "bert",
        "bert-cased",
        "bertweet",
        "bigbird-bpe",
        "bigbird-characters",
        "blenderbot",
        "blenderbot-small",
    ),
    *("byt5", "deberta-v2", "roberta", "t5", "xlm", "xlm-roberta-plain", "xlnet"),
}
"""A tokenizer for each branch of the functions that convert, and for each way of SentencePiece;
`make test-full` takes all."""


def marks(kind):
    of_xlm = [needs_sacremoses] if kind in ("xlm", "xlm-cased") else []
    return of_xlm if kind in EVERY_CONVERSION else [*of_xlm, pytest.mark.full]


slow_kinds = [pytest.param(kind, marks=marks(kind)) for kind in KINDS]
fast_kinds = [
    "albert",
    "bert",
    "bigbird",
    "camembert",
    "deberta",
    "mbart",
    "mpnet",
    "pegasus",
    "roberta",
    "t5",
    "xlnet",
]
fast_kinds += [pytest.param(kind, marks=pytest.mark.full) for kind in ("bart", "xlm-roberta")]


AMOUNTS = [
    "€1670000000",
    "£0000000000000000",
    *(f"£167{'0' * count} €{'0' * count}" for count in range(60)),
]
"""Ties between cuts, behind user-defined pieces of several bytes (ALBERT, XLNet)."""


_BLOCKS = (
    (0x00, 0x1F), (0x20, 0x7E), (0x7F, 0x24F), (0x250, 0x3FF), (0x400, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF),
    (0xE00, 0xEFF), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x20CF), (0x20D0, 0x2BFF), (0x3000, 0x30FF),
    (0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFFF),
    (0x10000, 0x1FFFF), (0x20000, 0x2FA1F), (0xE0000, 0xE01EF),
)  # fmt: skip
_SPACES = (
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\x1c",
    "\x85",
    "\u2028",
    "",
)
_REPEATED = "abehinost.!-?0123456789,_=*#'"


def edge_case_texts(count, special_tokens, seed=0):
    """Return random strings; the same ones for the same arguments."""
    chance = random.Random(seed)  # noqa: S311
    words = [word for text in PLAIN_TEXTS for word in text.split()[:40]]
    specials = [
        *special_tokens,
        *(token.upper() for token in special_tokens),
        *map(_widened, special_tokens),
    ]

    def part():
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
                return "".join(
                    chr(chance.randint(first, last)) for _ in range(chance.randrange(1, 6))
                )

    return [
        "".join(part() + chance.choice(_SPACES) for _ in range(chance.randrange(1, 14)))
        for _ in range(count)
    ]


def _widened(text):
    """Return a text in full-width letters, which compatibility normalisation undoes."""
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def tokenizer_of(kind, mode, folder, change=lambda slow: None):
    """Make a tokenizer, change it, save it as models are, and load it as the export does."""
    (folder / "made").mkdir()
    slow = KINDS[kind](folder / "made")
    change(slow)
    slow.save_pretrained(folder / "saved")
    return load_tokenizer(Source(str(folder / "saved")), mode)


def assert_same_ids(original, texts, folder):
    """Convert a tokenizer, and return what is recorded of it."""
    facts = write_tokenizer(original, None, folder)
    written = TextTokenizer(
        folder, spec=facts.spec, max_length=facts.max_length, empty_ids=facts.empty_ids
    )
    pairs = zip(texts, written(texts)[0], strict=True)
    assert [
        text
        for text, ids in pairs
        if ids.tolist() != original_ids(original, text, facts.max_length)
    ] == []
    return facts


def assert_converted(kind, mode, folder):
    """Compare the ids of all texts; the names of tokens have neither marks nor bytes."""
    original = tokenizer_of(kind, mode, folder)
    special_tokens = [token.content for token in original.added_tokens_decoder.values()][:12]
    hidden = [f"a {token[:2]}\u200b{token[2:]} b" for token in special_tokens]
    texts = [
        *PLAIN_TEXTS,
        *hidden,
        *EDGE_CASE_TEXTS,
        *TRAINING_TEXTS,
        *AMOUNTS,
        *edge_case_texts(300, special_tokens),
    ]
    facts = assert_same_ids(original, texts, folder)
    assert facts.differences == 0
    manifest = SimpleNamespace(special_ids=facts.empty_ids, tokenizer_spec=facts.spec)
    names = TokenNames(
        SimpleNamespace(tokenizer_path=folder / tokenizer_file(facts.spec), manifest=manifest)
    )
    shown = " ".join(names(original_ids(original, "the lowly Café in 東京", None)))
    assert not re.search("[Ġ▁Ã\ufffd#@]|</w>|<0x", shown)
    if kind in ("mt5", "roberta"):
        assert shown.endswith("東(1/3) 東(2/3) 東(3/3) 京(1/3) 京(2/3) 京(3/3) </s>")


@pytest.mark.parametrize("kind", slow_kinds)
def test_a_converted_slow_tokenizer_gives_the_original_ids(kind, tmp_path):
    assert_converted(kind, "slow", tmp_path)


@pytest.mark.parametrize("kind", fast_kinds)
def test_the_fast_mode_gives_the_fast_tokenizers_ids(kind, tmp_path):
    assert_converted(kind, "fast", tmp_path)


ADDED = [
    AddedToken("wug", single_word=True),
    AddedToken("Fep", single_word=True, normalized=False),
    AddedToken("a.b", single_word=True, lstrip=True, rstrip=True),
    AddedToken("<ent>", single_word=True, special=True),
    AddedToken("U.S.", normalized=False),
    AddedToken("ＮＡＴＯ", normalized=False),
    AddedToken("Café", normalized=True, lstrip=True),
    "Foo-Bar",
    AddedToken("Baz!", normalized=False),
]
"""Tokens with every flag that `tokenizer_config.json` may give them."""

WITH_ADDED = [
    *(f"{before}{token}{after}" for token in ADDED for before in ("", "x", "x ", ".", "\t", "wug", "<ent>") for
      after in ("", "s", " s", "!", "\n", "wug", " wug", "<ent>")),
    "wugs wug wugwug wug wug",
    "two wugs, one wug. A U.S. senator of the U.S.A.",
    "fep FEP Fep Feps  a.b  xa.bx nato ＮＡＴＯ ＮＡＴＯs cafe Café café cafés",
    *("a FoO-bAr baz! b", "a Foo\u200b-Bar b Baz\u200b! c", "a foo\u200b-bar b"),
]  # fmt: skip


BOTH = [
    "albert",
    "bert",
    "bert-cased",
    "bart",
    "camembert",
    "mbart",
    "mpnet",
    "roberta",
    "t5",
    "xlm-roberta",
    "xlnet",
]
SLOW_ALONE = ["bertweet", "blenderbot-small", "byt5", "deberta-v2", "prophetnet"]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((kind, mode) for kind in BOTH for mode in ("slow", "fast")),
        *((kind, "slow") for kind in SLOW_ALONE),
    ],
)
def test_added_tokens_keep_their_flags(kind, mode, tmp_path):
    original = tokenizer_of(kind, mode, tmp_path, lambda slow: slow.add_tokens(ADDED))
    assert original.added_tokens_decoder[original.convert_tokens_to_ids("wug")].single_word
    assert_same_ids(original, WITH_ADDED, tmp_path)


@pytest.mark.parametrize(
    "kind", ["bert", "bert-cased", "bert-accents", "distilbert", "electra", "mpnet"]
)
def test_words_that_are_never_split_stay_whole(kind, tmp_path):
    never_split = [
        "U.S.",
        "us",
        "re-",
        "Café",
        "state-of-the-art",
        "zürich's",
        "y" * 120,
        "",
        "two words",
        ".",
    ]

    def change(slow):
        never_split.append(next(word for word in slow.vocab if len(word) > 4 and word.isalpha()))
        slow.init_kwargs["never_split"] = never_split

    original = tokenizer_of(kind, "slow", tmp_path, change)
    assert original.basic_tokenizer.never_split >= {"U.S."}
    known = never_split[-1]
    texts = [
        *(
            "U.S.",
            "the U.S. senate",
            "U.S.A.",
            "u.s.",
            "US us Us user",
            "re-enter re- enter",
            "Café café CAFÉ Cafés",
        ),
        *(
            "state-of-the-art",
            "a state-of-the-art.",
            "Zürich's zürich's",
            f"{known} {known}s x{known}",
            "y" * 120,
        ),
        *(
            "two words",
            "a . b.",
            "U.\u200bS. U.S.\u200b",
            "[SEP] [UNK] us[SEP]us",
            "u\u0301s u.s",
            "東us京",
        ),
        *PLAIN_TEXTS,
        *EDGE_CASE_TEXTS,
    ]
    assert_same_ids(original, texts, tmp_path)


def test_a_word_that_is_never_split_and_too_long_is_refused(tmp_path):
    slow = KINDS["bert"](tmp_path)
    slow.basic_tokenizer.never_split |= {next(word for word in slow.vocab if len(word) > 100)}
    with pytest.raises(ExportError, match="never_split"):
        convert(slow)


def test_every_conversion_is_of_a_class_of_transformers():
    assert [name for name in CONVERSIONS if not hasattr(transformers, name)] == []


def test_a_subclass_is_converted_as_its_parent(tmp_path):
    class Renamed(transformers.ByT5Tokenizer):
        pass

    assert convert(Renamed()).tokenizer.encode("a").ids == [ord("a") + 3]


def test_an_unknown_class_is_refused():
    class Unknown(transformers.PreTrainedTokenizer):
        vocab_size = 0

        def get_vocab(self):
            return {}

    with pytest.raises(ExportError, match="Unknown"):
        convert(Unknown())


@pytest.mark.parametrize(
    ("kind", "option", "value"), [("t5", "legacy", False), ("bertweet", "normalization", True)]
)
def test_an_option_that_no_conversion_knows_is_refused(kind, option, value, tmp_path):
    slow = KINDS[kind](tmp_path)
    setattr(slow, option, value)
    with pytest.raises(ExportError, match=option):
        convert(slow)
