"""MoverScore, and optimal matchings of the tokens that BERTScore matches greedily, against human
scores of WMT16.

Zhao et al., "MoverScore", EMNLP 2019, and its repository at 0459a3b: version 1 pools the last five
layers, version 2 takes the last; both weigh tokens by idf. Zhang et al., "BERTScore", ICLR 2020,
appendix C, compares greedy matching with transport, and finds that the effects are modest;
`assignment` matches tokens one to one. These are at layer 5.

    pip install POT scipy
    python -m reproduce.moverscore BUNDLE TABLE cs-en

BUNDLE is that of a BERT with all layers (`bertscore-onnx export --all-layers`). TABLE is a TSV with
the columns lang_pair, reference, candidate and human_score. Expected of all-MiniLM-L6-v2 on the
direct assessments of WMT16, Pearson's r over the segments and the mean score:

WMT16 cs-en, 560 segments
                             r      mean
greedy                  0.6589    0.8373
greedy-idf              0.6704    0.8069
assignment              0.6368    0.7779
transport               0.6538    0.7860
transport-idf           0.6737    0.7513
moverscore-1            0.6943    0.5492
moverscore-2            0.6640    0.6134
"""

import argparse
import csv
import string
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment
from tokenizers import Tokenizer

from bertscore_onnx import BERTScorer, EncodedTexts
from bertscore_onnx.bundle.bundle import open_bundle
from reproduce.tables import Floats, number, print_table

LAYER = 5
Side = tuple[Floats, Floats]
"""The unit vectors of a text's tokens, (tokens, hidden), and their normalised weights,
(tokens,).
"""


def unit(vectors: Floats) -> Floats:
    """Return vectors, (…, hidden), at unit length."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def pooled(layers: Floats) -> Floats:
    """Return the vectors of MoverScore 1: minimum, mean and maximum of the last five layers
    (section 3.2).
    """
    last = unit(layers[-5:])
    return np.concatenate([last.min(axis=0), last.mean(axis=0), last.max(axis=0)], axis=-1)


def transport(left: Side, right: Side, costs: Floats) -> float:
    """Return the earth mover's distance of two texts, given the cost from each token to each,
    (tokens, tokens).
    """
    rows, columns = (np.flatnonzero(weights) for _, weights in (left, right))
    costs = np.ascontiguousarray(costs[np.ix_(rows, columns)])
    return float(ot.emd2(left[1][rows], right[1][columns], costs, numItermax=10_000_000))


def mover_1(left: Side, right: Side) -> float:
    """Return 1 − the distance of n-grams of one token by squared Euclidean costs."""
    return 1 - transport(left, right, np.maximum(2 - 2 * left[0] @ right[0].T, 0))


def mover_2(left: Side, right: Side) -> float:
    """Return 1 / (1 + distance) by Euclidean costs."""
    return 1 / (1 + transport(left, right, np.sqrt(np.maximum(2 - 2 * left[0] @ right[0].T, 0))))


def moved(left: Side, right: Side) -> float:
    """Return 1 − the distance by 1 − cosine, as in appendix C."""
    return 1 - transport(left, right, 1 - left[0] @ right[0].T)


def assigned(left: Side, right: Side) -> float:
    """Return F of the one-to-one matching with the largest sum of similarities."""
    similarity = left[0] @ right[0].T
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    precision, recall = (
        similarity[rows, columns] @ left[1][rows],
        similarity[rows, columns] @ right[1][columns],
    )
    return float(2 * precision * recall / (precision + recall))


def greedy(left: Side, right: Side) -> float:
    """Return BERTScore's F."""
    similarity = left[0] @ right[0].T
    precision, recall = similarity.max(axis=1) @ left[1], similarity.max(axis=0) @ right[1]
    return float(2 * precision * recall / (precision + recall))


def sides(
    texts: EncodedTexts,
    weights: Floats,
    is_kept: np.ndarray,
    vectors_of: Callable[[Floats], Floats],
) -> Iterator[Side]:
    """Yield the tokens of each text that are kept, given weights by id and which ids to keep,
    (vocab_size,) each.
    """
    table = texts.embeddings
    for row in texts.rows:
        ids = np.asarray(table.sequences[row])
        layers = np.stack(
            [table.vectors_of(layer, row) for layer in range(len(table.vectors))]
        ).astype(np.float64)
        kept, of_text = is_kept[ids], weights[ids]
        yield unit(vectors_of(layers)[kept]), of_text[kept] / of_text[kept].sum()


def scores(bundle: Path, candidates: list[str], references: list[str]) -> Mapping[str, Floats]:
    """Return the scores of each variant, (pairs,)."""
    tokenizer = Tokenizer.from_file(str(open_bundle(bundle).tokenizer_path))
    names = [tokenizer.id_to_token(token) or "" for token in range(tokenizer.get_vocab_size())]
    is_word = np.array([name not in ("[CLS]", "[SEP]") for name in names])
    is_mover = np.array(
        [name not in string.punctuation and not name.startswith("##") for name in names]
    )
    with BERTScorer(bundle, all_layers=True, device="cpu") as scorer:
        encoded = [scorer.encode(texts) for texts in (candidates, references)]
    counts = np.zeros(len(names))
    for row in encoded[1].rows:
        counts[np.unique(encoded[1].embeddings.sequences[row])] += 1
    idf = np.log((len(references) + 1) / (counts + 1))
    every, all_kept = np.ones(len(names)), np.ones(len(names), dtype=bool)

    def middle(layers: Floats) -> Floats:
        return np.asarray(layers[LAYER])

    variants: dict[
        str, tuple[Callable[[Side, Side], float], Floats, np.ndarray, Callable[[Floats], Floats]]
    ] = {
        "greedy": (greedy, every * is_word, all_kept, middle),
        "greedy-idf": (greedy, idf, all_kept, middle),
        "assignment": (assigned, every * is_word, all_kept, middle),
        "transport": (moved, every * is_word, all_kept, middle),
        "transport-idf": (moved, idf, all_kept, middle),
        "moverscore-1": (mover_1, idf, is_mover, pooled),
        "moverscore-2": (mover_2, idf, is_mover, lambda layers: layers[-1]),
    }
    return {
        name: np.array(
            [*map(match, *(sides(texts, weights, is_kept, vectors_of) for texts in encoded))]
        )
        for name, (match, weights, is_kept, vectors_of) in variants.items()
    }


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("language_pair", nargs="?", default="cs-en")
    given = parser.parse_args()
    with given.table.open(encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if row["lang_pair"] == given.language_pair
        ]
    human = np.array([float(row["human_score"]) for row in rows])
    found = scores(
        given.bundle, [row["candidate"] for row in rows], [row["reference"] for row in rows]
    )
    table = {
        name: (number(float(np.corrcoef(human, values)[0, 1])), number(float(values.mean())))
        for name, values in found.items()
    }
    return print_table(
        f"WMT16 {given.language_pair}, {len(rows)} segments", ("r", "mean"), table, __doc__
    )


if __name__ == "__main__":
    raise SystemExit(main())
