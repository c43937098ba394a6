"""`TextScorer`: scores texts with one model, token weights and rescaling; `BERTScorer` adds how these are chosen."""

from collections.abc import Generator, Iterable, Iterator, Sized
from typing import Self, TypeVar

import numpy as np

from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.encoding.encoded_texts import EncodedTexts
from bertscore_onnx.errors import ClosedError, IdfError, InputError
from bertscore_onnx.matching.matrix import match_matrix
from bertscore_onnx.matching.rescaling import Rescaling
from bertscore_onnx.matching.weights import TokenWeights, idf_of_counts, uniform
from bertscore_onnx.scores import Score, Scores, join_scores
from bertscore_onnx.scoring.inputs import (
    Pairs,
    Reference,
    Side,
    check_positive,
    collect_items,
    collect_single,
    read_pairs,
    slices_of,
)
from bertscore_onnx.scoring.pipeline import Pipeline
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.scoring.text_warnings import TextCounts
from bertscore_onnx.signature import Signature

MaybeEncoded = TypeVar("MaybeEncoded")


class TextScorer(Closeable):
    """Scores texts; threads may share it."""

    def __init__(
        self,
        pipeline: Pipeline,
        weights: TokenWeights | None,
        rescaling: Rescaling,
        batch_size: int | None = None,
    ) -> None:
        """Take what to score with.

        Args:
            pipeline: the model, of which this becomes one user.
            weights: what the tokens weigh; None for the idf in the references of each call.
            rescaling: what becomes of raw scores.
            batch_size: the most texts in one run of the model.
        """
        self._shared_pipeline = pipeline
        self._weights = weights
        self._rescaling = rescaling
        self._batch_size = batch_size
        self._is_closed = False

    @property
    def bundle(self) -> Bundle:
        """What was loaded; its `check_unchanged` says whether its files are still the same."""
        return self._shared_pipeline.bundle

    @property
    def manifest(self) -> Manifest:
        """What the bundle says of the model."""
        return self._shared_pipeline.manifest

    @property
    def provider(self) -> str:
        """The ONNX Runtime execution provider that runs the model."""
        return self._shared_pipeline.encoder.provider

    @property
    def max_length(self) -> int:
        """The most tokens of a text, or of a window of it, special tokens included."""
        return self._shared_pipeline.tokenizer.max_length

    @property
    def rescaling(self) -> Rescaling:
        """What becomes of raw scores."""
        return self._rescaling

    @property
    def signature(self) -> Signature:
        """All that can change a digit of a score; `str()` of it is the line to print."""
        manifest, pipeline = self.manifest, self._shared_pipeline
        return Signature(
            model=manifest.model_id,
            layer="all" if manifest.all_layers else manifest.num_layers,
            idf="references" if self._weights is None else self._weights.name,
            rescale=self._rescaling.name,
            tokenizer=pipeline.tokenizer.description,
            long_text=pipeline.tokenizer.long_text,
            max_length=pipeline.max_length,
            precision=pipeline.encoder.precision,
            bundle=manifest.digest[:12],
        )

    def tokenise(self, pairs: Pairs) -> tuple[Pairs, TextCounts]:
        """Return pairs with the ids of their texts, before they are scored, and what is to be known of these."""
        return self._shared_pipeline.tokenise(pairs)

    def score_pairs(
        self, pairs: Pairs, *, verbose: bool = False, batch_size: int | None = None
    ) -> tuple[Scores, TextCounts]:
        """Score pairs that `collect_pairs` has checked, and return what is to be known of their texts without warning.

        Args:
            pairs: candidates with their references.
            verbose: show a progress bar on standard error.
            batch_size: the most texts in one run of the model, for this call.

        Raises:
            InputError: a side was encoded by another model.
            IdfError: idf weights were to come from the references, and those do not differ.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.
        """
        for side in (pairs.candidates, pairs.references):
            self._own(side)
        max_items = self._max_items(batch_size)
        with progress_bar(len(pairs.candidates), shown=verbose) as advance:
            weights = self.weights_for(pairs.references)
            chunks = self._pipeline.score(pairs.slices(), weights, max_items=max_items, advance=advance)
            parts, counts = [], TextCounts()
            for scores, of_chunk in chunks:
                parts.append(scores)
                counts += of_chunk
        return self._finished(join_scores(parts, len(self.manifest.layers))), counts

    def stream(
        self, pairs: Iterable[tuple[str, Reference]], *, verbose: bool | None = False, batch_size: int | None = None
    ) -> Generator[Score, None, None]:
        """Score pairs as they come, in memory that does not depend on their number.

        Args:
            pairs: a candidate and its reference, or a list of several, each. They are read in this thread, some
                thousand ahead. Where idf weights come from the references they are read twice, and so must be a list
                or another iterable that can be read again, not an iterator.
            verbose: show a progress bar on standard error; None for one that appears after 2 seconds, on a terminal.
            batch_size: the most texts in one run of the model.

        Yields:
            The `Score` of each pair, in their order, which unpacks as `P, R, F`. Where a pair is wrong, or the iterable
            fails, first the scores of those before it.

        Raises:
            InputError: a pair is not a candidate with its references.
            IdfError: idf weights were to come from the references, and those do not differ, or come from an iterator.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.

        Warns:
            UserWarning: at the end, of pairs that score 0 because a side is empty or weighs nothing, and of texts that
                were truncated.
        """
        if self._weights is None and isinstance(pairs, Iterator):
            raise IdfError(
                "A stream cannot compute idf weights from the references of an iterator, which can be read only once. "
                "Give an iterable that can be read again, such as a list; or call compute_idf first, or give "
                "idf_sents, or a table."
            )
        return self._stream(pairs, self._weights, verbose, self._max_items(batch_size))

    def encode(self, texts: Iterable[Reference]) -> EncodedTexts:
        """Encode texts once, to score them many times.

        Args:
            texts: strings, or lists of strings where each item is to be the references of one candidate.

        Returns:
            What `score` and `pairwise` of this model take in place of the strings.

        Raises:
            InputError: something is not a string.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.

        Warns:
            UserWarning: texts were truncated because they are longer than the model's maximum.
        """
        encoded, counts = self.encode_items(collect_items(self._own(texts), "texts"))
        counts.warn(self.max_length, stacklevel=2)
        return encoded

    def encode_items(self, items: Side) -> tuple[EncodedTexts, TextCounts]:
        """Encode texts that `collect_items` has checked, and return what is to be known of them instead of warning.

        Raises:
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.
        """
        [encoded], counts = self._pipeline.encode([items])
        return encoded, counts

    def pairwise(self, cands: Iterable[str] | EncodedTexts, refs: Iterable[str] | EncodedTexts) -> Scores:
        """Score every candidate against every reference, for minimum Bayes risk decoding or to find duplicates.

        Args:
            cands: candidate sentences, or what `encode` made of them.
            refs: references, likewise; each is one of its own.

        Returns:
            `Scores` of three float32 arrays (cands, refs), or (layers, cands, refs) with `all_layers`;
            `best_reference` is (cands,), or (layers, cands); 0 where there are no references.

        Raises:
            InputError: something is not a string.
            IdfError: idf weights were to come from the references, and those do not differ.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.

        Warns:
            UserWarning: texts were truncated because they are longer than the model's maximum.
        """
        candidates, references = collect_single(self._own(cands), "cands"), collect_single(self._own(refs), "refs")
        weights = self.weights_for(references)
        encoded, counts = self._pipeline.encode([candidates, references])
        precision, recall, f1 = match_matrix(encoded[0], encoded[1], weights)
        counts.warn(self.max_length, stacklevel=2)
        best = f1.argmax(axis=2) if len(references) else np.zeros(f1.shape[:2], dtype=np.int64)
        return self._finished(Scores(precision, recall, f1, best))

    def weights_for(self, references: Side) -> TokenWeights:
        """Return what tokens weigh in a call with these references: the scorer's weights, or the idf in these.

        Raises:
            IdfError: idf weights were to come from the references, and those do not differ.
        """
        if self._weights is not None:
            return self._weights
        return self._idf_of(slices_of(references), "references") if len(references) else uniform(self.manifest)

    def release_memory(self) -> None:
        """Give memory that only large texts need back to the system; a process that idles needs no more of it.

        Raises:
            ClosedError: the scorer was closed.
        """
        self._pipeline.encoder.release_memory()

    def shared(self) -> Self:
        """Return a scorer of the same settings that shares the model, and is closed by itself."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _shared_pipeline=self._pipeline.shared())
        return other

    def close(self) -> None:
        """Stop using the model, which is released when no other scorer shares it; this one cannot score after that."""
        if not self._is_closed:
            self._is_closed = True
            self._shared_pipeline.close()

    @property
    def _pipeline(self) -> Pipeline:
        """The pipeline, while this scorer may use it."""
        if self._is_closed:
            raise ClosedError("The scorer was closed. Make a new one.")
        return self._shared_pipeline

    def _stream(
        self,
        pairs: Iterable[tuple[str, Reference]],
        weights: TokenWeights | None,
        verbose: bool | None,
        max_items: int | None,
    ) -> Generator[Score, None, None]:
        total = len(pairs) if isinstance(pairs, Sized) else None
        counts = TextCounts()
        if weights is None:
            weights = self._idf_of((some.references for some in read_pairs(pairs)), "references")
        with progress_bar(total, shown=verbose) as advance:
            chunks = self._pipeline.score(read_pairs(pairs), weights, max_items=max_items, advance=advance)
            for scores, of_chunk in chunks:
                counts += of_chunk
                yield from self._finished(scores).each()
        counts.warn(self.max_length, stacklevel=2)

    def _finished(self, scores: Scores) -> Scores:
        """Rescale scores, (layers, …), and drop the axis of layers where there is only one."""
        scores = self._rescaling.apply(scores)
        return scores if self.manifest.all_layers else scores.of_layer(0)

    def _max_items(self, batch_size: int | None) -> int | None:
        check_positive("batch_size", batch_size)
        return batch_size or self._batch_size

    def _own(self, texts: MaybeEncoded) -> MaybeEncoded:
        """Return texts as they are, unless they come encoded by another model."""
        model = self._shared_pipeline.model
        if isinstance(texts, EncodedTexts) and texts.model != model:
            raise InputError(f"The texts were encoded by {texts.model}; this scorer is {model}. Encode them with it.")
        return texts

    def _idf_of(self, slices: Iterable[Side], name: str = "") -> TokenWeights:
        pipeline = self._pipeline
        return idf_of_counts(pipeline.count_documents(slices), self.manifest, pipeline.tokenization, name)
