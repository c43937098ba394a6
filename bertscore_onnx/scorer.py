"""The one public way in: `BERTScorer`."""

import warnings
from collections.abc import Generator, Iterable, Iterator, Sized
from contextlib import nullcontext
from os import PathLike
from typing import Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.encoding.embeddings import EncodedTexts
from bertscore_onnx.encoding.session import OptimizeFor
from bertscore_onnx.errors import ClosedError, IdfError, InputError, InputTypeError
from bertscore_onnx.hub import local_path
from bertscore_onnx.matching.pairs import match_matrix
from bertscore_onnx.matching.weights import (
    Idf,
    Rescaling,
    TokenWeights,
    choose_rescaling,
    idf_given,
    idf_of_counts,
    uniform,
    unrelated_f1,
)
from bertscore_onnx.scores import Score, Scores, join_scores
from bertscore_onnx.scoring.golden import check_golden
from bertscore_onnx.scoring.inputs import (
    Pairs,
    Reference,
    Side,
    TextCounts,
    check_positive,
    collect_items,
    collect_pairs,
    collect_single,
    read_items,
    read_pairs,
    slices_of,
)
from bertscore_onnx.scoring.pipeline import Pipeline
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.signature import Signature
from bertscore_onnx.text.tokenizer import LongText

# `TextScorer`: scores texts with one model, token weights and rescaling; `BERTScorer` adds how these are chosen.


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


Cands = Iterable[str] | EncodedTexts
Refs = Iterable[Reference] | EncodedTexts
Size = int | None


class BERTScorer(TextScorer):
    """Scores candidates against references with one exported model.

    Takes the place of bert-score's class of the same name. Its settings do not change after construction, so threads
    may share it; only `compute_idf` replaces the weights, in one step.
    """

    def __init__(
        self,
        model_type: str | PathLike[str] | None = None,
        num_layers: int | None = None,
        batch_size: int | None = None,
        nthreads: int | None = None,
        all_layers: bool = False,
        idf: Idf = False,
        idf_sents: Iterable[str] | None = None,
        device: object = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: str | PathLike[str] | None = None,
        use_fast_tokenizer: bool | None = None,
        *,
        precision: Precision | None = None,
        verify: bool = False,
        allow_fp32_baseline: bool = False,
        long_text: LongText = "truncate",
        max_length: int | None = None,
        optimize_for: OptimizeFor = "throughput",
    ) -> None:
        """Load a bundle.

        The arguments that may be given by position are those of bert-score's class, in its order.

        Args:
            model_type: a catalogue name, a Hub id, or the path of a bundle, whose manifest then says model and layer;
                `hf://ORG/REPO[@REVISION][/VARIANT]` for a bundle on the hub, which is pulled unless it is here. None
                for the default model of `lang`.
            num_layers: the layer to take tokens from; None for the bundle's, or the one that bert-score tuned.
            batch_size: the most texts in one run of the model; runs are capped by tokens in any case.
            nthreads: CPU threads; None for all that this process may keep busy, at most `OMP_NUM_THREADS`.
            all_layers: score every layer, with a bundle that was exported with `--all-layers`.
            idf: weigh tokens by inverse document frequency: computed from `idf_sents` or by `compute_idf`, or else
                from the references of each call. Or `DocumentCounts`, or a ready table of token id to weight.
            idf_sents: sentences to compute idf weights from; needs `idf=True`.
            device: "cpu", "cuda" or "cuda:N"; "openvino" for the CPU in bfloat16 where that is fast; "coreml" for the
                GPU of a Mac, which has not been measured; None for CUDA where there is one, else the CPU.
            lang: language code; chooses the model where none is named, and the baseline.
            rescale_with_baseline: rescale scores so that unrelated sentences score about 0; needs `lang` or
                `baseline_path`.
            baseline_path: a baseline file of your own, `LAYER,P,R,F`.
            use_fast_tokenizer: take the bundle that was exported with the fast tokenizer's ids, or the slow one's;
                None for that of the bundle whose path is given, and the slow one's by name.
            precision: "fp32", "fp16" or "int8": take the bundle that was exported in it; None for that of the bundle
                whose path is given, and fp32 by name.
            verify: read the bundle's files for their digests even where they seem unchanged, and compare the scores of
                its golden pairs with those it was exported with.
            allow_fp32_baseline: rescale with a baseline that was computed in fp32 also where the scores are not.
            long_text: what becomes of a text that is longer than the maximum. "truncate" cuts it there, as
                bert-score does, and warns. "window" encodes it in overlapping windows of that length, so that all of
                it counts; each token's vector comes from the window in which it has most context.
            max_length: the most tokens of a text, or of a window of it, special tokens included, as
                `tokenizer.model_max_length` counts them; None for the model's own maximum, which is also the most that
                may be given.
            optimize_for: "throughput" runs a batch of texts on each CPU thread. "latency" runs one batch on all of
                them, which then spin for a moment: one pair is faster, many are slower, and so is what else runs here.

        Raises:
            InputError: an argument is out of range.
            UnknownModelError, UnknownLayerError, BaselineError: there is no such model, layer or baseline.
            BundleError: the bundle is missing, damaged or not what its manifest says.
            HubError: it cannot be pulled.
            DeviceError, MissingExtraError: the device cannot run the model, or a package for it is not installed.
        """
        check_positive("batch_size", batch_size)
        check_positive("nthreads", nthreads)
        bundle = resolve_bundle(
            None if model_type is None else local_path(model_type),
            lang=lang,
            num_layers=num_layers,
            all_layers=all_layers,
            tokenizer_mode=None if use_fast_tokenizer is None else "fast" if use_fast_tokenizer else "slow",
            precision=precision,
            verify=verify,
        )
        pipeline = Pipeline(
            bundle,
            long_text=long_text,
            max_length=max_length,
            device=device,
            num_threads=nthreads,
            optimize_for=optimize_for,
        )
        super().__init__(pipeline, None, Rescaling(), batch_size)
        if rescale_with_baseline:
            self._rescaling = self._chosen_rescaling(lang, baseline_path, allow_fp32_baseline)
        if verify:
            check_golden(bundle, pipeline.encoder)
        self._set_weights(idf, idf_sents)

    @property
    def model_type(self) -> str:
        """The name of the model."""
        return self.manifest.model_id

    @property
    def num_layers(self) -> int:
        """The layer the tokens are taken from, or the last where every layer is scored."""
        return self.manifest.num_layers

    @property
    def hash(self) -> str:
        """The line of the `signature`, under bert-score's name for it."""
        return str(self.signature)

    def with_idf(self, idf: Idf, idf_sents: Iterable[str] | None = None) -> Self:
        """Return a scorer with other token weights that shares this one's model.

        Args:
            idf: False to weigh all tokens alike; else as for the constructor.
            idf_sents: sentences to compute idf weights from.

        Raises:
            IdfError: the weights cannot be computed.
            ClosedError: this scorer was closed.
        """
        other = self.shared()
        try:
            other._set_weights(idf, idf_sents)
        except BaseException:
            other.close()
            raise
        return other

    def with_rescaling(
        self,
        lang: str | None = None,
        baseline_path: str | PathLike[str] | None = None,
        *,
        allow_fp32_baseline: bool = False,
    ) -> Self:
        """Return a scorer with another rescaling that shares this one's model.

        Args:
            lang, baseline_path, allow_fp32_baseline: as for the constructor; without language and file scores stay raw.

        Raises:
            BaselineError: there is no such baseline.
            ClosedError: this scorer was closed.
        """
        is_raw = lang is None and baseline_path is None
        rescaling = Rescaling() if is_raw else self._chosen_rescaling(lang, baseline_path, allow_fp32_baseline)
        other = self.shared()
        other._rescaling = rescaling
        return other

    def unrelated_scores(self, lang: str | None = None) -> NDArray[np.float64] | None:
        """Return the F of unrelated pairs: evenly spaced quantiles, the lowest first, on the scale of this scorer.

        They are (quantiles,), or (layers, quantiles) with `all_layers`; None where `bertscore-onnx baseline` has not
        measured them with this bundle in this precision, or tokens are weighted by idf. Of several languages, `lang`
        says which; without it that of the rescaling counts, or the only one.
        """
        return unrelated_f1(self.manifest, self.signature, self._rescaling, lang)

    def compute_idf(self, sents: Iterable[str]) -> None:
        """Compute idf weights from sentences, usually all references; they replace any earlier ones.

        Args:
            sents: the sentences, duplicates included; read a few at a time, and not kept.

        Raises:
            InputError: one of them is not a string.
            IdfError: fewer than two different sentences.
        """
        if not self._uses_idf:
            warnings.warn("idf weights have no effect without idf=True.", UserWarning, stacklevel=2)
            return
        self._weights = self._idf_of(read_items(self._own(sents), "sents"))

    @overload
    def score(
        self, cands: Cands, refs: Refs, verbose: bool = ..., batch_size: Size = ..., return_hash: Literal[False] = ...
    ) -> Scores: ...

    @overload
    def score(
        self, cands: Cands, refs: Refs, verbose: bool = ..., batch_size: Size = ..., *, return_hash: Literal[True]
    ) -> tuple[Scores, str]: ...

    def score(
        self, cands: Cands, refs: Refs, verbose: bool = False, batch_size: Size = None, return_hash: bool = False
    ) -> Scores | tuple[Scores, str]:
        """Score candidates against their references.

        Args:
            cands: candidate sentences, or what `encode` made of them.
            refs: for each candidate one reference, or a list of several, of which the best counts; or what `encode`
                made of these.
            verbose: show a progress bar on standard error.
            batch_size: the most texts in one run of the model, for this call.
            return_hash: return the signature's line as well.

        Returns:
            `Scores`, three float32 arrays (candidates,) that unpack as `P, R, F`, or (layers, candidates) with
            `all_layers`; with `return_hash` a tuple of these and the signature's line.

        Raises:
            InputError: candidates and references do not pair up, or are not strings.
            IdfError: idf weights were to come from the references, and those do not differ.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.

        Warns:
            UserWarning: pairs score 0 because a side is empty, or has no token that weighs anything; or texts were
                truncated because they are longer than the model's maximum.
        """
        scores, counts = self.score_pairs(collect_pairs(cands, refs), verbose=verbose, batch_size=batch_size)
        counts.warn(self.max_length, stacklevel=2)
        return (scores, self.hash) if return_hash else scores

    def plot_example(self, candidate: str, reference: str, fname: str | PathLike[str] = "") -> None:
        """Draw the similarity of every token of a candidate to every token of a reference.

        Without special tokens; rescaled by the baseline of F where scores are. Idf weights stand beside the tokens,
        unless they were to come from the references: one pair has none. The drawing is shown where there is a screen.

        Args:
            candidate, reference: the texts; each needs a token.
            fname: a file to save the drawing to, such as `match.png` or `match.svg`; "" for none.

        Raises:
            MissingExtraError: matplotlib is not installed.
            InputError: a text has no token; there is no such format, or the file cannot be written; or the scorer
                scores all layers, of which a drawing shows one.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.
        """
        from bertscore_onnx.similarity import TokenNames, token_similarity
        from bertscore_onnx.similarity.drawing import plot_matches

        with self.with_idf(False) if self._weights is None else nullcontext(self) as scorer:
            plot_matches(token_similarity(scorer, TokenNames(self.bundle), candidate, reference), fname)

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied."""
        raise InputTypeError(
            "A BERTScorer cannot be pickled or copied: its sessions belong to one process. Send the path of the bundle "
            "and make a scorer in each process."
        )

    def __repr__(self) -> str:
        """Name the scorer by its signature."""
        return f"BERTScorer({self.signature}, provider={self.provider})"

    def _set_weights(self, idf: Idf, idf_sents: Iterable[str] | None) -> None:
        self._uses_idf = not isinstance(idf, bool) or idf
        self._weights: TokenWeights | None = None if self._uses_idf else uniform(self.manifest)
        if not isinstance(idf, bool):
            self._weights = idf_given(idf, self.manifest, self._pipeline.tokenization)
        if idf_sents is not None:
            self.compute_idf(idf_sents)

    def _chosen_rescaling(
        self, lang: str | None, path: str | PathLike[str] | None, allow_fp32_baseline: bool
    ) -> Rescaling:
        precision = self._pipeline.encoder.precision
        return choose_rescaling(self.manifest, precision, lang, path, allow_fp32_baseline=allow_fp32_baseline)
