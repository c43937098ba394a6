"""From pairs of texts to raw scores, window after window, so that memory does not grow with their number.

While one window is encoded, the one after it is read and tokenised and the one before it is matched.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.opening import Manifest
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.cpus import usable_cpus
from bertscore_onnx.concurrency.prefetch import prefetch
from bertscore_onnx.concurrency.thread_pool import WorkerThreads
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.encoded_texts import EncodedTexts
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.passages import cut_passages
from bertscore_onnx.errors import ClosedError
from bertscore_onnx.matching.greedy import f_measure
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scores import Scores, best_of_references
from bertscore_onnx.scoring.chunks import DistinctTexts, Window, cut_chunks
from bertscore_onnx.scoring.inputs import Pairs, Side
from bertscore_onnx.scoring.text_warnings import Notices
from bertscore_onnx.text.tokenizer import TextTokenizer

CHUNK_BYTES = 128_000_000
"""The embeddings of a window; two windows exist at a time. `benchmarks/studies/chunk_size.py` measures what a size
costs."""

CHUNK_CANDIDATES = 1024
"""The most candidates of a window, for small models and for texts that occur again and again. Sorted among so many,
3,004 pairs of sentences needed 1.2 % of padding on a CPU; among 512 it was 2.1 %, among 2,048 0.8 %."""


class Pipeline(Closeable):
    """The stations of scoring in their order: tokenise, encode, match, reduce; threads may share it."""

    def __init__(self, manifest: Manifest, tokenizer: TextTokenizer, encoder: Encoder) -> None:
        """Put the stations together."""
        self.manifest = manifest
        """What the bundle says of the model."""
        self.encoder = encoder
        """The model."""
        self._tokenizer = tokenizer
        self._threads = WorkerThreads(usable_cpus(), "bertscore-match")
        self.model = f"{manifest.digest[:12]} in {encoder.precision} with long_text={tokenizer.long_text}"
        """What encodes the texts: those of another model, precision or treatment of long texts are not comparable."""
        self.max_length = tokenizer.max_length
        """The most tokens that the model may get at a time."""
        self._window_tokens = CHUNK_BYTES // (4 * len(manifest.layers) * manifest.hidden_size)

    def score(
        self,
        slices: Iterable[Pairs],
        weights: TokenWeights,
        notices: Notices,
        *,
        max_items: int | None = None,
        advance: Callable[[float], object] = lambda candidates: None,
    ) -> Iterator[Scores]:
        """Score pairs.

        Args:
            slices: the pairs, a few at a time; read no further than needed.
            weights: what the tokens weigh.
            notices: counts what the caller should hear of.
            max_items: the most texts in one run of the model.
            advance: called with the number of candidates, in fractions, that were encoded since the last call.

        Yields:
            The scores of each window's candidates, (layers, candidates), in order. Where `slices` fails, first those
            of what it gave before.

        Raises:
            IdfError, EncodingError, ClosedError, DeviceError: as the stations say.
        """
        stopped = False

        def encode(window: Window) -> TokenEmbeddings:
            def advance_unless_stopped(tokens: int) -> None:
                if stopped:
                    raise ClosedError("The caller has gone.")  # nobody is there to hear it
                advance(window.num_candidates * tokens / window.texts.num_tokens)

            return self._encode(window.texts.sequences, max_items, advance_unless_stopped)

        def match(window: Window, embeddings: TokenEmbeddings) -> Scores:
            pairs, counts = window.joined(embeddings)
            notices.cut += window.texts.num_cut
            if not window.texts.num_tokens:  # both sides came encoded
                advance(window.num_candidates)
            precision, recall = match_pairs(pairs, weights, self._threads, notices)
            return best_of_references(precision, recall, f_measure(precision, recall), counts)

        windows = cut_chunks(slices, self._tokenizer, max_tokens=self._window_tokens, max_candidates=CHUNK_CANDIDATES)
        try:
            yield from prefetch(windows, encode, match)
        finally:
            stopped = True

    def encode(self, sides: Sequence[Side], notices: Notices) -> list[EncodedTexts]:
        """Encode the sides that are not encoded yet, each of their texts once."""
        texts = DistinctTexts(self._tokenizer)
        rows = [side.rows if isinstance(side, EncodedTexts) else texts.add(side.texts) for side in sides]
        embeddings = self._encode(texts.sequences)
        notices.cut += texts.num_cut
        return [
            side if isinstance(side, EncodedTexts) else EncodedTexts(embeddings, row, side.counts, self.model)
            for side, row in zip(sides, rows, strict=True)
        ]

    def documents(self, slices: Iterable[Side]) -> Iterator[list[NDArray[np.int64]]]:
        """Yield the ids of each text, (tokens,), duplicates included, some texts at a time."""
        for some in slices:
            if isinstance(some, EncodedTexts):
                yield [some.embeddings.ids_of(row) for row in some.rows]
            else:
                yield self._tokenizer(some.texts)[0]

    def _encode(
        self,
        sequences: Sequence[NDArray[np.int64]],
        max_items: int | None = None,
        advance: Callable[[int], object] = lambda tokens: None,
    ) -> TokenEmbeddings:
        """Encode whole texts, those longer than the model's maximum in passages; where texts are cut none is."""
        if all(len(ids) <= self.max_length for ids in sequences):
            return self.encoder.encode(sequences, max_items=max_items, advance=advance)
        passages = cut_passages(sequences, self.max_length, self._tokenizer.frame)
        return passages.join(
            self.encoder.encode(passages.sequences, kept=passages.kept, max_items=max_items, advance=advance)
        )

    def close(self) -> None:
        """Release the model; what is in progress finishes first."""
        self.encoder.close()
        self._threads.close()
