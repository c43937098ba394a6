"""Case n: encoders of today at their full size, with random weights: their export, and their speed."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cases import OURS, RANDOM_WEIGHTS, ours
from benchmarks.contest import PEER, Contest, Contestant
from benchmarks.settings import Settings
from harness.models import WEIGHTS, Model, export, save_random_encoder
from harness.processes import Child, ChildError, call_in_child, peak_memory
from harness.results import Case, Goal, Skipped, figure

PAIRS = 64
TRANSFORMERS = "transformers"
LIMIT = 3600.0
AS_ON_CPU = {"batch_tokens": 512, "prefix_space": False}  # of the rival: as little padding as ours

Sizes = Mapping[str, Any]

ENCODERS: dict[str, tuple[str, int, Sizes]] = {  # the type, the layer to score with, and what config.json says
    "EuroBERT-210m": (
        "eurobert",
        8,
        {
            "vocab_size": 128256,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_key_value_heads": 12,
            "intermediate_size": 3072,
            "max_position_embeddings": 8192,
        },
    ),
    "ModernBERT-large": (
        "modernbert",
        19,
        {
            "vocab_size": 50368,
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "intermediate_size": 2624,
            "max_position_embeddings": 8192,
        },
    ),
    "Qwen3-0.6B": (
        "qwen3",
        19,
        {
            "vocab_size": 151936,
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "max_position_embeddings": 40960,
            "tie_word_embeddings": True,
        },
    ),
    "BGE-M3": (
        "xlm-roberta",
        17,
        {
            "vocab_size": 250002,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
            "max_position_embeddings": 8194,
            "type_vocab_size": 1,
        },
    ),
}


def encoders_of_today(settings: Settings) -> Case:
    """Export encoders of today at their full size, and score with them."""
    candidates, references = settings.first_pairs(PAIRS)
    case = Case("n", f"encoders of today at their full size, {len(candidates)} pairs")
    case.note = f"{RANDOM_WEIGHTS} Memory is that of a whole process, for an export as for scoring."
    work = {"candidates": candidates, "references": references}
    for name in ENCODERS:
        try:
            model = _made(name, settings)
            exported = replace(model, ready={"fp32": _export(case, model)})
        except ChildError as error:
            case.skipped.append(Skipped(name, error.reason))
            continue
        _contest(case, exported, work, settings)
    return case


def _made(name: str, settings: Settings) -> Model:
    """Return the model, made unless it is there; a `ChildError` if this version of transformers lacks its type."""
    model_type, num_layers, sizes = ENCODERS[name]
    folder = settings.output / "models" / name
    if not (folder / WEIGHTS).is_file():
        texts = [text for side in settings.all_pairs for text in side]
        call_in_child(save_random_encoder, folder, texts, model_type, dict(sizes), limit=LIMIT)
    return Model(name, folder, num_layers, settings.output / "models" / "bundles", {})


def _export(case: Case, model: Model) -> Path:
    """Export a model in a process of its own, and add to the case the time, the memory and the size of the bundle."""
    output = model.bundles / f"{model.name}-{model.num_layers}"
    shutil.rmtree(output, ignore_errors=True)
    with Child() as child:
        begin = time.perf_counter()
        child.do(export, model.folder, model.name, model.num_layers, "fp32", output, False, "fast", limit=LIMIT)
        seconds, peak = time.perf_counter() - begin, child.do(peak_memory)
    size = sum(file.stat().st_size for file in output.iterdir()) / 1e6
    for fact, unit, value in (("export", "s", seconds), ("memory of the export", "MB", peak), ("bundle", "MB", size)):
        case.figures.append(figure(f"{model.name}: {fact}", unit, [value]))
    return output


def _contest(case: Case, model: Model, work: Mapping[str, list[str]], settings: Settings) -> None:
    """Let this library, transformers and bert-score score the same pairs with a model."""
    options = {"device": "cpu", "num_layers": model.num_layers, "dtype": "float32"}
    contestants = {
        OURS: ours(model, label=f"{model.name}, layer {model.num_layers}: ours"),
        TRANSFORMERS: Contestant(
            f"{model.name}: transformers", "torch", lambda: model.folder, {**options, **AS_ON_CPU}
        ),
        PEER: Contestant(f"{model.name}: bert-score", PEER, lambda: model.folder, {**options, "fast": True}),
    }
    contest = Contest(case, contestants, "together", work, len(work["candidates"])).run(
        settings.rounds, settings.left_out
    )
    for rival in (TRANSFORMERS, PEER):
        contest.compare(OURS, rival)
    if {OURS, TRANSFORMERS} <= contest.results.keys():
        scores = [contest.results[name].scores for name in (OURS, TRANSFORMERS)]
        difference = max(abs(our - their) for our, their in zip(*scores, strict=True))
        name = f"{model.name}: largest difference of F from transformers"
        case.figures.append(figure(name, "/ 1,000,000", [1e6 * difference], Goal(10, at_most=True)))
