"""`make correlations` with all listed models: tiny ones of the same architectures, from a hub on loopback."""

import json
import pickle
import random

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from benchmarks import correlations
from benchmarks.correlations import MINILM, MODELS
from benchmarks.encoder_page import SUMMARY_MARKS, Record
from benchmarks.layer_correlation import export_bundle
from harness.processes import call_in_child
from harness.results import BEGIN, END
from tests.support.fake_hub import Repository, fake_hub
from tests.support.scores import WORDS
from tests.support.tiny_models import save_model_and_tokenizer

FAMILIES = {
    "roberta-base": "roberta",
    "roberta-large": "roberta",
    "microsoft/deberta-large-mnli": "deberta",
    "microsoft/deberta-xlarge-mnli": "deberta",
    "microsoft/deberta-v3-large": "deberta-v3",
    "microsoft/mpnet-base": "mpnet",
    "facebook/data2vec-text-base": "data2vec",
    "answerdotai/ModernBERT-base": "modernbert",
    "answerdotai/ModernBERT-large": "modernbert",
    "Alibaba-NLP/gte-modernbert-base": "modernbert",
    "bert-base-multilingual-cased": "bert",
    "xlm-roberta-base": "xlm-roberta",
    "xlm-roberta-large": "xlm-roberta",
    "google/rembert": "rembert",
    "jhu-clsp/mmBERT-base": "mmbert",
    "sentence-transformers/LaBSE": "bert",
    "BAAI/bge-m3": "xlm-roberta",
    "intfloat/multilingual-e5-large": "xlm-roberta",
    "ibm-granite/granite-embedding-278m-multilingual": "xlm-roberta",
    "google/embeddinggemma-300m": "embeddinggemma",
    "Qwen/Qwen3-Embedding-0.6B": "qwen3-embedding",
}
"""The family of each stand-in."""
NEEDS_5 = "EuroBERT/EuroBERT-210m"
"""The model that transformers 4.57 does not have."""
OLD_WEIGHTS = ("deberta", "deberta-v3", "mpnet", "data2vec")
"""Families whose models on the hub have the weights that `torch.save` writes."""


def stand_in(family, folder):
    """Return the files of a tiny model."""
    save_model_and_tokenizer(family, folder)
    if family in OLD_WEIGHTS:
        weights = load_file(folder / "model.safetensors")
        torch.save(weights, folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def export_in_child(function, *arguments, limit):
    """Start a process only where the hub is asked; here huggingface_hub was loaded as if there were none."""
    return call_in_child(function, *arguments, limit=limit) if function is export_bundle else function(*arguments)


@pytest.fixture
def judgements(tmp_path, monkeypatch):
    """Made-up judgements of translations and of summaries, and texts of two languages, where the command looks."""
    draw = random.Random(0)  # noqa: S311 -- made-up texts

    def text(length=7):
        return " ".join(draw.choices(WORDS.split(), k=length))

    lines = ["lang_pair\tsystem\tsegment\treference\tcandidate\thuman"]
    lines += [
        f"de-en\t{system}\t{segment}\t{text()}\t{text()}\t{draw.randint(0, 100)}"
        for segment in range(8)
        for system in "ab"
    ]
    (tmp_path / "wmt16.tsv").write_text("\n".join(lines) + "\n")
    articles = {
        str(number): {
            "src": text(9),
            "ref_summ": (reference := text()),
            "ref_summs": [reference, text()],
            "sys_summs": {one: {"sys_summ": text(), "scores": {"relevance": draw.random()}} for one in "abc"},
        }
        for number in range(3)
    }
    (tmp_path / "data.pkl").write_bytes(pickle.dumps(articles))
    (tmp_path / "languages").mkdir()
    for name in ("aa", "bb"):
        (tmp_path / "languages" / f"{name}.txt").write_text("\n".join(text() for _ in range(8)))
    for name, path in (("WMT16", "wmt16.tsv"), ("SUMMEVAL", "data.pkl"), ("LANGUAGES", "languages")):
        monkeypatch.setenv(name, str(tmp_path / path))
    monkeypatch.delenv("WMT23", raising=False)


@pytest.mark.families
def test_all_listed_models_are_measured_from_a_hub(tmp_path, monkeypatch, judgements):
    assert {*MODELS} == {MINILM, NEEDS_5, *FAMILIES}
    page = tmp_path / "page.md"
    page.write_text("\n".join(["# Title", BEGIN, END, *SUMMARY_MARKS, ""]))
    with fake_hub() as hub:
        for name, family in FAMILIES.items():
            hub.repositories[name] = Repository()
            hub.repositories[name].commit(stand_in(family, tmp_path / "models" / name))
        config = {"model_type": "eurobert", "auto_map": {"AutoModel": "modeling_eurobert.EuroBertModel"}}
        hub.repositories[NEEDS_5] = Repository()
        hub.repositories[NEEDS_5].commit({"config.json": json.dumps(config).encode()})
        monkeypatch.setattr(correlations, "call_in_child", export_in_child)
        for name, value in (("HF_ENDPOINT", hub.url), ("HF_HUB_OFFLINE", "0"), ("HF_HOME", str(tmp_path / "hf"))):
            monkeypatch.setenv(name, value)
        assert correlations.main(["--output", str(tmp_path / "out"), "--page", str(page)]) == 0
    records = [msgspec.json.decode(file.read_bytes(), type=Record) for file in (tmp_path / "out").glob("*.json")]
    by_set = {
        of_summaries: {one.model: one.reason for one in records if one.of_summaries == of_summaries}
        for of_summaries in (False, True)
    }
    for reasons in by_set.values():
        assert {name for name, reason in reasons.items() if not reason} >= {MINILM, *FAMILIES}, reasons
        assert reasons[NEEDS_5].startswith(f"{NEEDS_5} comes with code of its own")
    text = page.read_text()
    assert all(text.count(name) >= 4 for name in FAMILIES)
    assert str(tmp_path) not in text
