"""The stages of scoring in order: tokenise, encode, match, reduce.

Chunk by chunk, so that memory stays bounded.

While one chunk is encoded, the one after it is read and tokenised and the one before it is matched;
with one CPU thread one stage runs at a time.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import starmap
from time import monotonic
from typing import Unpack

import numpy as np

from bertscore_onnx.arrays import Int64Array
from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.threads import Threads
from bertscore_onnx.encoding.encoder import Advance, Call, Encoder, Runs, TokenEmbeddings
from bertscore_onnx.errors import is_interrupt
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.on_device import MatchingGraph
from bertscore_onnx.matching.pairs import EncodedTexts, count_unscored, match_pairs
from bertscore_onnx.matching.tokens import TokenMatching
from bertscore_onnx.matching.variants import checked_matching
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scores import Scores, best_of_references
from bertscore_onnx.scoring.inputs import MAX_CHARACTERS, Pairs, Side, singles
from bertscore_onnx.scoring.text_stats import TextStats
from bertscore_onnx.scoring.tokenization import documents_of, load_tokenizer, tokenization_of
from bertscore_onnx.settings import ScorerSettings
from bertscore_onnx.text.texts import Text
from bertscore_onnx.text.tokenizer import (
    DEFAULT_MAX_LENGTH,
    TextTokenizer,
    TokenisedText,
    TokenisedTexts,
    tokenise,
)

CHUNK_BYTES = 128_000_000
"""The embeddings of a chunk on a CPU; two chunks exist at a time."""

CHUNK_CANDIDATES = 1024
"""The most candidates of a chunk, for small models and for texts that repeat. Sorted in chunks of
this size, 3,004 pairs of sentences needed 1.2 % of padding on a CPU; in chunks of 512 it was 2.1 %,
of 2,048 0.8 %."""

FIRST_TOKENS = 1024
"""The tokens of the first chunks where the time of a chunk is limited and the model's speed is not
known yet.
"""

MOST_CHUNKS = 64
"""Chunks of all callers, at most two of each, that threads have at a time; others wait."""

Tokenise = Callable[[Sequence[Text]], Sequence[TokenisedText]]

ScoredChunk = tuple[Scores, TextStats]
"""The raw scores of a chunk's candidates, (layers, candidates), and statistics of its texts."""


class Chunk:
    """Pairs that are scored together.

    A chunk is small enough for memory, and large enough to sort texts by length and encode equal
    texts once.
    """

    runs: Runs
    """The runs of the rows, once these are complete."""

    def __init__(self, tokenise: Tokenise, model: str) -> None:
        """Begin without pairs; `model` is the name of the encoder."""
        self._tokenise = tokenise
        self._model = model
        self.num_candidates: int = 0
        self.num_characters: int = 0  # of all texts, equal ones included
        self.num_tokens: int = 0  # of all rows
        self.began: float = 0.0
        """When its encoding began, on the monotonic clock."""
        self.rows: list[TokenisedText] = []
        """A row for all texts with equal ids, equally truncated."""
        self._row_of_text: dict[Text, int] = {}
        self._row_of_ids: dict[tuple[bytes, bool, int], int] = {}
        self._pairs: list[Pairs] = []
        self._new_texts: list[Text] = []  # those tokenised here, equal ones included

    def add(self, pairs: Pairs) -> None:
        """Add pairs.

        Tokenise their texts, unless that was done. A side was encoded before in all pairs or in
        none.
        """
        texts = pairs.texts_for(self._model)
        new = [text for text in dict.fromkeys(texts) if text not in self._row_of_text]
        tokenised: Sequence[TokenisedText]
        if pairs.tokenised is None:
            tokenised = self._tokenise(new)
        else:
            tokenised = [pairs.tokenised[text] for text in new]
        for text, tokens in zip(new, tokenised, strict=True):
            key = tokens.ids.tobytes(), tokens.is_truncated, tokens.num_context
            row = self._row_of_text[text] = self._row_of_ids.setdefault(key, len(self.rows))
            if row == len(self.rows):
                self.rows.append(tokens)
                self.num_tokens += len(tokens.ids)
        self.num_candidates += len(pairs.references.counts)
        self.num_characters += sum(map(len, texts))
        self._pairs.append(pairs)
        if pairs.tokenised is None:
            self._new_texts += texts

    @property
    def num_context(self) -> Int64Array:
        """The tokens of a context in each row, (rows,)."""
        return np.array([row.num_context for row in self.rows], dtype=np.int64)

    @property
    def stats(self) -> TextStats:
        """Statistics of the texts that were tokenised here."""
        tokenised = [self.rows[self._row_of_text[text]] for text in self._new_texts]
        return TextStats.of(self._new_texts, tokenised)

    def sides(self, embeddings: TokenEmbeddings) -> tuple[EncodedTexts, EncodedTexts]:
        """Return the candidates and the references.

        `embeddings` are of the rows that the model encoded.
        """
        is_truncated = np.array([row.is_truncated for row in self.rows], dtype=np.bool_)
        unknown = np.array(
            [row.num_unknown / max(row.num_tokens, 1) for row in self.rows], dtype=np.float64
        )

        def encoded(sides: Sequence[Side]) -> EncodedTexts:
            side = sides[0]
            if len(sides) > 1:
                side = side.joined(sides[1:])
            if side.encoded is not None:
                return side.encoded
            rows = np.array([self._row_of_text[text] for text in side.texts], dtype=np.int64)
            return EncodedTexts(embeddings, rows, side.counts, self._model, is_truncated, unknown)

        candidates = encoded([pairs.candidates for pairs in self._pairs])
        references = encoded([pairs.references for pairs in self._pairs])
        return candidates, references


class ChunkLimit:
    """The most tokens of the next chunk.

    With them it takes about `max_seconds` at the speed of the chunks before.
    """

    def __init__(self, max_seconds: float | None = None) -> None:
        self._max_seconds = max_seconds
        self.tokens: int = sys.maxsize if max_seconds is None else FIRST_TOKENS

    def learn(self, chunk: Chunk) -> None:
        """Adapt to a chunk that was scored."""
        if self._max_seconds is not None and chunk.num_tokens:
            seconds = max(monotonic() - chunk.began, 1e-6)
            self.tokens = int(chunk.num_tokens * self._max_seconds / seconds) + 1


class Pipeline(Closeable):
    """One model with its tokenizer.

    Threads may share it, and so may scorers of different weights and rescaling.
    """

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
        num_threads = settings.get("nthreads")
        long_text = settings.get("long_text", "truncate")
        matching = checked_matching(settings.get("matching", "bertscore"))
        self.max_length: int | None = settings.get("max_length")
        """The most tokens of a text; None for the model's own maximum."""
        self.tokenizer: TextTokenizer = load_tokenizer(
            bundle, long_text, self.max_length, num_threads=num_threads
        )
        if self.max_length == (self.manifest.max_length or DEFAULT_MAX_LENGTH):
            self.max_length = None
        self.tokenization: str = tokenization_of(self.manifest, self.tokenizer)
        """The name of the tokenization; document counts of another cannot be used."""
        self.encoder: Encoder = encoder or Encoder(
            bundle,
            device=settings.get("device"),
            num_threads=num_threads,
            optimize_for=settings.get("optimize_for", "throughput"),
        )
        session = self.encoder.session
        self._threads = Threads(MOST_CHUNKS, "bertscore-chunk")
        self.model: str = (
            f"{self.manifest.digest[:12]} in {session.precision} with "
            f"long_text={self.tokenizer.long_text}, max_length={self.tokenizer.max_length}"
        )
        """The name of the encoder; vectors of another model, precision or treatment of long texts
        differ.
        """
        self.num_layers: int = len(self.manifest.layers)
        """The number of layers that are scored."""
        self._chunk_scale = session.provider.chunk_scale
        self.matching: TokenMatching = TokenMatching(
            matching, bundle, self.tokenizer, self._bare_ids
        )
        """How tokens are matched."""
        self._matching_graph: MatchingGraph | None = None
        """Where vectors stay on the device; None if they are matched on the host, which can also
        drop tokens and join windows."""
        if session.provider.keeps_vectors and self.matching.mask is None and long_text != "window":
            self._matching_graph = MatchingGraph(session.provider)
        layers = self.num_layers
        if self._matching_graph is not None:
            layers = self.encoder.layers_on_device
        # A vector has 4 bytes for each hidden value.
        self._chunk_tokens = CHUNK_BYTES // (4 * layers * self.manifest.hidden_size)
        self._tokenise = partial(tokenise, self.tokenizer, separator=self.matching.separator)
        self.matching_spec: str | None = None if matching.is_default else str(matching)
        """The spec of a matching that is not the default."""
        if self.matching_spec is not None:
            self.model += f", matching={self.matching_spec}"

    def score(
        self,
        slices: Iterable[Pairs],
        weights: TokenWeights,
        *,
        max_items: int | None = None,
        advance: Advance = lambda candidates: None,
        max_seconds: float | None = None,
        known: TokenisedTexts | None = None,
    ) -> Iterator[ScoredChunk]:
        """Yield the scores and the statistics of each chunk, see `ScoredChunk`.

        Pairs come a few at a time, and are read no further than needed; if `slices` raises an
        error, the scores of the pairs before it come first. `advance` is called with the number of
        candidates, in fractions, that were encoded. With `max_seconds`, chunks are small enough to
        take about this long at most, at the speed of the previous ones. Texts that are known are
        not tokenised again.
        """
        call = Call(max_items)
        if self._chunk_scale > 1:
            max_seconds = None  # small chunks would slow it down, and it has scores soon
        limit = ChunkLimit(max_seconds)
        failures: list[Exception] = []
        chunks = _until_failure(self.chunks(slices, call, limit, known), failures)
        encode = partial(self._encode, call=call, advance=advance)
        match = partial(self._match, weights=weights, limit=limit)
        encoded: Iterator[tuple[Chunk, TokenEmbeddings]]
        if self.encoder.session.leaves_cpu_idle:
            encoded = self._threads.map(encode, chunks, ahead=1)
        else:
            encoded = map(encode, chunks)
        try:
            yield from starmap(match, encoded)  # which keeps no vectors
        except BaseException:  # of the caller too, who may have gone
            call.is_stopped.set()
            raise
        if failures:
            raise failures.pop()

    def chunks(
        self,
        slices: Iterable[Pairs],
        call: Call,
        limit: ChunkLimit,
        known: TokenisedTexts | None = None,
    ) -> Iterator[Chunk]:
        """Yield the chunks of pairs, tokenised as they are read.

        If `slices` raises an error, the pairs before it come first.
        """
        chunk = self._chunk(known)
        try:
            for pairs_read in slices:
                # they are split by characters: the number of tokens is not known yet, but is hardly
                # larger
                for pairs in pairs_read.split(min(self._chunk_tokens, limit.tokens)):
                    chunk.add(pairs)
                    if self._is_full(chunk, limit):
                        yield self._planned(chunk, call)
                        chunk = self._chunk(known)
        except Exception as error:
            if chunk.num_candidates and not is_interrupt(error):
                yield self._planned(chunk, call)
            raise
        if chunk.num_candidates:
            yield self._planned(chunk, call)

    def _is_full(self, chunk: Chunk, limit: ChunkLimit) -> bool:
        return (
            chunk.num_tokens >= min(self._chunk_tokens * self._chunk_scale, limit.tokens)
            or chunk.num_candidates >= CHUNK_CANDIDATES * self._chunk_scale
            or chunk.num_characters >= MAX_CHARACTERS
        )

    def tokenise(self, pairs: Pairs) -> tuple[Pairs, TextStats]:
        """Tokenise the texts of pairs, each once.

        Return the pairs with token ids, and statistics of their texts.
        """
        tokenised = self._tokenise_new(pairs.texts, {})
        by_text = dict(zip(pairs.texts, tokenised, strict=True))
        return replace(pairs, tokenised=by_text), TextStats.of(pairs.texts, tokenised)

    def encode(
        self, sides: Sequence[Side], known: TokenisedTexts | None = None
    ) -> tuple[list[EncodedTexts], TextStats]:
        """Encode the sides that are not encoded yet, each of their texts once."""
        second = singles(())
        if len(sides) > 1:
            second = sides[1]
        chunk = self._chunk(known)
        chunk.add(Pairs(sides[0], second))
        embeddings = self._planned(chunk, Call()).runs.finish()
        encoded = chunk.sides(self.matching.prepare(embeddings, chunk.num_context))
        return list(encoded[: len(sides)]), chunk.stats

    def count_documents(
        self, slices: Iterable[Side], known: TokenisedTexts | None = None
    ) -> DocumentCounts:
        """Count in how many of the texts each token occurs.

        Texts come a few at a time, duplicates included.

        If a mapping of known texts is given, those that are tokenised here are added to it.
        """
        ids_of = partial(self._ids_of, known=known)

        def documents() -> Iterator[Sequence[Int64Array]]:
            for side in slices:
                side.check_model(self.model)
                yield documents_of(self.manifest, side.documents(ids_of))

        return DocumentCounts.of_documents(documents(), self.manifest.vocab_size, self.tokenization)

    def _ids_of(self, texts: Sequence[str], known: TokenisedTexts | None) -> list[Int64Array]:
        if known is None:
            return self.tokenizer(texts)[0]
        tokenised = self._tokenise_new(texts, known)
        known.update(zip(texts, tokenised, strict=True))
        return [text.ids for text in tokenised]

    def _tokenise_new(self, texts: Sequence[Text], known: TokenisedTexts) -> list[TokenisedText]:
        """Tokenise texts, each once, unless they are known."""
        new = [text for text in dict.fromkeys(texts) if text not in known]
        made = dict(zip(new, self._tokenise(new), strict=True))
        return [made[text] if text in made else known[text] for text in texts]

    def close(self) -> None:
        """Release the model; runs in progress finish first."""
        self.encoder.close()
        self._threads.close()
        if self._matching_graph is not None:
            self._matching_graph.close()

    def _bare_ids(self, texts: Sequence[str]) -> list[Int64Array]:
        """Return the ids of texts without the special tokens around them."""
        before, after = self.tokenizer.num_special_tokens
        return [ids[before : len(ids) - after] for ids in self.tokenizer(texts)[0]]

    def _chunk(self, known: TokenisedTexts | None) -> Chunk:
        return Chunk(partial(self._tokenise_new, known=known or {}), self.model)

    def _planned(self, chunk: Chunk, call: Call) -> Chunk:
        """Return a complete chunk with its runs planned, which write vectors on the device if these
        can be matched there.
        """
        on_device = self._matching_graph is not None and not chunk.num_context.any()
        sequences = [row.ids for row in chunk.rows]
        chunk.runs = Runs(self.encoder, call, sequences, self.tokenizer, on_device=on_device)
        return chunk

    def _encode(self, chunk: Chunk, call: Call, advance: Advance) -> tuple[Chunk, TokenEmbeddings]:
        candidates_per_token = chunk.num_candidates / max(chunk.num_tokens, 1)
        if not chunk.num_tokens:  # both sides were encoded before
            advance(chunk.num_candidates)
        with call.encoding:
            chunk.began = monotonic()
            return chunk, chunk.runs.finish(lambda tokens: advance(tokens * candidates_per_token))

    def _match(
        self, chunk: Chunk, embeddings: TokenEmbeddings, weights: TokenWeights, limit: ChunkLimit
    ) -> ScoredChunk:
        candidates, references = chunk.sides(self.matching.prepare(embeddings, chunk.num_context))
        counts = references.counts
        # A candidate is matched with each of its references.
        candidates = candidates.part(
            np.repeat(np.arange(len(counts)), counts), np.ones(len(references.rows), np.int64)
        )
        threads = self.encoder.matching_threads
        beta = self.matching.matching.beta
        on_device = None if self._matching_graph is None else self._matching_graph.match_pairs
        raw, nothing = match_pairs(candidates, references, weights, threads, beta, on_device)
        unscored = count_unscored(nothing, counts)
        chunk.runs.release()
        limit.learn(chunk)
        is_truncated = np.maximum(
            candidates.is_truncated[candidates.rows], references.is_truncated[references.rows]
        )
        unknown = np.maximum(
            candidates.unknown[candidates.rows], references.unknown[references.rows]
        )
        scores = best_of_references(Scores(*raw, None, is_truncated, unknown), counts)
        return scores, replace(chunk.stats, **unscored)


def _until_failure(chunks: Iterator[Chunk], failures: list[Exception]) -> Iterator[Chunk]:
    """Yield chunks, and keep an error that ends them.

    So the scores before it come first.
    """
    try:
        yield from chunks
    except Exception as error:
        if is_interrupt(error):
            raise
        failures.append(error)
