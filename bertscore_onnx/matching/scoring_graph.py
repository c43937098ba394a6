"""Scores pairs of token ids with the scoring graph of a bundle, which returns P, R and F instead of vectors."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import SCORING_INPUTS, SCORING_OUTPUTS, WEIGHTS_INPUT
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.encoder import Buckets, PaddedTexts, plan_runs, run_batches
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
        self.session: OnnxSession = OnnxSession(bundle, bundle.scoring_path, SCORING_INPUTS, outputs, **options)
        provider = self.session.provider
        self._max_tokens = provider.max_tokens(manifest.hidden_size) // 2  # of either side
        buckets = Buckets.of(provider, manifest)
        # The graph cuts both sides to the longest text. A pair of padding in each run keeps that at the width.
        self._buckets = buckets and replace(buckets, max_tokens=self._max_tokens, spare=1)
        self._threads = ThreadPool(self.session.num_own_threads, "bertscore-score")

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
        of_pairs = np.maximum(lengths[candidate], lengths[reference])  # (pairs,)
        buckets = self._buckets and replace(self._buckets, max_items=max_items)
        batches = plan_runs(
            of_pairs,
            self._max_tokens,
            max_items,
            concurrency=self.session.concurrency,
            splits_little_work=self.session.provider.splits_little_work,
            buckets=buckets,
        )
        planned = None if buckets is None else of_pairs
        sides = [
            PaddedTexts([sequences[text] for text in texts], batches, self._manifest, buckets, planned)
            for texts in (candidate, reference)
        ]
        scores = np.zeros((3, len(self._manifest.layers), len(candidate)), dtype=np.float32)
        chosen = slice(None) if self._manifest.all_layers or not self._stacked else [self._manifest.num_layers]
        table = {} if weights.is_uniform else {WEIGHTS_INPUT: np.nan_to_num(weights.table)}

        def run(number: int) -> int:
            batch = batches[number]
            feed = [array for side in sides for array in side.batch(number)]
            outputs = np.empty((3, *self._stacked, len(feed[0])), dtype=np.float32)
            self.session.run(dict(zip(SCORING_INPUTS, feed, strict=True)), [*outputs], table)
            scores[:, :, batch] = outputs.reshape(3, -1, len(feed[0]))[:, chosen, : len(batch)]
            return len(batch)

        run_batches(run, range(len(batches)), self._threads, is_stopped=is_stopped, advance=advance)
        return self._checked(scores, sequences, candidate, reference, weights)

    def warm_up(self) -> None:
        """Run each shape that later runs may have, in each thread, if the provider prepares itself for every shape."""
        if self._buckets is not None:
            self._threads.run_in_each(partial(self._run_shapes, self._buckets.shapes()))

    def _run_shapes(self, shapes: Sequence[tuple[int, int]]) -> None:
        for pairs, tokens in shapes:
            ids = np.full((pairs, tokens), self._manifest.pad_id, dtype=np.int64)
            outputs = np.empty((3, *self._stacked, pairs), dtype=np.float32)
            feed = [ids, np.ones_like(ids)] * 2
            self.session.run(dict(zip(SCORING_INPUTS, feed, strict=True)), [*outputs])

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._threads.close()
        self.session.close()

    def _checked(
        self,
        scores: NDArray[np.float32],
        sequences: Sequence[NDArray[np.int64]],
        candidate: NDArray[np.int64],
        reference: NDArray[np.int64],
        weights: TokenWeights,
    ) -> PairScores:
        """Return the scores, (3, layers, pairs), after checking that pairs which score 0 have nothing to match."""
        ids, lengths = np.concatenate(sequences), np.array([len(ids) for ids in sequences])
        starts = np.cumsum(lengths) - lengths
        has_words = np.logical_or.reduceat(weights.is_word[ids], starts)  # (texts,)
        has_weight = np.logical_or.reduceat(weights.of(ids) != 0, starts)
        is_filled = has_words[candidate] & has_words[reference]  # (pairs,)
        is_scorable = is_filled & has_weight[candidate] & has_weight[reference]
        if (is_scorable & (scores == 0).all(axis=0)).any():
            raise EncodingError(UNDEFINED_VECTORS)
        num_empty = len(is_filled) - int(is_filled.sum())
        precision, recall, f1 = scores
        return PairScores(precision, recall, f1, num_empty, len(is_filled) - num_empty - int(is_scorable.sum()))
