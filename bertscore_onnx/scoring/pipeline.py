"""The stages of scoring in their order: tokenise, encode, match, reduce; chunk by chunk, so that memory stays bounded.

While one chunk is encoded, the one after it is read and tokenised and the one before it is matched; with one CPU thread
one stage runs at a time.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, chain
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.prefetch import prefetch
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.embeddings import EncodedTexts, TokenEmbeddings, Windows
from bertscore_onnx.encoding.encoder import Encoder, ReusedMemory
from bertscore_onnx.encoding.session import SessionOptions
from bertscore_onnx.errors import ClosedError, InputError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.pairs import PairScores, match_pairs
from bertscore_onnx.matching.scoring_graph import ScoringGraph
from bertscore_onnx.matching.tokens import TokenMatching, sum_of_words, token_matching
from bertscore_onnx.matching.transport import MAX_TOKENS, check_installed
from bertscore_onnx.matching.variants import checked_matching
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scores import Scores, best_of_references
from bertscore_onnx.scoring.inputs import (
    MAX_CHARACTERS,
    Pairs,
    Side,
    Text,
    TextInContext,
    Texts,
    TextStats,
    bare_texts,
    singles,
)
from bertscore_onnx.scoring.tokenization import ContextTokenizer, load_tokenizer, tokenization_of
from bertscore_onnx.settings import ScorerSettings
from bertscore_onnx.text.tokenizer import TextTokenizer

CHUNK_BYTES = 128_000_000
"""The embeddings of a chunk on a CPU; two chunks exist at a time."""

CHUNK_CANDIDATES = 1024
"""The most candidates of a chunk, for small models and for texts that occur again and again. Sorted among this many,
3,004 pairs of sentences needed 1.2 % of padding on a CPU; among 512 it was 2.1 %, among 2,048 0.8 %."""


class TokenisedTexts(NamedTuple):
    """The ids of texts."""

    sequences: Sequence[NDArray[np.int64]]
    """The ids of each text, (tokens,)."""

    num_context: Sequence[int]
    """How many of them are of its context."""

    is_truncated: Sequence[bool]
    """Which of them are longer than the model's maximum."""


class Chunk:
    """Pairs that are scored together: few enough for memory, enough to sort by length and to encode equal texts once.

    The references of a candidate may continue in the next chunk; its scores are then joined.
    """

    def __init__(self) -> None:
        """Start without pairs."""
        self.sequences: list[NDArray[np.int64]] = []
        """The ids of each row to encode, (tokens,): a row for all texts of equal ids that are truncated, or are not."""
        self.num_tokens: int = 0
        """The tokens of all rows."""
        self.num_candidates: int = 0
        self.num_characters: int = 0
        """The characters of all texts, equal ones included."""
        self.num_truncated: int = 0
        """The number of different texts that were truncated here, and not before."""
        self.num_context: list[int] = []
        """The tokens of a context in each row, (rows,)."""
        self.is_truncated: list[bool] = []
        """Whether the texts of each row were truncated, (rows,)."""
        self.num_empty_contexts: int = 0
        self._row_of_text: dict[Text, int] = {}
        self._row_of_ids: dict[tuple[bytes, int, bool], int] = {}
        self._pairs: list[Pairs] = []

    def new_texts(self, pairs: Pairs) -> list[Text]:
        """Return the texts of some pairs that the chunk does not have yet, each once."""
        return [text for text in dict.fromkeys(pairs.texts) if text not in self._row_of_text]

    def add(self, pairs: Pairs, new_texts: Sequence[Text], tokenised: TokenisedTexts) -> None:
        """Add pairs, and the ids of their new texts; a side is encoded before, like that of earlier pairs, or not."""
        for text, ids, num_context, is_truncated in zip(new_texts, *tokenised, strict=True):
            row = self._row_of_ids.setdefault((ids.tobytes(), num_context, is_truncated), len(self.sequences))
            if row == len(self.sequences):
                self.sequences.append(ids)
                self.num_context.append(num_context)
                self.is_truncated.append(is_truncated)
                self.num_tokens += len(ids)
            self._row_of_text[text] = row
        if pairs.token_ids is None:
            self.num_truncated += sum(tokenised.is_truncated)
        self.num_candidates += len(pairs.candidates)
        self.num_empty_contexts += pairs.num_empty_contexts
        self.num_characters += pairs.num_characters
        self._pairs.append(pairs)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of references of each candidate in the chunk, (candidates,)."""
        counts = _concatenated([pairs.references.counts for pairs in self._pairs])
        starts = accumulate(len(pairs.candidates) for pairs in self._pairs[:-1])  # of all but the first
        repeated = [start for start, before in zip(starts, self._pairs, strict=False) if before.is_continued]
        return np.add.reduceat(counts, np.delete(np.arange(len(counts)), repeated)) if repeated else counts

    @property
    def is_continued(self) -> bool:
        """Whether the next chunk begins with further references of the last candidate."""
        return self._pairs[-1].is_continued

    @property
    def is_encoded(self) -> bool:
        """Whether a side was encoded before."""
        return any(isinstance(side, EncodedTexts) for side in (self._pairs[0].candidates, self._pairs[0].references))

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the candidate and of the reference of each pair, (pairs,) each.

        The pairs of a candidate are side by side. A side that was encoded before has rows of its own embeddings.
        """
        candidates = _concatenated([self.rows_of(pairs.candidates) for pairs in self._pairs])
        counts = _concatenated([pairs.references.counts for pairs in self._pairs])
        return np.repeat(candidates, counts), _concatenated([self.rows_of(pairs.references) for pairs in self._pairs])

    def rows_of(self, side: Side) -> NDArray[np.int64]:
        """Return the row of each text of a side, (texts,)."""
        if isinstance(side, EncodedTexts):
            return side.rows
        return np.array([self._row_of_text[text] for text in side.texts], dtype=np.int64)

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether a text of each pair was truncated, (pairs,)."""
        if not (self.is_encoded or any(self.is_truncated)):
            return np.zeros(self.counts.sum(), dtype=np.bool_)
        here = np.array(self.is_truncated, dtype=np.bool_)
        sides = (self._pairs[0].candidates, self._pairs[0].references)
        tables = [side.is_truncated if isinstance(side, EncodedTexts) else here for side in sides]
        candidates, references = (table[rows] for table, rows in zip(tables, self.rows(), strict=True))
        return candidates | references

    def match(
        self, embeddings: TokenEmbeddings, weights: TokenWeights, threads: ThreadPool, matching: TokenMatching
    ) -> PairScores:
        """Match all pairs, with the embeddings of `sequences`."""
        embeddings = matching.prepare(embeddings, np.array(self.num_context, dtype=np.int64))
        sides = (self._pairs[0].candidates, self._pairs[0].references)
        tables = [side.embeddings if isinstance(side, EncodedTexts) else embeddings for side in sides]
        candidates, references = zip(tables, self.rows(), strict=True)
        return match_pairs(candidates, references, weights, threads, matching.matching)


def _concatenated(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


ScoredChunk = tuple[Chunk, Scores, TextStats]
"""A chunk, and the raw scores of its candidates, (layers, candidates): the best over the references in this chunk."""


def join_continued(chunks: Iterable[ScoredChunk]) -> Iterator[tuple[Scores, TextStats]]:
    """Yield the scores of whole candidates, (layers, candidates), chunk by chunk.

    The last candidate of a chunk is held back while the next chunk has more of its references.
    """
    held: Scores | None = None
    num_held = 0
    for chunk, scores, stats in chunks:
        if held is not None:
            scores = _with_earlier_references(scores, held, num_held)
        is_one_candidate = scores.F.shape[1] == 1
        held, num_earlier = None, num_held if held is not None and is_one_candidate else 0
        if chunk.is_continued:
            num_held = num_earlier + int(chunk.counts[-1])
            held, scores = _candidates(scores, slice(-1, None)), _candidates(scores, slice(0, -1))
        yield scores, stats


def _with_earlier_references(scores: Scores, earlier: Scores, num_earlier: int) -> Scores:
    """Take the best of the first candidate's references here and of those in earlier chunks."""
    is_better = scores.F[:, :1] > earlier.F  # (layers, 1)
    best = np.where(is_better, num_earlier + scores.best_reference[:, :1], earlier.best_reference)
    precision, recall, f1 = (
        np.concatenate((np.maximum(here[:, :1], before), here[:, 1:]), axis=1)
        for here, before in zip(scores, earlier, strict=True)
    )
    best = np.concatenate((best, scores.best_reference[:, 1:]), axis=1)
    return Scores(
        precision, recall, f1, best, np.append(scores.truncated[:1] | earlier.truncated, scores.truncated[1:])
    )


def _candidates(scores: Scores, some: slice) -> Scores:
    precision, recall, f1 = (values[:, some] for values in scores)
    return Scores(precision, recall, f1, scores.best_reference[:, some], scores.truncated[some])


def _bounded_length(bundle: Bundle, settings: ScorerSettings) -> int | None:
    """Return the most tokens of a text that is matched optimally; None if the model's own maximum is low enough."""
    chosen, of_model = settings.get("max_length"), bundle.manifest.max_length
    if settings.get("long_text") == "window" or (chosen is not None and chosen > MAX_TOKENS):
        raise InputError(
            f"Assignment and transport match at most {MAX_TOKENS:,} tokens of a text, since their time grows faster "
            f'than with its square. Leave long_text at "truncate", and max_length at {MAX_TOKENS:,} or less.'
        )
    return None if chosen is None and of_model is not None and of_model <= MAX_TOKENS else chosen or MAX_TOKENS


class Pipeline(Closeable):
    """One model with its tokenizer; threads may share it, and so may scorers of different weights and rescaling."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        encoder: Encoder | None = None,
        by_pairs: bool = False,
        **settings: Unpack[ScorerSettings],
    ) -> None:
        """Load the tokenizer and the model of a bundle.

        Of the settings those count that concern long texts, the device and its threads. With `by_pairs` the bundle's
        scoring graph scores, which encodes a text once for each of its pairs and returns no vectors; texts in windows,
        and texts that were encoded before, are matched as usual, for which the model is loaded when it is needed.
        """
        self.bundle = bundle
        self.manifest: Manifest = bundle.manifest
        self.max_length: int | None = settings.get("max_length")
        """The most tokens of a text if that was chosen; None for the model's own maximum."""
        num_threads = self._num_threads = settings.get("nthreads")
        matching = checked_matching(settings.get("matching", "bertscore"))
        check_installed(matching)
        if matching.is_optimal:
            self.max_length = _bounded_length(bundle, settings)
        self.tokenizer: TextTokenizer = load_tokenizer(
            bundle,
            settings.get("long_text", "truncate"),
            self.max_length,
            num_threads=num_threads,
        )
        self.tokenization: str = tokenization_of(self.manifest, self.tokenizer)
        """The name of the tokenization; document counts of another cannot be used."""
        options: SessionOptions = {
            "device": settings.get("device"),
            "num_threads": num_threads,
            "optimize_for": settings.get("optimize_for", "throughput"),
        }
        self._encoder, self._options, self._loading = encoder, options, threading.Lock()
        self._is_closed = False
        if encoder is not None:
            options["device"] = encoder.session.provider.full_device
        self._scoring_graph = ScoringGraph(bundle, **options) if by_pairs and matching.is_default else None
        session = self._scoring_graph.session if self._scoring_graph else self.encoder.session
        options["device"] = session.provider.full_device
        self._leaves_cpu_idle = session.leaves_cpu_idle
        self.model: str = (
            f"{self.manifest.digest[:12]} in {session.precision} with long_text={self.tokenizer.long_text}, "
            f"max_length={self.tokenizer.max_length}"
        )
        """The name of the encoder; vectors of another model, precision or treatment of long texts differ."""
        self.num_layers: int = len(self.manifest.layers)
        """The number of layers that are scored."""
        self._chunk_scale = session.provider.chunk_scale
        self._chunk_tokens = CHUNK_BYTES // (4 * self.num_layers * bundle.vector_size)
        self.matching: TokenMatching = token_matching(matching, bundle, self.tokenizer, self._bare_ids)
        """How tokens are matched; without the mean vector if that comes from the references of each call."""
        if not matching.is_default:
            self.model += f", matching={matching}"
        if isinstance(matching.center, tuple):
            mean = self.mean_vector([singles(matching.center)])
            if mean is None:
                raise InputError("The texts to centre vectors by have no token. Give at least one with a word.")
            self.matching = replace(self.matching, center=mean)

    @property
    def encoder(self) -> Encoder:
        """The model, loaded now if the scoring graph was enough so far."""
        with self._loading:
            if self._encoder is None:
                if self._is_closed:
                    raise ClosedError("The scorer was closed. Make a new one.")
                self._encoder = Encoder(self.bundle, **self._options)
            return self._encoder

    def score(
        self,
        slices: Iterable[Pairs],
        weights: TokenWeights,
        *,
        center: NDArray[np.float32] | None = None,
        max_items: int | None = None,
        advance: Callable[[float], object] = lambda candidates: None,
    ) -> Iterator[tuple[Scores, TextStats]]:
        """Yield the raw scores of each chunk's candidates, (layers, candidates), and statistics of their texts.

        Pairs come a few at a time, and are read no further than needed; if `slices` raises an error, the scores of the
        pairs before it come first. `advance` is called with the number of candidates, in fractions, that were encoded.
        `center` is the mean vector of the call's references, if the matching asks for it.
        """
        is_stopped, memory = threading.Event(), ReusedMemory()
        matching = self.matching if center is None else replace(self.matching, center=center)

        def encode(chunk: Chunk) -> TokenEmbeddings | PairScores:
            by_pairs = self._scoring_graph is not None and not chunk.is_encoded and not any(chunk.num_context)
            if self._scoring_graph is not None and by_pairs and self._is_whole(chunk.sequences):
                candidate, reference = chunk.rows()
                of_pair = chunk.num_candidates / len(candidate)  # candidates
                return self._scoring_graph.match(
                    chunk.sequences,
                    candidate,
                    reference,
                    weights,
                    max_items=max_items,
                    is_stopped=is_stopped,
                    advance=lambda pairs: advance(pairs * of_pair),
                )
            of_token = chunk.num_candidates / max(chunk.num_tokens, 1)  # candidates
            if not chunk.num_tokens:  # both sides were encoded before
                advance(chunk.num_candidates)
            return self._encode(
                chunk.sequences, max_items, is_stopped, lambda tokens: advance(tokens * of_token), memory
            )

        def match(chunk: Chunk, result: TokenEmbeddings | PairScores) -> ScoredChunk:
            if isinstance(result, TokenEmbeddings):
                threads = self.encoder.matching_threads
                vectors, result = result.vectors, chunk.match(result, weights, threads, matching)
                memory.give_back(vectors)
            scores = best_of_references(result.precision, result.recall, result.f1, chunk.counts, chunk.truncated)
            stats = TextStats(
                result.num_empty,
                result.num_zero_weight,
                chunk.num_truncated,
                result.num_excluded,
                chunk.num_empty_contexts,
            )
            return chunk, scores, stats

        chunks = self._tokenise(slices)
        scored: Iterator[ScoredChunk]
        if self._leaves_cpu_idle:
            scored = prefetch(chunks, encode, match)
        else:
            scored = (match(chunk, encode(chunk)) for chunk in chunks)
        try:
            yield from join_continued(scored)
        finally:
            is_stopped.set()

    def tokenise(self, pairs: Pairs) -> tuple[Pairs, TextStats]:
        """Tokenise the texts of pairs, each once; return the pairs with token ids, and statistics of their texts."""
        texts = list(dict.fromkeys(pairs.texts))
        tokenised = self.ids_of(texts)
        token_ids = dict(zip(texts, tokenised.sequences, strict=True))
        num_context = {text: number for text, number in zip(texts, tokenised.num_context, strict=True) if number}
        truncated = {text for text, is_truncated in zip(texts, tokenised.is_truncated, strict=True) if is_truncated}
        stats = TextStats(truncated=len(truncated))
        return replace(pairs, token_ids=token_ids, num_context=num_context, truncated=truncated), stats

    def encode(
        self, sides: Sequence[Side], center: NDArray[np.float32] | None = None
    ) -> tuple[list[EncodedTexts], TextStats]:
        """Encode the sides that are not encoded yet, each of their texts once; `center` as for `score`."""
        chunk, pairs = Chunk(), Pairs(sides[0], sides[-1])
        new = chunk.new_texts(pairs)
        chunk.add(pairs, new, self.ids_of(new))
        matching = self.matching if center is None else replace(self.matching, center=center)
        embeddings = matching.prepare(self._encode(chunk.sequences))
        encoded = [
            side
            if isinstance(side, EncodedTexts)
            else EncodedTexts(
                embeddings, chunk.rows_of(side), side.counts, self.model, np.array(chunk.is_truncated, bool)
            )
            for side in sides
        ]
        return encoded, TextStats(truncated=chunk.num_truncated)

    def mean_vector(self, slices: Iterable[Side]) -> NDArray[np.float32] | None:
        """Return the mean vector of the tokens of texts, special ones left out, (layers, 1, hidden).

        None if there are no such tokens.
        """
        whole, total, number = replace(self.matching, mask=None, center=None), np.zeros(()), 0
        for some in slices:
            if not isinstance(some, Texts):
                raise InputError("The mean vector comes from texts, and these were encoded before. Give strings.")
            texts = singles(some.texts)
            for few in Pairs(texts, texts).slices():
                for pairs in few.split(2 * self._chunk_tokens):  # both sides are the same
                    chunk = Chunk()
                    new = chunk.new_texts(pairs)
                    chunk.add(pairs, new, self.ids_of(new))
                    table = whole.prepare(self._encode(chunk.sequences), np.array(chunk.num_context))
                    of_few, tokens = sum_of_words(table, chunk.rows_of(pairs.candidates), self.manifest.special_ids)
                    total, number = total + of_few, number + tokens
        return (total / number).astype(np.float32)[:, None] if number else None

    def count_documents(self, slices: Iterable[Side]) -> DocumentCounts:
        """Count in how many of the texts each token occurs; texts come a few at a time, duplicates included."""
        documents = (
            [some.embeddings.documents[row] for row in some.rows]
            if isinstance(some, EncodedTexts)
            else self.tokenizer(bare_texts(some.texts))[0]
            for some in slices
        )
        return DocumentCounts.of_documents(documents, self.manifest.vocab_size, self.tokenization)

    def close(self) -> None:
        """Release the model; runs in progress finish first."""
        with self._loading:
            self._is_closed = True
        if self._encoder is not None:
            self._encoder.close()
        if self._scoring_graph is not None:
            self._scoring_graph.close()

    def warm_up(self) -> None:
        """Run each shape that later runs may have once, if the provider prepares itself for every shape."""
        if self._scoring_graph is not None:
            self._scoring_graph.warm_up()
        else:
            self.encoder.warm_up()

    def _tokenise(self, slices: Iterable[Pairs]) -> Iterator[Chunk]:
        """Tokenise pairs and gather them in chunks; if `slices` raises an error, the pairs before it come first.

        Where chunks may be large, the first ones are small, so that the model soon has work.
        """
        chunk, scale = Chunk(), 1
        try:
            # split before their number of tokens is known, which is hardly more than that of characters
            for pairs in chain.from_iterable(pairs.split(self._chunk_tokens) for pairs in slices):
                new = chunk.new_texts(pairs)
                ids = pairs.token_ids
                if ids is None:
                    tokenised = self.ids_of(new)
                else:
                    num_context = [pairs.num_context.get(text, 0) for text in new]
                    is_truncated = [text in pairs.truncated for text in new]
                    tokenised = TokenisedTexts([ids[text] for text in new], num_context, is_truncated)
                chunk.add(pairs, new, tokenised)
                if (
                    chunk.num_tokens >= self._chunk_tokens * scale
                    or chunk.num_candidates >= CHUNK_CANDIDATES * scale
                    or chunk.num_characters >= MAX_CHARACTERS
                ):
                    yield chunk
                    chunk, scale = Chunk(), min(2 * scale, self._chunk_scale)
        except Exception:
            if chunk.num_candidates:
                yield chunk
            raise
        if chunk.num_candidates:
            yield chunk

    def ids_of(self, texts: Sequence[Text]) -> TokenisedTexts:
        """Tokenise texts, with their contexts or without."""
        in_context = [text for text in texts if isinstance(text, TextInContext) and text.before]
        bare = bare_texts(text for text in texts if isinstance(text, str) or not text.before)
        sequences, is_truncated = self.tokenizer(bare)
        without = TokenisedTexts(sequences, [0] * len(sequences), is_truncated)
        if not in_context:
            return without
        of_bare, of_contexts = zip(*without, strict=True), zip(*self._context_tokenizer(in_context), strict=True)
        found = [next(of_bare if isinstance(text, str) or not text.before else of_contexts) for text in texts]
        return TokenisedTexts(*zip(*found, strict=True))

    @cached_property
    def _context_tokenizer(self) -> ContextTokenizer:
        return ContextTokenizer(self.bundle, self.tokenizer, num_threads=self._num_threads)

    def _bare_ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the ids of texts without the special tokens around them."""
        before, after = self.tokenizer.num_special_tokens
        return [ids[before : len(ids) - after] for ids in self.tokenizer(texts)[0]]

    def _encode(
        self,
        sequences: Sequence[NDArray[np.int64]],
        max_items: int | None = None,
        is_stopped: threading.Event | None = None,
        advance: Callable[[float], object] = lambda tokens: None,
        memory: ReusedMemory | None = None,
    ) -> TokenEmbeddings:
        """Encode whole texts, those longer than the maximum in windows; truncated texts never are."""
        encode = partial(self.encoder.encode, max_items=max_items, is_stopped=is_stopped, memory=memory)
        if self._is_whole(sequences):
            return encode(sequences, advance=advance)
        windows = Windows(sequences, self.tokenizer.max_length, self.tokenizer.num_special_tokens)
        of_token = sum(map(len, sequences)) / sum(map(len, windows.sequences))  # of a text, in a token of a window
        return windows.join(encode(windows.sequences, advance=lambda tokens: advance(tokens * of_token)))

    def _is_whole(self, sequences: Sequence[NDArray[np.int64]]) -> bool:
        """Return whether no text is longer than the model's maximum."""
        return all(len(ids) <= self.tokenizer.max_length for ids in sequences)
