"""Scores pairs of token ids with the scoring graph of a bundle, which returns P, R and F instead of vectors."""

import threading
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import SCORING_INPUTS, SCORING_OUTPUTS, WEIGHTS_INPUT
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.encoder import PaddedTexts, plan_runs, run_batches
from bertscore_onnx.encoding.session import OnnxSession, SessionOptions
from bertscore_onnx.errors import EncodingError, GraphError
from bertscore_onnx.matching.pairs import UNDEFINED_VECTORS, PairScores
from bertscore_onnx.matching.weights import TokenWeights


class ScoringGraph(Closeable):
    """The scoring graph of one bundle on one provider; threads may share it."""

    def __init__(self, bundle: Bundle, **options: Unpack[SessionOptions]) -> None:
        """Load the graph; raise a GraphError if the bundle has none."""
        manifest = self._manifest = bundle.manifest
        if not manifest.has_scoring_graph:
            raise GraphError(f"The bundle {bundle.path} has no scoring graph. Export the model with --scoring-graph.")
        self._stacked = [bundle.stacked_layers] if bundle.stacked_layers else []
        shape: list[int | str] = [*self._stacked, "pairs"]
        outputs = dict.fromkeys(SCORING_OUTPUTS, shape)
        self._session = OnnxSession(bundle, bundle.scoring_path, SCORING_INPUTS, outputs, **options)
        concurrency = self._session.concurrency
        self._threads = ThreadPool(concurrency if concurrency > 1 else 0, "bertscore-score")

    def match(
        self,
        sequences: Sequence[NDArray[np.int64]],
        candidate: NDArray[np.int64],
        reference: NDArray[np.int64],
        weights: TokenWeights,
        *,
        max_items: int | None = None,
        is_stopped: threading.Event | None = None,
        advance: Callable[[int], object] = lambda pairs: None,
    ) -> PairScores:
        """Score pairs of texts, given the ids of each text, (tokens,), and the texts of each pair, (pairs,).

        A run takes at most `max_items` pairs; `advance` is called with their number after it. `is_stopped` ends the
        work between two runs. Errors are those of `Encoder.encode` and `match_pairs`.
        """
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        batches = plan_runs(
            np.maximum(lengths[candidate], lengths[reference]),
            self._session.provider.max_tokens(self._manifest.hidden_size) // 2,  # of either side
            max_items,
            concurrency=self._session.concurrency,
            splits_little_work=self._session.provider.splits_little_work,
        )
        sides = [
            PaddedTexts(
                [sequences[text] for text in texts], batches, self._manifest, self._session.provider.length_multiple
            )
            for texts in (candidate, reference)
        ]
        scores = np.zeros((3, len(self._manifest.layers), len(candidate)), dtype=np.float32)
        chosen = slice(None) if self._manifest.all_layers or not self._stacked else [self._manifest.num_layers]
        table = {} if weights.is_uniform else {WEIGHTS_INPUT: np.nan_to_num(weights.table)}

        def run(number: int) -> int:
            batch = batches[number]
            feed = [array for side in sides for array in side.batch(number)]
            outputs = np.empty((3, *self._stacked, len(batch)), dtype=np.float32)
            self._session.run(dict(zip(SCORING_INPUTS, feed, strict=True)), [*outputs], table)
            scores[:, :, batch] = outputs.reshape(3, -1, len(batch))[:, chosen]
            return len(batch)

        run_batches(run, range(len(batches)), self._threads, is_stopped=is_stopped, advance=advance)
        return self._checked(scores, sequences, candidate, reference, weights)

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._threads.close()
        self._session.close()

    def _checked(
        self,
        scores: NDArray[np.float32],
        sequences: Sequence[NDArray[np.int64]],
        candidate: NDArray[np.int64],
        reference: NDArray[np.int64],
        weights: TokenWeights,
    ) -> PairScores:
        """Return the scores, (3, layers, pairs), after checking that pairs which score 0 have nothing to match."""
        has_words = np.array([weights.is_word[ids].any() for ids in sequences])  # (texts,)
        has_weight = np.array([weights.of(ids).any() for ids in sequences])
        is_filled = has_words[candidate] & has_words[reference]  # (pairs,)
        is_scorable = is_filled & has_weight[candidate] & has_weight[reference]
        if (is_scorable & (scores == 0).all(axis=0)).any():
            raise EncodingError(UNDEFINED_VECTORS)
        num_empty = len(is_filled) - int(is_filled.sum())
        precision, recall, f1 = scores
        return PairScores(precision, recall, f1, num_empty, len(is_filled) - num_empty - int(is_scorable.sum()))
