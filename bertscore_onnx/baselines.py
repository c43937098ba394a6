"""Baselines: the mean scores of random pairs at each layer.

`compute_baseline` measures them on a corpus, and `write_baseline` writes them into a bundle.
"""

import json
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, astuple, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bertscore_onnx.arrays import Float64Array
from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.card import CARD, CARD_MARK, updated_card
from bertscore_onnx.bundle.catalogue import Baseline
from bertscore_onnx.bundle.manifest import Manifest, UnrelatedScores, write_manifest
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import Argument, BundleError, InputError
from bertscore_onnx.files import StrPath, replace_whole
from bertscore_onnx.hub.source import read_names
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.repeats import RepeatCounter

SEED = 12345


@dataclass(frozen=True, slots=True)
class LayerBaseline:
    """The scores of random pairs at one layer."""

    layer: int
    """Its number; 0 is the embeddings."""

    mean: Baseline
    """The mean of P, of R and of F."""

    standard_error: Baseline
    """Of each of these means."""

    f1_quantiles: tuple[float, ...]
    """F at 0 %, 1 %, … 100 % of the pairs, in ascending order."""


@dataclass(frozen=True, slots=True)
class MeasuredBaseline:
    """The scores of random pairs with one bundle."""

    signature: str
    """The signature of the scores."""

    precision: str
    """Their compute precision."""

    num_pairs: int
    seed: int

    max_words: int
    """Texts had fewer words."""

    layers: tuple[LayerBaseline, ...]
    """The layers of the bundle."""

    @property
    def largest_standard_error(self) -> float:
        """The largest of P, R and F at all layers."""
        return max(max(astuple(layer.standard_error)) for layer in self.layers)

    def to_csv(self) -> str:
        """Return the means as a baseline file, LAYER,P,R,F.

        bert-score and `baseline_path` read it.
        """
        lines = ["LAYER,P,R,F\n"]
        for layer in self.layers:
            mean = layer.mean
            lines.append(f"{layer.layer},{mean.precision:.8f},{mean.recall:.8f},{mean.f1:.8f}\n")
        return "".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        return {
            "signature": self.signature,
            "pairs": self.num_pairs,
            "seed": self.seed,
            "max_words": self.max_words,
            "layers": [
                {
                    "layer": layer.layer,
                    **asdict(layer.mean),
                    "standard_error": asdict(layer.standard_error),
                    "f1_quantiles": list(layer.f1_quantiles),
                }
                for layer in self.layers
            ],
        }

    def to_json(self) -> str:
        """Write one JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)


# Writing a baseline into the bundle that it was measured with, under a language.


_INSTEAD = ("Write the baseline to a file instead, which ", Argument("baseline_path"), " takes.")


def check_bundle(path: StrPath, language: str) -> None:
    """Raise an error if a baseline cannot be written into a bundle.

    It is an InputError for the language, or else a BundleError.
    """
    catalogue.default_model(language)
    folder = Path(path)
    read_manifest(folder)
    names = read_names(folder)
    if names:
        raise BundleError(
            f"The bundle {folder} was pulled from {names[0]}, and stays as it is there. ", *_INSTEAD
        )
    if (folder / MANIFEST).is_symlink():
        raise BundleError(
            f"{folder / MANIFEST} is a link, as in a cache that others share, and stays. ",
            *_INSTEAD,
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BundleError(
            f"The bundle {folder} cannot be changed ({error.strerror}). ", *_INSTEAD
        ) from error


def write_baseline(path: StrPath, baseline: MeasuredBaseline, language: str) -> Manifest:
    """Write a baseline into a bundle's manifest under a language.

    Return the manifest, whose digest is new. A baseline of that language is replaced; other
    languages keep theirs. Scorers that have opened the bundle do not change. The manifest is
    replaced atomically, and a model card that the export wrote is updated.

    Args:
        path: the bundle's folder.
        baseline: as `compute_baseline` measured it with this bundle.
        language: a code such as `en`.

    Raises:
        InputError: the language is no code, or the baseline is of other layers, or of another
            matching.
        BundleError: the bundle was pulled, is part of a cache, or cannot be written.
    """
    check_bundle(path, language)
    folder = Path(path)
    code = language.lower()
    manifest = read_manifest(folder)
    if "|matching:" in baseline.signature:
        raise InputError(
            "The baselines of bundles are for the default matching, unlike this one. ", *_INSTEAD
        )
    measured = [layer.layer for layer in baseline.layers]
    expected = list(manifest.layers)
    if measured != expected:
        raise InputError(
            f"The baseline is one of layers {measured}, and the bundle {folder} has {expected}. "
            "Measure it with this bundle."
        )
    unrelated = UnrelatedScores(
        baseline.num_pairs,
        baseline.precision,
        [list(layer.f1_quantiles) for layer in baseline.layers],
    )
    changed = msgspec.structs.replace(
        manifest,
        baselines={**manifest.baselines, code: [layer.mean for layer in baseline.layers]},
        unrelated={**manifest.unrelated_scores, code: unrelated},
    )
    try:
        sealed = write_manifest(folder, changed)
        card = folder / CARD
        text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
        # without the mark somebody else wrote the card
        if CARD_MARK in text:
            replace_whole(card, updated_card(text, manifest, sealed).encode())
    except OSError as error:
        raise BundleError(
            f"The bundle {folder} cannot be changed ({error.strerror}). ", *_INSTEAD
        ) from error
    return sealed


# Drawing random pairs from a corpus, as bert-score's `get_rescale_baseline.py` does.


MAX_LINES = 1_000_000
"""The lines that are read, from the first on; the rest is ignored."""

MAX_WORDS = 32
"""Texts have fewer words."""

LEAST_PAIRS = 2
"""A standard error needs two."""

MAX_SEED = 2**32 - 1
"""The highest seed that numpy's legacy generator accepts."""


def short_texts(lines: Iterable[str], max_words: int = MAX_WORDS) -> list[str]:
    """Return the texts to draw from.

    These are the stripped lines of fewer words than `max_words`, from the first million. Words are
    the strings between single spaces. Blank lines, which bert-score keeps, are left out: as texts
    they score 0 with anything. InputError is raised if `max_words` is below 2.
    """
    if max_words < 2:
        raise InputError(
            f"max_words is {max_words}; expected 2 or more, since texts have fewer words than that."
        )
    stripped = (line.strip() for line in islice(lines, MAX_LINES))
    return [text for text in stripped if text and text.count(" ") + 1 < max_words]


def draw_pairs(texts: list[str], num_pairs: int | None, seed: int) -> list[tuple[str, str]]:
    """Draw a candidate and a reference for each pair, without replacement.

    bert-score draws the same pairs after `numpy.random.seed(seed)`; the first `num_pairs` count, or
    all. InputError is raised if there are too few texts, or the seed is out of range.
    """
    half = len(texts) // 2
    wanted = half if num_pairs is None else num_pairs
    if wanted < LEAST_PAIRS:
        if num_pairs is not None:
            raise InputError(
                f"num_pairs is {num_pairs}; expected {LEAST_PAIRS} or more, for a standard error."
            )
        raise InputError(
            f"{len(texts)} of the texts are short enough and not blank; expected "
            f"{2 * LEAST_PAIRS} or more, and thousands for a baseline that is worth its name."
        )
    if wanted > half:
        raise InputError(
            f"{wanted:,} pairs were asked for, and {len(texts):,} texts make {half:,} at most."
        )
    if not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed is {seed}; expected 0 to {MAX_SEED}.")
    # the one behind numpy.random.seed, whose draws never change
    generator = np.random.RandomState(seed)
    candidates, references = generator.choice(len(texts), size=(2, half), replace=False)[:, :wanted]
    pairs = []
    for candidate, reference in zip(candidates, references, strict=True):
        pairs.append((texts[candidate], texts[reference]))
    return pairs


# Measuring a baseline: the mean scores of random pairs, bert-score's `journal/rescale_baseline.md`.


TOLERANCE = 1e-4
"""Standard errors below this are small enough."""

PAIRS_BETWEEN_CHECKS = 1000
"""The standard errors are checked after each block of this many pairs, so the end does not depend
on batches.
"""

NUM_QUANTILES = 101


def compute_baseline(
    scorer: BERTScorer,
    texts: Iterable[str],
    *,
    num_pairs: int | None = None,
    max_words: int = MAX_WORDS,
    seed: int = SEED,
    tolerance: float = TOLERANCE,
    verbose: bool | None = False,
) -> MeasuredBaseline:
    """Score unrelated pairs at every layer that the scorer has.

    Half the texts are candidates and half references, drawn without replacement.

    Args:
        scorer: without idf and rescaling.
        texts: those of a corpus, of which the first million are read, and the ones of fewer words
            than `max_words` count; equal ones are drawn like others, and many come with a warning.
        num_pairs: the most pairs to score; None for all that the texts make.
        max_words: the number of words that is too many.
        seed: of the draw; bert-score draws the same pairs after `numpy.random.seed(seed)`.
        tolerance: after every 1,000 pairs the scoring ends if all standard errors are below this; 0
            for all pairs.
        verbose: show a progress bar on standard error; None for one on a terminal, where it takes
            longer.

    Raises:
        InputError: there are too few texts, all pairs score 1, an argument is out of range, or the
            scorer rescales or weighs by idf.
    """
    signature = scorer.signature
    if signature.idf != "no" or signature.rescale != "no":
        raise InputError(
            f"The scorer has idf {signature.idf} and rescale {signature.rescale}; a baseline is "
            "measured without both."
        )
    if not tolerance >= 0:
        raise InputError(f"tolerance is {tolerance}; expected 0 or more.")
    short = short_texts(texts, max_words)
    repeats = RepeatCounter()
    for text in short:
        repeats.add([text])
    repeats.warn()
    pairs = draw_pairs(short, num_pairs, seed)
    scores = _Scores(len(scorer.manifest.layers), len(pairs))
    with closing(scorer.stream(pairs, verbose=verbose)) as stream:
        for score in stream:
            scores.add(np.reshape(np.array(score), (3, -1)))
            is_checked = scores.number % PAIRS_BETWEEN_CHECKS == 0
            if is_checked and scores.standard_errors().max() < tolerance:
                break
    means = scores.means()
    errors = scores.standard_errors()
    if means.max() > 1 - 1e-6:  # rounding may leave equal texts just below 1
        raise InputError(
            "All pairs score 1: the texts are all alike. Give a corpus of different texts."
        )
    layers = []
    for layer, mean, error, quantiles in zip(
        scorer.manifest.layers, means.T, errors.T, scores.f1_quantiles(), strict=True
    ):
        layers.append(
            LayerBaseline(
                layer,
                Baseline(*map(float, mean)),
                Baseline(*map(float, error)),
                tuple(map(float, quantiles)),
            )
        )
    return MeasuredBaseline(
        str(signature), signature.precision, scores.number, seed, max_words, tuple(layers)
    )


class _Scores:
    """The scores of pairs: of F all, of P and R their sums."""

    def __init__(self, num_layers: int, max_pairs: int) -> None:
        self.number = 0
        self._sums: Float64Array = np.zeros((3, num_layers))
        self._squares: Float64Array = np.zeros((3, num_layers))
        self._f1 = np.empty((num_layers, max_pairs), dtype=np.float32)

    def add(self, score: Float64Array) -> None:
        """Count one more pair, (3, layers)."""
        self._f1[:, self.number] = score[2]
        self._sums += score
        self._squares += score**2
        self.number += 1

    def means(self) -> Float64Array:
        """Return the means of P, R and F, (3, layers)."""
        return self._sums / self.number

    def standard_errors(self) -> Float64Array:
        """Return the standard errors of the means, (3, layers)."""
        variance = np.maximum(self._squares - self._sums**2 / self.number, 0) / (self.number - 1)
        return np.sqrt(variance / self.number)

    def f1_quantiles(self) -> Float64Array:
        """Return the quantiles of F, (layers, quantiles)."""
        f1 = self._f1[:, : self.number].astype(np.float64)
        quantiles = np.quantile(f1, np.linspace(0, 1, NUM_QUANTILES), axis=1).T
        return quantiles.round(6)
