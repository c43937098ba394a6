"""Which tokens take part: an independent computation from the tokens of transformers' own
tokenizers.

`encode` returns the tokens that are matched.
"""

import string
import unicodedata
from itertools import groupby, pairwise

import numpy as np
import pytest
import transformers
from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.matching.variants import Matching
from bertscore_onnx.scoring.pipeline import Pipeline
from tests.support.bundles import exported, saved
from tests.support.parity import KNOWN_WARNINGS
from tests.support.tiny_models import FAST, TINY_MODELS, each_family

pytestmark = KNOWN_WARNINGS

WORDPIECE = {
    "bert",
    "bert-relative-key",
    "bert-relative-key-query",
    "convbert",
    "convbert-groups",
    "distilbert",
} | {
    *(
        "electra",
        "electra-same-size",
        "ernie",
        "megatron-bert",
        "mobilebert",
        "mpnet",
        "prophetnet",
    ),
    *("roc-bert", "roformer", "squeezebert"),
}
BYTE_LEVEL = {
    "bart",
    "blenderbot",
    "bort",
    "data2vec",
    "deberta",
    "deberta-absolute",
    "led",
    "longformer",
} | {
    *("ibert", "luke", "modernbert", "qwen3", "qwen3-embedding", "roberta", "roberta-prelayernorm")
}
SUFFIX = {"flaubert": "</w>", "xlm": "</w>", "xlm-languages": "</w>"}
CONTINUED = {"bertweet": "@@", "blenderbot-small": "@@"}
OTHERS = {"byt5"} | {"embeddinggemma", "gemma3", "mmbert"}
"""ByT5 has bytes alone, which no vocabulary has as text; the tiny vocabulary of Gemma has spaces at
both ends of words, unlike the real one."""

BYTES = {character: byte for byte, character in bytes_to_unicode().items()}

QUICK = {"bert", "modernbert", "t5", "xlm", "bertweet"}

TEXTS = [
    "The unbelievable cats, don't run! (Really?) lowering 3.14 -- e-mail the cat",
    "naïve café — 今日は暑い。 ¿qué? Ångström's cats",
    "हिन्दी में",
    "a",
    "hello [MASK] </s> world",
    "xxxxxxxxxxxxxxxxxxxx catsx the_cats",
    "THE cats. Cats the",
]

WORDS = ("the", "cats", "unbelievable")
FORMS = {form for word in WORDS for form in (word, word.upper(), word.capitalize())}


class Family:
    """The tokens of a model, as transformers names them, and what these say."""

    def __init__(self, name):
        self.name = name
        folder = saved(name)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, use_fast=name in FAST)
        mode = "fast" if name in FAST else "slow"
        self.bundle = exported(
            "bundle", folder, num_layers=2, tokenizer_mode=mode, scoring_graph=True
        )
        empty = self.tokenizer("")["input_ids"]
        self.pipelines = {}
        self.around = {*empty, self.tokenizer.cls_token_id, self.tokenizer.sep_token_id}
        self.special = {*self.tokenizer.all_special_ids, *empty}

    def kept(self, matching, text):
        """Return the ids of a text, and which of them the matching keeps."""
        if matching not in self.pipelines:
            self.pipelines[matching] = Pipeline(open_bundle(self.bundle), matching=matching)
        pipeline = self.pipelines[matching]
        [ids], _ = pipeline.tokenizer([text])
        mask = pipeline.matching.mask.matched(ids, np.array([0]))
        return ids.tolist(), mask.tolist()

    def token(self, token):
        return self.tokenizer.convert_ids_to_tokens(token)

    def text(self, token):
        """Return the text of a token, with its spaces."""
        piece = self.token(token)
        if self.name in BYTE_LEVEL:
            return bytes(BYTES.get(one, 0) for one in piece).decode(errors="replace")
        if self.name in WORDPIECE:
            return piece.removeprefix("##") or piece
        if piece.startswith("<0x"):  # one byte of a character
            return "\ufffd"
        return piece.removesuffix(SUFFIX.get(self.name) or CONTINUED.get(self.name) or "").replace(
            "▁", " "
        )

    def ends_word(self, token):
        """Return whether a word may end after a token."""
        if self.name in SUFFIX:
            return self.token(token).endswith(SUFFIX[self.name])
        return not self.token(token).endswith(CONTINUED.get(self.name) or "\0")

    def continues(self, before, token):
        """Return whether a token goes on with the word of the one before it."""
        if {before, token} & self.special:
            return (
                self.name in WORDPIECE
                and token not in self.special
                and self.token(token).startswith("##")
            )
        if self.name in WORDPIECE:
            return self.token(token).startswith("##")
        if self.name in SUFFIX:
            return not self.token(before).endswith(SUFFIX[self.name])
        if self.name in CONTINUED:
            return self.token(before).endswith(CONTINUED[self.name])
        first, last = self.text(token)[:1], self.text(before)[-1:]
        return all(
            one and (one == "\ufffd" or unicodedata.category(one)[0] in "LNM")
            for one in (first, last)
        )


@pytest.fixture(scope="module", params=each_family(sorted({*TINY_MODELS} - OTHERS), quick=QUICK))
def family(request):
    family = Family(request.param)
    yield family
    for pipeline in family.pipelines.values():
        pipeline.close()


@pytest.mark.parametrize(
    "family", each_family(sorted({*TINY_MODELS} - {"byt5"}), quick=QUICK), indirect=True
)
@pytest.mark.parametrize("text", TEXTS)
def test_special_tokens(family, text):
    ids, kept = family.kept(Matching(exclude=("special",)), text)
    assert kept == [token not in family.around for token in ids]


def is_punctuation(text):
    return bool(text) and all(
        one in string.punctuation or unicodedata.category(one)[0] == "P" for one in text
    )


@pytest.mark.parametrize(
    ("kind", "is_left_out"),
    [
        ("punctuation", lambda text: is_punctuation(text.strip())),
        ("ascii-punctuation", lambda text: text.strip() in [*string.punctuation]),
        (
            "code-punctuation",
            lambda text: {*text.strip(" \n\t")} <= {*string.punctuation} - {*"+-*/&|~"},
        ),
    ],
)
@pytest.mark.parametrize("text", TEXTS)
def test_punctuation(family, text, kind, is_left_out):
    ids, kept = family.kept(Matching(exclude=(kind,)), text)
    assert kept == [token in family.special or not is_left_out(family.text(token)) for token in ids]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_that_continue_a_word(family, text):
    ids, kept = family.kept(Matching(exclude=("subwords",)), text)
    assert kept == [True, *(not family.continues(*pair) for pair in pairwise(ids))]


@pytest.mark.parametrize("text", TEXTS)
def test_whole_words(family, text):
    ids, kept = family.kept(Matching(words=WORDS), text)
    number = np.cumsum([True, *(not family.continues(*pair) for pair in pairwise(ids))])
    expected = []
    for _, places in groupby(range(len(ids)), key=lambda place: number[place]):
        tokens = [ids[place] for place in places]
        word = "".join(family.text(token) for token in tokens).strip()
        is_left_out = family.ends_word(tokens[-1]) and word in FORMS
        expected += [not is_left_out] * len(tokens)
    assert kept == expected


def test_a_word_outside_the_vocabulary_excludes_no_other(tiny_bundle):
    with BERTScorer(tiny_bundle, matching=Matching(words=("zebra", "cat"))) as scorer:
        [ids] = scorer.encode(["the lion saw the cat"]).embeddings.sequences
    with BERTScorer(tiny_bundle) as scorer:
        [all_ids] = scorer.encode(["the lion saw the cat"]).embeddings.sequences
    assert ids.tolist() == [*all_ids[:-2].tolist(), all_ids[-1]]
