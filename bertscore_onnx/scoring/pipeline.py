"""The stages of scoring in order: tokenise, encode, match, reduce; chunk by chunk, so that memory stays bounded.

While one chunk is encoded, the one after it is read and tokenised and the one before it is matched; with one CPU thread
one stage runs at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.thread_pool import prefetch
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.runs import Call, DeviceRuns, HostRuns
from bertscore_onnx.encoding.vectors import TokenEmbeddings
from bertscore_onnx.errors import ClosedError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.on_device import MatchingGraph
from bertscore_onnx.matching.pairs import count_unscored, match_pairs
from bertscore_onnx.matching.tokens import EncodedTexts, TokenMatching
from bertscore_onnx.matching.variants import checked_matching
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scores import Scores, best_of_references
from bertscore_onnx.scoring.chunks import Chunk, ChunkLimit, Chunks, ChunkTexts, TextStats
from bertscore_onnx.scoring.inputs import Pairs, Side, singles
from bertscore_onnx.scoring.tokenization import documents_of, load_tokenizer, tokenization_of
from bertscore_onnx.settings import ScorerSettings
from bertscore_onnx.text.texts import Text
from bertscore_onnx.text.tokenised import TokenisedText, tokenise
from bertscore_onnx.text.tokenizer import TextTokenizer

CHUNK_BYTES = 128_000_000
"""The embeddings of a chunk on a CPU; two chunks exist at a time."""

Encoded = tuple[float, TokenEmbeddings]
"""When the encoding of a chunk began, on the monotonic clock, and its result."""

ScoredChunk = tuple[Scores, TextStats]
"""The raw scores of a chunk's candidates, (layers, candidates), and statistics of its texts."""


class Pipeline(Closeable):
    """One model with its tokenizer; threads may share it, and so may scorers of different weights and rescaling."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        encoder: Encoder | None = None,
        **settings: Unpack[ScorerSettings],
    ) -> None:
        """Load the tokenizer and the model of a bundle.

        Only the settings for long texts, the matching, the device and its threads are used.
        """
        self.bundle = bundle
        self.manifest: Manifest = bundle.manifest
        num_threads, long_text = settings.get("nthreads"), settings.get("long_text", "truncate")
        matching = checked_matching(settings.get("matching", "bertscore"))
        self.max_length: int | None = settings.get("max_length")
        """The most tokens of a text if that was chosen; None for the model's own maximum."""
        self.tokenizer: TextTokenizer = load_tokenizer(bundle, long_text, self.max_length, num_threads=num_threads)
        self.tokenization: str = tokenization_of(self.manifest, self.tokenizer)
        """The name of the tokenization; document counts of another cannot be used."""
        self.encoder: Encoder = encoder or Encoder(
            bundle,
            device=settings.get("device"),
            num_threads=num_threads,
            optimize_for=settings.get("optimize_for", "throughput"),
        )
        session = self.encoder.session
        self.model: str = (
            f"{self.manifest.digest[:12]} in {session.precision} with long_text={self.tokenizer.long_text}, "
            f"max_length={self.tokenizer.max_length}"
        )
        """The name of the encoder; vectors of another model, precision or treatment of long texts differ."""
        self.num_layers: int = len(self.manifest.layers)
        """The number of layers that are scored."""
        self._chunk_scale = session.provider.chunk_scale
        self.matching: TokenMatching = TokenMatching(matching, bundle, self.tokenizer, self._bare_ids)
        """How tokens are matched."""
        self._matching_graph: MatchingGraph | None = None
        """Where vectors stay on the device; None if they are matched on the host, which can also drop tokens and join
        windows."""
        if session.provider.keeps_vectors and self.matching.mask is None and long_text != "window":
            self._matching_graph = MatchingGraph(session.provider)
        layers = self.num_layers if self._matching_graph is None else self.encoder.layers_on_device
        self._chunk_tokens = CHUNK_BYTES // (4 * layers * self.manifest.hidden_size)
        self._tokenise = partial(tokenise, self.tokenizer, separator=self.matching.separator)
        if not matching.is_default:
            self.model += f", matching={matching}"

    def score(
        self,
        slices: Iterable[Pairs],
        weights: TokenWeights,
        *,
        max_items: int | None = None,
        advance: Callable[[float], object] = lambda candidates: None,
        max_seconds: float | None = None,
        known: Mapping[Text, TokenisedText] | None = None,
        runs_early: bool = True,
    ) -> Iterator[ScoredChunk]:
        """Yield the raw scores of each chunk's candidates, (layers, candidates), and statistics of their texts.

        Pairs come a few at a time, and are read no further than needed; if `slices` raises an error, the scores of the
        pairs before it come first. `advance` is called with the number of candidates, in fractions, that were encoded.
        With `max_seconds`, chunks are small enough to take about this long at most, at the speed of the previous ones.
        Texts that are known are not tokenised again. `runs_early` lets runs on a device begin while texts are
        tokenised; those of texts in contexts would be in vain.
        """
        call, limit = Call(max_items), ChunkLimit(max_seconds)
        runs_early = runs_early and max_items is None and max_seconds is None
        chunks = self.chunks_of(slices, call, limit, known, runs_early=runs_early)
        encode, match = partial(self._encode, advance=advance), partial(self._match, weights=weights, limit=limit)
        scored: Iterator[ScoredChunk]
        if self.encoder.session.leaves_cpu_idle:
            scored = prefetch(iter(chunks), encode, match)
        else:
            scored = (match(chunk, encode(chunk)) for chunk in chunks)
        try:
            yield from scored
        except BaseException:  # of the caller too, who may have gone
            call.is_stopped.set()
            if self._matching_graph is not None:
                with suppress(ClosedError):
                    self.encoder.wait()  # runs may still write into the vectors of a chunk
            raise

    def chunks_of(
        self,
        slices: Iterable[Pairs],
        call: Call | None = None,
        limit: ChunkLimit | None = None,
        known: Mapping[Text, TokenisedText] | None = None,
        *,
        runs_early: bool = False,
    ) -> Chunks:
        """Return the chunks of pairs, which are tokenised when they are read; on a device some of their runs begin."""
        begin = partial(self._begin, call or Call(), runs_early=runs_early)
        tokenise = partial(self._tokenise_new, known=known or {})
        return Chunks(slices, tokenise, begin, self._chunk_tokens, self._chunk_scale, limit)

    def tokenise(self, pairs: Pairs) -> tuple[Pairs, TextStats]:
        """Tokenise the texts of pairs, each once; return the pairs with token ids, and statistics of their texts."""
        tokenised = self._tokenise_new(pairs.texts, {})
        by_text = dict(zip(pairs.texts, tokenised, strict=True))
        return replace(pairs, tokenised=by_text), TextStats.of(pairs.texts, tokenised)

    def encode(
        self, sides: Sequence[Side], known: Mapping[Text, TokenisedText] | None = None
    ) -> tuple[list[EncodedTexts], TextStats]:
        """Encode the sides that are not encoded yet, each of their texts once."""
        texts = ChunkTexts(partial(self._tokenise_new, known=known or {}), self._begin(Call()))
        texts.add(Pairs(sides[0], sides[1] if len(sides) > 1 else singles(())))
        chunk = texts.close()
        embeddings = self.matching.prepare(chunk.runs.finish(), chunk.num_context)
        return [*chunk.encoded(embeddings, self.model)][: len(sides)], chunk.stats

    def count_documents(self, slices: Iterable[Side], known: dict[Text, TokenisedText] | None = None) -> DocumentCounts:
        """Count in how many of the texts each token occurs; texts come a few at a time, duplicates included.

        If a mapping of known texts is given, those that are tokenised here are added to it.
        """

        def documents() -> Iterator[Sequence[NDArray[np.int64]]]:
            for side in slices:
                side.check_model(self.model)
                yield documents_of(self.manifest, side.documents(partial(self._ids_of, known=known)))

        return DocumentCounts.of_documents(documents(), self.manifest.vocab_size, self.tokenization)

    def _ids_of(self, texts: Sequence[str], known: dict[Text, TokenisedText] | None) -> list[NDArray[np.int64]]:
        if known is None:
            return self.tokenizer(texts)[0]
        tokenised = self._tokenise_new(texts, known)
        known.update(zip(texts, tokenised, strict=True))
        return [text.ids for text in tokenised]

    def _tokenise_new(self, texts: Sequence[Text], known: Mapping[Text, TokenisedText]) -> list[TokenisedText]:
        """Tokenise texts, each once, unless they are known."""
        new = [text for text in dict.fromkeys(texts) if text not in known]
        made = dict(zip(new, self._tokenise(new), strict=True))
        return [made[text] if text in made else known[text] for text in texts]

    def close(self) -> None:
        """Release the model; runs in progress finish first."""
        self.encoder.close()
        if self._matching_graph is not None:
            self._matching_graph.close()

    def _bare_ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the ids of texts without the special tokens around them."""
        before, after = self.tokenizer.num_special_tokens
        return [ids[before : len(ids) - after] for ids in self.tokenizer(texts)[0]]

    def _begin(self, call: Call, *, runs_early: bool = False) -> HostRuns:
        """Prepare the runs of a chunk: on the device if its vectors can be matched there."""
        arguments = self.encoder, call, self.tokenizer.max_length, self.tokenizer.num_special_tokens
        if self._matching_graph is None:
            return HostRuns(*arguments)
        return DeviceRuns(*arguments, self._chunk_scale * self._chunk_tokens if runs_early else 0)

    def _encode(self, chunk: Chunk, advance: Callable[[float], object]) -> Encoded:
        began, candidates_per_token = monotonic(), chunk.num_candidates / max(chunk.num_tokens, 1)
        if not chunk.num_tokens:  # both sides were encoded before
            advance(chunk.num_candidates)
        return began, chunk.runs.finish(lambda tokens: advance(tokens * candidates_per_token))

    def _match(self, chunk: Chunk, encoded: Encoded, weights: TokenWeights, limit: ChunkLimit) -> ScoredChunk:
        began, embeddings = encoded
        candidates, references = chunk.encoded(self.matching.prepare(embeddings, chunk.num_context), self.model)
        counts = references.counts
        candidates = candidates.part(np.repeat(np.arange(len(counts)), counts), np.ones(len(references.rows), np.int64))
        threads, beta = self.encoder.matching_threads, self.matching.matching.beta
        raw, nothing = match_pairs(candidates, references, weights, threads, beta, self._matching_graph)
        chunk.runs.release()
        pair = candidates, references
        is_truncated = np.logical_or(*(side.is_truncated[side.rows] for side in pair))
        unknown = np.maximum(*(side.unknown[side.rows] for side in pair))
        limit.learn(chunk.num_tokens, began)
        scores = best_of_references(Scores(*raw, None, is_truncated, unknown), counts)
        return scores, replace(chunk.stats, **count_unscored(nothing, counts))
