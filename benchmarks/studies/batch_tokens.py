"""Measures how many padded tokens a run of the model should have.

    python benchmarks/studies/batch_tokens.py BUNDLE [TEXTS]

Encodes the same texts with several limits, in turn and in several rounds, and prints the rate of each as a share of
the best. TEXTS is a file with one text a line; without it texts of random words and lengths are made up.
"""

import random
import statistics
import sys
import time
from pathlib import Path

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.scoring.tokenization import load_tokenizer

LIMITS = (128, 256, 512, 1024, 2048, 4096)
ROUNDS = 5


def main() -> None:
    """Measure and print."""
    bundle = open_bundle(sys.argv[1])
    texts = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines() if len(sys.argv) > 2 else synthetic_texts(500)
    sequences, _ = load_tokenizer(bundle)(texts)
    encoder = Encoder(bundle)
    tokens = sum(map(len, sequences))
    print(f"{bundle.manifest.model_id} at layer {bundle.manifest.num_layers} on {encoder.provider}, {tokens} tokens")
    rates: dict[int, list[float]] = {limit: [] for limit in LIMITS}
    encoder.encode(sequences)
    for _ in range(ROUNDS):
        for limit in LIMITS:
            start = time.perf_counter()
            encoder.encode(sequences, max_tokens=limit)
            rates[limit].append(tokens / (time.perf_counter() - start))
    best = max(statistics.median(rate) for rate in rates.values())
    for limit, rate in rates.items():
        median, slowest, fastest = statistics.median(rate), min(rate), max(rate)
        print(
            f"{limit:6} tokens a run: {median:8.0f} tokens/s, {median / best:.2f} of the best "
            f"(rounds {slowest / best:.2f} to {fastest / best:.2f})"
        )


def synthetic_texts(count: int) -> list[str]:
    """Make up texts of 3 to 60 words."""
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    words = [
        "the",
        "a",
        "cat",
        "dog",
        "sat",
        "mat",
        "on",
        "river",
        "bridge",
        "house",
        "tree",
        "and",
        "or",
        "not",
        "is",
        "was",
        "it",
        "they",
        "who",
        "letter",
        "film",
        "exam",
    ]
    return [" ".join(draw.choices(words, k=draw.randint(3, 60))) for _ in range(count)]


if __name__ == "__main__":
    main()
