"""A model whose weights pass the 2 GB that one ONNX file can hold, from its folder to a score
(`make test-large`).

The figures of each step are printed.
"""

import resource
import subprocess
import sys
import time

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.support.tiny_models import KINDS

pytestmark = pytest.mark.large

MAX_MEMORY = 8e9


def run(*arguments):
    """Run the command line in a process of its own; print its time and its peak memory."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "bertscore_onnx", *map(str, arguments)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds = time.perf_counter() - begun
    print(
        f"{arguments[0]}: {seconds:.0f} s; the largest process so far took "
        f"{peak_memory() / 1e9:.2f} GB"
    )
    return output


def peak_memory():
    """Return the memory, in bytes, of the largest process that this one has run."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def test_a_model_past_2_gb_is_exported_verified_and_scored(tmp_path):
    model = tmp_path / "large"
    (model / "training").mkdir(parents=True)
    tokenizer = KINDS["bert"](model / "training")
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(model)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=1536,
        num_hidden_layers=24,
        num_attention_heads=24,
        intermediate_size=6144,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(model)

    run(
        "export",
        "--model",
        model,
        "--num-layers",
        24,
        "--scoring-graph",
        "--output",
        tmp_path / "bundle",
    )
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "bundle").iterdir()}
    print(
        "bundle:", ", ".join(f"{name} {size / 1e9:.3f} GB" for name, size in sorted(sizes.items()))
    )
    assert sizes["model.onnx.data"] > 2**31
    assert sizes["scoring.onnx"] < 10**6
    assert "\nThe scores of the scoring graph differ from these by " in run(
        "inspect", tmp_path / "bundle"
    )

    (tmp_path / "texts.txt").write_text(
        "The cat sat on the mat.\nProfits rose.\n", encoding="utf-8"
    )
    texts = tmp_path / "texts.txt"
    assert run("score", "--model", tmp_path / "bundle", "-c", texts, "-r", texts).endswith(
        "P: 1.000000 R: 1.000000 F1: 1.000000\n"
    )
    assert peak_memory() < MAX_MEMORY
