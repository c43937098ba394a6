"""Measures what a text loses that is encoded in windows, beside the same text encoded as a whole.

    python benchmarks/studies/passages.py BUNDLE [--tokens 400] [--maximum 128]

Sixteen segments of Python's own reference, of `--tokens` tokens each, are encoded as a whole, and in windows as if
the model took only `--maximum` tokens. Each row is an overlap and a way to merge the windows: the mean cosine between
a token's two vectors; how F between one segment and the next changes, on average and on average of its absolute value
(idf off, special tokens aside), and how it correlates; and what the model reads again.
"""

import argparse
from collections.abc import Callable
from itertools import pairwise
from pydoc_data.topics import topics

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.embeddings import Windows
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.scoring.tokenization import load_tokenizer

Vectors = NDArray[np.float32]

MERGES: dict[str, Callable[[NDArray[np.int64]], NDArray[np.float32]]] = {
    "average": lambda context: (context >= 0).astype(np.float32),
    "average by context": lambda context: (context + 1).astype(np.float32),
    "first window": lambda context: only((context >= 0).argmax(axis=0), context),
    "most context": lambda context: only(context.argmax(axis=0), context),
}
"""What each window counts for each token, (windows, tokens), by the tokens to the nearer end; -1 where outside."""


def only(window: NDArray[np.int64], context: NDArray[np.int64]) -> NDArray[np.float32]:
    """Take each token from one window, (tokens,)."""
    taken: NDArray[np.bool_] = np.arange(len(context))[:, None] == window
    return taken.astype(np.float32)


def encode(encoder: Encoder, sequences: list[NDArray[np.int64]], frame: tuple[int, int]) -> list[Vectors]:
    """Return the vectors of each sequence without its special tokens, (tokens, hidden)."""
    table = encoder.encode(sequences)
    return [table.vectors_of(0, text)[frame[0] : len(ids) - frame[1]] for text, ids in enumerate(sequences)]


def merged(windows: list[Vectors], length: int, merge: Callable[[NDArray[np.int64]], NDArray[np.float32]]) -> Vectors:
    """Merge windows that are evenly spread over a text, as `Windows` makes them."""
    room = len(windows[0])
    context = np.full((len(windows), length), -1)
    placed = np.zeros((len(windows), length, windows[0].shape[1]), dtype=np.float32)
    for number, vectors in enumerate(windows):
        start = number * (length - room) // max(len(windows) - 1, 1)
        context[number, start : start + room] = np.minimum(np.arange(room), np.arange(room)[::-1])
        placed[number, start : start + room] = vectors
    total: Vectors = np.einsum("wt,wth->th", merge(context), placed)
    total /= np.linalg.norm(total, axis=1, keepdims=True)
    return total


def f_of_neighbours(texts: list[Vectors]) -> NDArray[np.float64]:
    """Score each text against the next one, (texts - 1,)."""
    scores = []
    for one, other in pairwise(texts):
        similarity = one @ other.T
        precision, recall = similarity.max(axis=1).mean(), similarity.max(axis=0).mean()
        scores.append(2 * precision * recall / (precision + recall))
    return np.array(scores)


def main() -> None:
    """Print one row for each overlap and merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--maximum", type=int, default=128)
    options = parser.parse_args()
    bundle = open_bundle(options.bundle)
    tokenizer, encoder = load_tokenizer(bundle, "window"), Encoder(bundle, device="cpu")
    [ids], _ = tokenizer(["\n".join(topics[name] for name in ("objects", "execmodel", "import", "debugger"))])
    before, after = tokenizer.num_special_tokens
    length = options.tokens - before - after
    texts = [
        np.concatenate((ids[:before], ids[start : start + length], ids[len(ids) - after :]))
        for start in range(before, before + 16 * length, length)
    ]
    whole = encode(encoder, texts, tokenizer.num_special_tokens)
    scores = f_of_neighbours(whole)
    print(f"{len(texts)} texts of {options.tokens} tokens in windows of {options.maximum}; F {scores.mean():.4f}")
    print(f"{'overlap':<8} {'merge':<20} {'cosine':>8} {'dF':>8} {'|dF|':>8} {'r':>7} {'read again':>11}")
    for overlap in (0, 0.25, 0.5, 0.75):
        cut = [Windows([text], options.maximum, tokenizer.num_special_tokens, overlap).sequences for text in texts]
        windows = [encode(encoder, passages, tokenizer.num_special_tokens) for passages in cut]
        again = sum(len(passages) * (options.maximum - before - after) for passages in cut) / (16 * length) - 1
        for name, merge in MERGES.items():
            texts_merged = [merged(some, length, merge) for some in windows]
            cosine = np.mean([(one * other).sum(axis=1).mean() for one, other in zip(texts_merged, whole, strict=True)])
            scores_merged = f_of_neighbours(texts_merged)
            change = scores_merged - scores
            correlation = np.corrcoef(scores_merged, scores)[0, 1]
            print(
                f"{overlap:<8} {name:<20} {cosine:>8.4f} {change.mean():>+8.4f} {np.abs(change).mean():>8.4f} "
                f"{correlation:>7.4f} {again:>11.0%}"
            )


if __name__ == "__main__":
    main()
