"""Twice the text takes at most two and a half times as long, whatever it is made of, with every
kind of tokenizer.
"""

import importlib.util
import math
import time

import pytest

from bertscore_onnx.text.tokenizer import TextTokenizer

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("no_garbage_collection")]

MAX_RATIO = 2.5
MAX_SECONDS_PER_BYTE = 30e-6
"""Far above the worst, 5e-6, and far below what a look-up that is made for each word costs."""

MEASURABLE, LEAST = 0.002, 0.001
"""Seconds: texts are made longer up to the first; the second is the least that a text is taken to
cost.
"""

SIZES = 8_000, 64_000
"""Bytes of the shorter text, at least and at most."""

ROUNDS, DOUBLINGS = 5, 3
"""Of each length the least time counts, as other processes may be at work; and one doubling in
three has to be linear, as memory takes time that is asked for first."""

INPUTS = {
    "one word": "a",
    "words": "the cat sat on a mat ",
    "digits": "1670000000",
    "dots": ".",
    "spaced dots": ". ",
    "marks of ASCII": "!?#$%&()*+,-./:;<=>@[]^_`{|}~",
    "quotes": "''`\"",
    "commas after digits": "1,",
    "words with commas": "1, ",
    "apostrophes": "a'b ",
    "entities": "&apos;&amp;",
    "addresses": "http://a.b/c?d=e a@b.c ",
    "abbreviations": "a.b. Mr. No. x. ",
    "spaces": " ",
    "line ends": "a\n",
    "controls": "\x01\u200b",
    "ideographs": "中文字",
    "full stops": "。 ．",
    "joined emoji": "👩\u200d👩🏽\u200d",
    "flags": "\U0001f1e6",
    "Hangul": "\u1112\u1161\u11ab한",
    "viramas": "क\u094d",
    "accents": "é",
    "one mark": "\u0301",
    "alternating marks": "\u0301\u0327",
    "marks of class 0": "\u0f73\u0327",
    "marks of two": "\u0344\u0327",
    "spacing marks": "\u302e\U0001d165",
    "kana marks": "\uff9e\u0301",
    "runs of marks": "a" + "\u0301\u0327" * 31,
    "expanding": "\ufdfa",
    "special tokens": "[SEP]</s><mask> <special1>",
    "begun special tokens": "<unk_<extra_id_<special",
    "pieces": "▁a@@##Ġ</w>",
}
"""What the texts repeat."""

needs_sacremoses = pytest.mark.skipif(
    importlib.util.find_spec("sacremoses") is None, reason="XLM needs sacremoses"
)
SLOW = ["albert", "bert", "bert-accents", "bertweet", "bigbird-bpe", "bigbird-characters",
        "blenderbot-small", "byt5", "deberta-v2-marks", "mbart50", "pegasus", "roberta", "xlm-roberta"]  # fmt: skip
FAST = ["albert", "bert", "deberta", "roberta", "xlm-roberta"]
CASES = [
    *((kind, "slow") for kind in SLOW),
    *((kind, "fast") for kind in FAST),
    pytest.param("xlm", "slow", marks=needs_sacremoses),
]


@pytest.fixture
def tokenizer_of(tmp_path):
    from bertscore_onnx_export.model.source import Source  # imports PyTorch
    from bertscore_onnx_export.tokenizer.load import load_tokenizer
    from bertscore_onnx_export.tokenizer.write import write_tokenizer
    from tests.support.tiny_models import KINDS

    def make(kind, mode):
        (tmp_path / "made").mkdir()
        KINDS[kind](tmp_path / "made").save_pretrained(tmp_path / "saved")
        facts = write_tokenizer(
            load_tokenizer(Source(str(tmp_path / "saved")), mode), None, tmp_path
        )
        return TextTokenizer(tmp_path, spec=facts.spec, max_length=512, empty_ids=facts.empty_ids)

    return make


def text_of(repeated, size):
    return f"a{repeated * (size // len(repeated.encode()))}a"


def seconds(tokenizer, text):
    start = time.process_time()
    tokenizer([text])
    return max(time.process_time() - start, LEAST)


def is_linear(tokenizer, repeated):
    size = SIZES[0]
    while seconds(tokenizer, text_of(repeated, size)) < MEASURABLE and size < SIZES[1]:
        size *= 2
    return any(is_linear_at(tokenizer, repeated, size << doubling) for doubling in range(DOUBLINGS))


def is_linear_at(tokenizer, repeated, size):
    text, doubled = text_of(repeated, size), text_of(repeated, 2 * size)
    once = twice = math.inf
    for _ in range(ROUNDS):
        once, twice = min(once, seconds(tokenizer, text)), min(twice, seconds(tokenizer, doubled))
        if twice <= MAX_RATIO * once and once <= MAX_SECONDS_PER_BYTE * size:
            return True
    return False


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_the_time_of_tokenising_grows_with_the_text(tokenizer_of, kind, mode):
    tokenizer = tokenizer_of(kind, mode)
    assert [name for name, repeated in INPUTS.items() if not is_linear(tokenizer, repeated)] == []
