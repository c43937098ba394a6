"""Texts that nearly fill the model."""

import random

from benchmarks.cases.comparison import OURS, PEER, Comparison, compare_throughput, ours, peer
from benchmarks.settings import Settings
from harness.results import Case
from harness.texts import of_lengths


def documents(settings: Settings) -> Case:
    """Score texts that nearly fill the model."""
    model = settings.models.minilm
    count = settings.limit(64)
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    lengths = [draw.randint(401, 512) for _ in range(count)]  # a text may have one less
    candidates, references = (of_lengths(texts, lengths, model.token_counts) for texts in settings.all_pairs)
    tokens = model.token_counts([*candidates, *references])
    case = Case("c", f"MiniLM, {count} pairs of documents of {min(tokens)} to {max(tokens)} tokens")
    entries = [ours(model), peer(model)]
    return compare_throughput(case, model, entries, (candidates, references), settings, [Comparison(OURS, PEER, 1.5)])
