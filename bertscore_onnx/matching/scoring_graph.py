"""Matches pairs of token ids by the scoring graph of a bundle, which brings back P, R and F and no vectors."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.manifest import SCORING_INPUTS, SCORING_OUTPUTS, WEIGHTS_INPUT
from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.batching import Batch, RunMode, plan_runs
from bertscore_onnx.encoding.onnx_runtime.graph import OnnxGraph
from bertscore_onnx.errors import ClosedError, EncodingError, GraphError
from bertscore_onnx.matching.pairs import PairScores
from bertscore_onnx.matching.weights import TokenWeights

MAX_TOKENS = 1024
"""Padded tokens of both sides in one run; a longer pair is a run by itself."""


class ScoringGraph:
    """The scoring graph of one bundle on one provider; threads may share it."""

    def __init__(self, bundle: Bundle, *, device: object = None, num_threads: int | None = None) -> None:
        """Load the graph.

        Args:
            bundle: the bundle.
            device, num_threads: as in `Sessions`.

        Raises:
            MissingExtraError, InputError, DeviceError: as `Sessions` says.
            GraphError: the bundle has no such graph, or it cannot be loaded.
        """
        manifest = self._manifest = bundle.manifest
        if not manifest.has_scoring_graph:
            raise GraphError(f"The bundle {bundle.path} has no scoring graph. Export the model with --scoring-graph.")
        shape: list[int | str] = [len(manifest.layers), "pairs"] if manifest.all_layers else ["pairs"]
        outputs = dict.fromkeys(SCORING_OUTPUTS, shape)
        self._graph = OnnxGraph(
            bundle, bundle.scoring_path, SCORING_INPUTS, outputs, device=device, num_threads=num_threads
        )
        self._threads = ThreadPool(self._graph.concurrency if self._graph.concurrency > 1 else 0, "bertscore-score")

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
        """Score pairs of texts.

        Args:
            sequences: the ids of each text, (tokens,), at least one id each.
            candidate, reference: which of the texts are the sides of each pair, (pairs,).
            weights: what the tokens weigh.
            max_items: the most pairs in one run.
            is_stopped: ends the work between two runs once it is set.
            advance: called after each run with the number of its pairs.

        Raises:
            IdfError: the weights say nothing of a token that occurs.
            EncodingError: a run failed, or the model gave something other than finite vectors.
            OutOfMemoryError, ClosedError, DeviceError: as `OnnxGraph.run` says.
        """
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        plan = plan_runs(
            np.maximum(lengths[candidate], lengths[reference]),
            MAX_TOKENS // 2,
            max_items,
            concurrency=self._graph.concurrency,
            splits_little_work=self._graph.provider.splits_little_work,
        )
        scores = np.zeros((3, len(self._manifest.layers), len(candidate)), dtype=np.float32)

        def run(batch: Batch) -> int:
            sides = (self._padded([sequences[text] for text in texts[batch]]) for texts in (candidate, reference))
            (candidate_ids, candidate_mask), (reference_ids, reference_mask) = sides
            feed = (candidate_ids, candidate_mask, reference_ids, reference_mask)
            table = {WEIGHTS_INPUT: np.nan_to_num(weights.table)}
            outputs = self._graph.run(
                dict(zip(SCORING_INPUTS, feed, strict=True)), table, latency=plan.mode is RunMode.LATENCY
            )
            scores[:, :, batch] = np.stack(outputs).reshape(3, -1, len(batch))
            return len(batch)

        done = self._threads.map(run, plan.batches) if plan.mode is RunMode.THROUGHPUT else map(run, plan.batches)
        for pairs in done:
            advance(pairs)
            if is_stopped is not None and is_stopped.is_set():
                raise ClosedError("The caller went away before all was scored.")
        return self._checked(scores, sequences, candidate, reference, weights)

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._threads.close()
        self._graph.close()

    def _padded(self, sequences: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of some texts, (batch, tokens), and their mask."""
        lengths = np.array([len(ids) for ids in sequences])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.full(mask.shape, self._manifest.pad_id, dtype=np.int64)
        ids[mask] = np.concatenate(sequences)
        return ids, mask.astype(np.int64)

    def _checked(
        self,
        scores: NDArray[np.float32],
        sequences: Sequence[NDArray[np.int64]],
        candidate: NDArray[np.int64],
        reference: NDArray[np.int64],
        weights: TokenWeights,
    ) -> PairScores:
        """Return the scores, (3, layers, pairs), once it is clear why those are 0 that are."""
        has_words = np.array([weights.is_word[ids].any() for ids in sequences])  # (texts,)
        has_weight = np.array([weights.of(ids).any() for ids in sequences])
        is_filled = has_words[candidate] & has_words[reference]  # (pairs,)
        is_scorable = is_filled & has_weight[candidate] & has_weight[reference]
        if (is_scorable & (scores == 0).all(axis=0)).any():
            raise EncodingError(
                f"The model gave infinite or undefined vectors on {self._graph.provider.name}, or the tokenizer ids "
                "that the model has not. Its weights may be damaged: run `bertscore-onnx inspect` on the bundle."
            )
        num_empty = len(is_filled) - int(is_filled.sum())
        precision, recall, f1 = scores
        return PairScores(precision, recall, f1, num_empty, len(is_filled) - num_empty - int(is_scorable.sum()))
