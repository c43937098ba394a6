"""The presets give the scores of the published variants: of their own code, run here, or of their
formulas in float64.

CodeBERTScore is on the package index. Doc-BERTScore is not: the environment variable
`BERTSCORE_VARIANTS` names a folder with a clone of amazon-science/doc-mt-metrics; without it, its
formula alone is tested.
"""

import importlib.util
import os
import string
import sys
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics

import bert_score.utils
import code_bert_score
import numpy as np
import pytest
import torch
import transformers

from bertscore_onnx import BERTScorer
from bertscore_onnx.matching.variants import PRESETS
from tests.support.bundles import exported, saved
from tests.support.parity import KNOWN_WARNINGS, TOLERANCE

CODE = PRESETS["code-bert-score"]
NUM_PAIRS = 200
VARIANTS = os.environ.get("BERTSCORE_VARIANTS")

FULL = pytest.mark.full
needs_sources = pytest.mark.skipif(
    not VARIANTS, reason="BERTSCORE_VARIANTS names no folder of their sources"
)

pytestmark = [*KNOWN_WARNINGS, pytest.mark.filterwarnings("ignore:distutils:DeprecationWarning")]


@pytest.fixture(scope="module")
def roberta():
    return saved("roberta", is_wide=True)


@pytest.fixture(scope="module")
def roberta_bundle(roberta):
    return exported("wide-roberta-fast", roberta, num_layers=2, tokenizer_mode="fast")


@pytest.fixture(scope="module", params=["roberta", "bert"])
def model(request):
    return saved(request.param, is_wide=True)


@pytest.fixture(scope="module")
def bundle(model):
    return exported(f"wide-{model.name}-fast", model, num_layers=2, tokenizer_mode="fast")


@pytest.fixture(scope="module")
def fits(model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    return lambda *texts: all(
        len(tokenizer(text)["input_ids"]) <= tokenizer.model_max_length for text in texts
    )


# CodeBERTScore


@pytest.fixture(scope="module")
def snippets(roberta):
    """Candidates, references and two lines before them, from the standard library."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(roberta)
    found = []
    for name in ("argparse", "calendar", "csv", "heapq", "shlex", "statistics", "textwrap"):
        source = Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")
        lines = [line for line in source.splitlines() if line.strip() and line.isascii()]
        for start in range(0, len(lines) - 6, 7):
            before, reference = lines[start : start + 2], lines[start + 2 : start + 4]
            candidate = [reference[0].replace("self", "this"), lines[start + 5]]
            if (
                len(tokenizer("\n".join([*before, *reference, *candidate]))["input_ids"])
                <= tokenizer.model_max_length
            ):
                found.append(("\n".join(candidate), "\n".join(reference), *before))
    rng = np.random.default_rng(0)
    return [
        list(column)
        for column in zip(*(found[i] for i in rng.permutation(len(found))[:NUM_PAIRS]), strict=True)
    ]


def code_bert_score_of(model, candidates, references, sources):
    """Return P, R, F1 and F3 of their own code, (4, pairs)."""
    scores = code_bert_score.score(
        candidates, references, model_type=str(model), num_layers=2, sources=sources, device="cpu"
    )
    return np.stack([values.numpy() for values in scores])


def of_both_betas(bundle, candidates, references, contexts):
    """Return P, R, F1 and F3 of the preset, (4, pairs)."""
    with (
        BERTScorer(bundle, matching=CODE) as scorer,
        BERTScorer(bundle, matching=replace(CODE, beta=3)) as of_f3,
    ):
        scores = scorer.score(candidates, references, contexts=contexts)
        return np.stack([*scores, of_f3.score(candidates, references, contexts=contexts).F])


@pytest.mark.parametrize("num_lines", [pytest.param(0, marks=FULL), 1, pytest.param(2, marks=FULL)])
def test_code_bert_score(roberta, roberta_bundle, snippets, num_lines):
    candidates, references, *before = snippets
    assert len(candidates) == NUM_PAIRS
    contexts = (
        ["\n".join(lines) for lines in zip(*before[:num_lines], strict=True)] if num_lines else None
    )
    theirs = code_bert_score_of(roberta, candidates, references, contexts)
    np.testing.assert_allclose(
        of_both_betas(roberta_bundle, candidates, references, contexts), theirs, atol=TOLERANCE
    )


@pytest.mark.parametrize(
    ("candidate", "reference", "context"),
    [
        ("f(x):\r\n    y\r\n", "f(x):\n    y\x0b\x0c", None),
        ("a\xa0 = b\u3000", "a = b", None),
        ("((x)) + -y[::]", "x|y&~z", None),
        ("# größe 名前 😀", "größe = '😀'", None),
        ("x </s> y <mask>", "<s> x", None),
        ("(x)", "[x]", "return"),
        ("_f(x)", "f(x)", "def"),
        ("f(x)", "f(y)", ""),
        ("f(x)", "f(y)", "  print ( a , b )  # it 's  \n\n\n"),
    ],
)
def test_code_bert_score_of_unusual_texts(roberta, roberta_bundle, candidate, reference, context):
    contexts = None if context is None else [context]
    theirs = code_bert_score_of(roberta, [candidate], [reference], contexts)
    with BERTScorer(roberta_bundle, matching=CODE) as scorer:
        if context == "":
            with pytest.warns(UserWarning, match="an empty context"):
                scores = scorer.score([candidate], [reference], contexts=contexts)
        else:
            scores = scorer.score([candidate], [reference], contexts=contexts)
    np.testing.assert_allclose(np.stack([*scores]), theirs[:3], atol=TOLERANCE)


def test_code_bert_score_keeps_contexts_of_split_characters(roberta, roberta_bundle):
    """Their loop stops inside of such a character of the context, and so they match the rest of the
    context too.
    """
    before, rest, texts = "name = ", "名前", ["return name", "return one"]
    theirs = code_bert_score_of(roberta, texts[:1], texts[1:], [before + rest])[:3, 0]
    with BERTScorer(roberta_bundle, matching=CODE) as scorer:
        ours = np.stack([*scorer.score(texts[:1], texts[1:], contexts=[before + rest])])[:, 0]
    number = len(transformers.AutoTokenizer.from_pretrained(roberta)(before)["input_ids"]) - 1
    sides = [code_side(roberta, f"{before}{rest} \n{text}", number) for text in reversed(texts)]
    precision, recall, f1 = (
        float(value) for value in bert_score.utils.greedy_cos_idf(*sides[0], *sides[1])
    )
    np.testing.assert_allclose(theirs, [precision, recall, f1], atol=TOLERANCE)
    assert np.abs(theirs - ours).max() > 1e-3


def code_side(model, text, num_dropped):
    """Return the vectors, the mask and the weights of a text, without punctuation and some tokens
    after the first.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    ids = tokenizer(text)["input_ids"]
    kept = [0, *range(num_dropped, len(ids))]
    marks = {*string.punctuation} - {*"+-*/&|~"}
    kept = [
        place
        for place in kept
        if not {*tokenizer.convert_ids_to_tokens(ids[place]).strip("ĠĊĉ")} <= marks
    ]
    with torch.no_grad():
        vectors = bert_score.utils.get_model(str(model), 2)(torch.tensor([ids]))[0][:, kept]
    weights = [float(ids[place] not in tokenizer.all_special_ids) for place in kept]
    return vectors, torch.ones(1, len(kept)), torch.tensor([weights])


# Doc-BERTScore


SENTENCES = [
    sentence
    for name in sorted(topics)
    for paragraph in topics[name].split("\n\n")
    if not paragraph.startswith((" ", "*"))
    for sentence in " ".join(paragraph.split()).split(". ")
    if 30 < len(sentence) < 70 and sentence.isascii()
]
"""English sentences, in their order."""


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=FULL)])
def documents(request, fits):
    """Candidates, references, and the one or two references before each."""
    number = request.param
    rows = []
    for place in range(number, len(SENTENCES) - 1):
        reference, before = SENTENCES[place], SENTENCES[place - number : place]
        candidate = " ".join(reference.split()[::-1][:5] + SENTENCES[place + 1].split()[2:])
        if fits(
            " ".join([*before, reference, "x x x x"]), " ".join([*before, candidate, "x x x x"])
        ):
            rows.append((candidate, reference, before))
    assert len(rows) >= NUM_PAIRS
    return [list(column) for column in zip(*rows[:NUM_PAIRS], strict=True)]


def by_formula(model, candidates, references, contexts, idf=None):
    """Return P, R and F of bert-score's own matching, (3, pairs), of tokens that weigh nothing in
    the context.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = bert_score.utils.get_model(str(model), 2)
    separator = tokenizer.sep_token_id
    scores = []
    for candidate, reference, before in zip(candidates, references, contexts, strict=True):
        sides = []
        for text in (reference, candidate):
            ids = tokenizer(f" {tokenizer.sep_token} ".join([*before, text]))["input_ids"]
            last_separator = max(
                place for place, token in enumerate(ids[:-1]) if token == separator
            )
            weights = [
                0.0 if token in (tokenizer.cls_token_id, separator) else 1.0 for token in ids
            ]
            if idf is not None:
                weights = [idf[token] for token in ids]
            weights[: last_separator + 1] = [0.0] * (last_separator + 1)
            with torch.no_grad():
                vectors = network(torch.tensor([ids]))[0]
            sides += [vectors, torch.ones(1, len(ids)), torch.tensor([weights])]
        scores.append([float(value) for value in bert_score.utils.greedy_cos_idf(*sides)])
    return np.array(scores).T


@pytest.mark.parametrize("idf", [False, True])
def test_doc_bert_score_by_its_formula(model, bundle, documents, idf):
    candidates, references, contexts = ([*column[:30]] for column in documents)
    table = bert_score.utils.get_idf_dict(
        references, transformers.AutoTokenizer.from_pretrained(model), nthreads=0
    )
    with BERTScorer(bundle, matching="doc-bert-score", idf=idf) as scorer:
        ours = scorer.score(candidates, references, contexts=contexts)
    expected = by_formula(model, candidates, references, contexts, table if idf else None)
    np.testing.assert_allclose(np.stack([*ours]), expected, atol=TOLERANCE)


@pytest.fixture
def their_sources(monkeypatch):
    """Return a module of their sources by its path and a name."""

    def load(name, path):
        spec = importlib.util.spec_from_file_location(name, Path(VARIANTS) / path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


@needs_sources
def test_doc_bert_score(their_sources, model, bundle, documents):
    candidates, references, contexts = documents
    theirs = their_sources("doc_bert_score", "doc-mt-metrics/bert_score/bert_score/__init__.py")
    separator = transformers.AutoTokenizer.from_pretrained(model).sep_token
    joined = [
        [
            f" {separator} ".join([*before, text])
            for before, text in zip(contexts, side, strict=True)
        ]
        for side in (candidates, references)
    ]
    options = {
        "model_type": str(model),
        "num_layers": 2,
        "device": "cpu",
        "use_fast_tokenizer": True,
    }
    plain = np.stack(
        [values.numpy() for values in theirs.BERTScorer(**options).score(*joined, doc=True)]
    )
    of_idf = theirs.BERTScorer(**options, idf=True, idf_sents=references).score(*joined, doc=True)
    with BERTScorer(bundle, matching="doc-bert-score") as scorer:
        ours = np.stack([*scorer.score(candidates, references, contexts=contexts)])
        with_idf = np.stack(
            [*scorer.with_idf(True).score(candidates, references, contexts=contexts)]
        )
    np.testing.assert_allclose(ours, plain, atol=TOLERANCE)
    # their idf weights become 0 or 1, and so the scores those without idf
    np.testing.assert_allclose(
        np.stack([values.numpy() for values in of_idf]), ours, atol=TOLERANCE
    )
    assert np.abs(with_idf - ours).max() > 1e-3
