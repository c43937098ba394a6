"""The one public way in: `BERTScorer`."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from os import PathLike
from typing import Literal, TypeVar, overload

import numpy as np

from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.encoding.encoded_texts import EncodedTexts
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.errors import IdfError, InputError, InputTypeError
from bertscore_onnx.matching.greedy import f_measure
from bertscore_onnx.matching.matrix import match_matrix
from bertscore_onnx.matching.rescaling import choose_baselines, rescale_layers
from bertscore_onnx.matching.weights import TokenWeights, idf_of_documents, idf_of_mapping, no_idf
from bertscore_onnx.scores import Score, Scores, join_scores, make_signature
from bertscore_onnx.scoring.golden import check_golden
from bertscore_onnx.scoring.inputs import (
    Pairs,
    Reference,
    Side,
    collect_items,
    collect_pairs,
    collect_single,
    read_items,
    read_pairs,
    slices_of,
)
from bertscore_onnx.scoring.pipeline import Pipeline, load_tokenizer
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.scoring.text_warnings import Notices
from bertscore_onnx.text.tokenizer import LongText, check_long_text

MaybeEncoded = TypeVar("MaybeEncoded")


class BERTScorer(Closeable):
    """Scores candidates against references with one exported model.

    Takes the place of bert-score's class of the same name. Its settings do not change after construction, so threads
    may share it; only `compute_idf` replaces a table, in one step.
    """

    def __init__(
        self,
        model_type: str | PathLike[str] | None = None,
        num_layers: int | None = None,
        batch_size: int | None = None,
        all_layers: bool = False,
        idf: bool | Mapping[int, float] = False,
        idf_sents: Iterable[str] | None = None,
        device: object = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: str | PathLike[str] | None = None,
        *,
        use_fast_tokenizer: bool = False,
        nthreads: int | None = None,
        precision: Precision | None = None,
        verify: bool = False,
        allow_fp32_baseline: bool = False,
        long_text: LongText = "truncate",
    ) -> None:
        """Load a bundle.

        Args:
            model_type: a catalogue name, a Hub id, or the path of a bundle, whose manifest then says model and layer.
                None for the default model of `lang`.
            num_layers: the layer to take tokens from; None for the bundle's, or the one that bert-score tuned.
            batch_size: the most texts in one run of the model; runs are capped by tokens in any case.
            all_layers: score every layer, with a bundle that was exported with `--all-layers`.
            idf: weigh tokens by inverse document frequency: computed from `idf_sents` or by `compute_idf`, or else
                from the references of each call. Or a ready table of token id to weight.
            idf_sents: sentences to compute idf weights from; needs `idf=True`.
            device: "cpu", "cuda" or "cuda:N"; "openvino" for the CPU in bfloat16 where that is fast; None for CUDA
                where there is one, else the CPU.
            lang: language code; chooses the model where none is named, and the baseline.
            rescale_with_baseline: rescale scores so that unrelated sentences score about 0; needs `lang` or
                `baseline_path`.
            baseline_path: a baseline file of your own, `LAYER,P,R,F`.
            use_fast_tokenizer: take the bundle that was exported with the fast tokenizer's ids.
            nthreads: CPU threads for the model; None for all that this process may keep busy.
            precision: "fp32", "fp16" or "int8": take the bundle that was exported in it; None for that of the bundle
                whose path is given, and fp32 by name.
            verify: read the bundle's files for their digests even where they seem unchanged, and compare the scores of
                its golden pairs with those it was exported with.
            allow_fp32_baseline: rescale with a baseline that was computed in fp32 also where the scores are not.
            long_text: what becomes of a text that is longer than the model's maximum. "truncate" cuts it there, as
                bert-score does, and warns. "window" encodes it in overlapping windows of that length, so that all of
                it counts; each token's vector comes from the window in which it has most context.

        Raises:
            InputError, UnknownModelError, UnknownLayerError, BaselineError, BundleError, DeviceError,
            MissingExtraError: as `bertscore_onnx.errors` says.
        """
        _check_positive("batch_size", batch_size)
        _check_positive("nthreads", nthreads)
        check_long_text(long_text)
        bundle = resolve_bundle(
            None if model_type is None else str(model_type),
            lang=lang,
            num_layers=num_layers,
            all_layers=all_layers,
            tokenizer_mode="fast" if use_fast_tokenizer else "slow",
            precision=precision,
            verify=verify,
        )
        self.manifest = bundle.manifest
        """What the bundle says of the model."""
        self._batch_size = batch_size
        self._encoder = Encoder(bundle, device=device, num_threads=nthreads)
        self._baselines, self._baselines_name = choose_baselines(
            self.manifest,
            self._encoder.precision,
            rescale_with_baseline,
            lang,
            baseline_path,
            allow_fp32=allow_fp32_baseline,
        )
        self._pipeline = Pipeline(self.manifest, load_tokenizer(bundle, long_text), self._encoder)
        if verify:
            cutting = self._pipeline
            if long_text != "truncate":
                cutting = Pipeline(self.manifest, load_tokenizer(bundle), self._encoder)
            check_golden(cutting)
        self._long_text = long_text
        self._idf = bool(idf) or isinstance(idf, Mapping)
        self._weights: TokenWeights | None = None if self._idf else no_idf(self.manifest)
        if isinstance(idf, Mapping):
            self._weights = idf_of_mapping(idf, self.manifest)
        if idf_sents is not None:
            self.compute_idf(idf_sents)

    @property
    def model_type(self) -> str:
        """The name of the model."""
        return self.manifest.model_id

    @property
    def num_layers(self) -> int:
        """The layer the tokens are taken from, or the last where every layer is scored."""
        return self.manifest.num_layers

    @property
    def provider(self) -> str:
        """The ONNX Runtime execution provider that runs the model."""
        return self._encoder.provider

    @property
    def signature(self) -> str:
        """All that can change a digit of a score, as `key:value` fields joined by `|`.

        Two runs with one signature and one device give the same scores for the same texts.
        """
        idf = "references" if self._weights is None else self._weights.name
        return make_signature(
            self.manifest,
            precision=self._encoder.precision,
            idf=idf,
            rescaling=self._baselines_name,
            long_text=self._long_text,
        )

    @property
    def hash(self) -> str:
        """The `signature`, under bert-score's name for it."""
        return self.signature

    def compute_idf(self, sents: Iterable[str]) -> None:
        """Compute idf weights from sentences, usually all references; they replace any earlier ones.

        Args:
            sents: the sentences, duplicates included; read a few at a time, and not kept.

        Raises:
            InputError: one of them is not a string.
            IdfError: fewer than two different sentences.
        """
        if not self._idf:
            warnings.warn("idf weights have no effect without idf=True.", UserWarning, stacklevel=2)
            return
        self._weights = self._idf_of(read_items(self._known(sents), "sents"))

    @overload
    def score(
        self,
        cands: Iterable[str] | EncodedTexts,
        refs: Iterable[Reference] | EncodedTexts,
        verbose: bool = ...,
        batch_size: int | None = ...,
        return_hash: Literal[False] = ...,
    ) -> Scores: ...

    @overload
    def score(
        self,
        cands: Iterable[str] | EncodedTexts,
        refs: Iterable[Reference] | EncodedTexts,
        verbose: bool = ...,
        batch_size: int | None = ...,
        *,
        return_hash: Literal[True],
    ) -> tuple[Scores, str]: ...

    @overload
    def score(
        self,
        cands: Iterable[str] | EncodedTexts,
        refs: Iterable[Reference] | EncodedTexts,
        verbose: bool = ...,
        batch_size: int | None = ...,
        return_hash: bool = ...,
    ) -> Scores | tuple[Scores, str]: ...

    def score(
        self,
        cands: Iterable[str] | EncodedTexts,
        refs: Iterable[Reference] | EncodedTexts,
        verbose: bool = False,
        batch_size: int | None = None,
        return_hash: bool = False,
    ) -> Scores | tuple[Scores, str]:
        """Score candidates against their references.

        Args:
            cands: candidate sentences, or what `encode` made of them.
            refs: for each candidate one reference, or a list of several, of which the best counts; or what `encode`
                made of these.
            verbose: show a progress bar on standard error.
            batch_size: the most texts in one run of the model, for this call.
            return_hash: return the signature as well.

        Returns:
            `Scores`, three float32 arrays (candidates,) that unpack as `P, R, F`, or (layers, candidates) with
            `all_layers`; with `return_hash` a tuple of these and the signature.

        Raises:
            InputError: candidates and references do not pair up, or are not strings.
            IdfError: idf weights were to come from the references, and those do not differ.
            EncodingError: the model gave something other than finite vectors.
            ClosedError: the scorer was closed.

        Warns:
            UserWarning: pairs score 0 because a side is empty, or has no token that weighs anything; or texts were cut
                because they are longer than the model's maximum.
        """
        pairs = collect_pairs(self._known(cands), self._known(refs))
        notices = self._notices()
        with progress_bar(len(pairs.candidates), shown=verbose) as advance:
            weights = self._weights_from(pairs.references)
            parts = list(self._score(pairs.slices(), weights, notices, batch_size, advance))
        notices.warn(stacklevel=2)
        scores = self._finished(join_scores(parts, len(self.manifest.layers)))
        return (scores, self.signature) if return_hash else scores

    def stream(
        self, pairs: Iterable[tuple[str, Reference]], *, verbose: bool | None = False, batch_size: int | None = None
    ) -> Iterator[Score]:
        """Score pairs as they come, in memory that does not depend on their number.

        Args:
            pairs: a candidate and its reference, or a list of several, each. They are read in this thread, a window
                of some thousand ahead. Where idf weights come from the references they are read twice, and so must be
                a list or another iterable that starts anew, not an iterator.
            verbose: show a progress bar on standard error; None for one that appears after 2 seconds, on a terminal.
            batch_size: the most texts in one run of the model.

        Yields:
            The `Score` of each pair, in their order, which unpacks as `P, R, F`. Where a pair is wrong, or the iterable
            fails, first the scores of those before it.

        Raises:
            InputError: a pair is not a candidate with its references.
            IdfError: idf weights were to come from the references, and those do not differ, or come from an iterator.
            EncodingError, ClosedError: as `score`.

        Warns:
            UserWarning: at the end, as `score`.
        """
        if self._weights is None and isinstance(pairs, Iterator):
            raise IdfError(
                "A stream cannot compute idf weights from the references of an iterator, which can be read only once. "
                "Give an iterable that starts anew, such as a list; or call compute_idf first, or give idf_sents, or a "
                "table."
            )
        return self._stream(pairs, self._weights, verbose, batch_size)

    def encode(self, texts: Iterable[Reference]) -> EncodedTexts:
        """Encode texts once, to score them many times.

        Args:
            texts: strings, or lists of strings where each item is to be the references of one candidate.

        Returns:
            What `score` and `pairwise` of this model take in place of the strings.

        Raises:
            InputError, EncodingError, ClosedError: as `score`.

        Warns:
            UserWarning: texts were cut because they are longer than the model's maximum.
        """
        notices = self._notices()
        [encoded] = self._pipeline.encode([collect_items(self._known(texts), "texts")], notices)
        notices.warn(stacklevel=2)
        return encoded

    def pairwise(self, cands: Iterable[str] | EncodedTexts, refs: Iterable[str] | EncodedTexts) -> Scores:
        """Score every candidate against every reference, for minimum Bayes risk decoding or to find duplicates.

        Args:
            cands: candidate sentences, or what `encode` made of them.
            refs: references, likewise; each is one of its own.

        Returns:
            `Scores` of three float32 arrays (cands, refs), or (layers, cands, refs) with `all_layers`;
            `best_reference` is (cands,), or (layers, cands); 0 where there are no references.

        Raises:
            InputError, IdfError, EncodingError, ClosedError: as `score`.
        """
        candidates = collect_single(self._known(cands), "cands")
        references = collect_single(self._known(refs), "refs")
        weights = self._weights_from(references)
        notices = self._notices()
        encoded = self._pipeline.encode([candidates, references], notices)
        precision, recall = match_matrix(encoded[0], encoded[1], weights)
        notices.warn(stacklevel=2)
        f1 = f_measure(precision, recall)
        best = f1.argmax(axis=2) if len(references) else np.zeros(f1.shape[:2], dtype=np.int64)
        return self._finished(Scores(precision, recall, f1, best))

    def close(self) -> None:
        """Release the model; the scorer cannot score after that."""
        self._pipeline.close()

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied."""
        raise InputTypeError(
            "A BERTScorer cannot be pickled or copied: its sessions belong to one process. Send the path of the bundle "
            "and make a scorer in each process."
        )

    def __repr__(self) -> str:
        """Name the scorer by its signature."""
        return f"BERTScorer({self.signature}, provider={self.provider})"

    def _score(
        self,
        slices: Iterable[Pairs],
        weights: TokenWeights,
        notices: Notices,
        batch_size: int | None,
        advance: Callable[[float], object],
    ) -> Iterator[Scores]:
        """Yield the raw scores of each window, (layers, candidates)."""
        _check_positive("batch_size", batch_size)
        max_items = batch_size or self._batch_size
        return self._pipeline.score(slices, weights, notices, max_items=max_items, advance=advance)

    def _finished(self, scores: Scores) -> Scores:
        """Rescale scores, (layers, …), and drop the axis of layers where there is only one."""
        if self._baselines is not None:
            scores = rescale_layers(scores, self._baselines)
        return scores if self.manifest.all_layers else scores.of_layer(0)

    def _stream(
        self,
        pairs: Iterable[tuple[str, Reference]],
        weights: TokenWeights | None,
        verbose: bool | None,
        batch_size: int | None,
    ) -> Iterator[Score]:
        total = len(pairs) if isinstance(pairs, Sized) else None
        notices = self._notices()
        if weights is None:
            weights = self._idf_of((some.references for some in read_pairs(pairs)), "references")
        with progress_bar(total, shown=verbose) as advance:
            for scores in self._score(read_pairs(pairs), weights, notices, batch_size, advance):
                yield from self._finished(scores).each()
        notices.warn(stacklevel=2)

    def _notices(self) -> Notices:
        return Notices(max_length=self._pipeline.max_length)

    def _known(self, texts: MaybeEncoded) -> MaybeEncoded:
        """Return texts as they are, unless they come encoded by something else."""
        if isinstance(texts, EncodedTexts) and texts.model != self._pipeline.model:
            raise InputError(
                f"The texts were encoded by {texts.model}; this scorer is {self._pipeline.model}. Encode them with it."
            )
        return texts

    def _weights_from(self, references: Side) -> TokenWeights:
        """Return the scorer's weights, or else the idf of these references."""
        if self._weights is not None:
            return self._weights
        return self._idf_of(slices_of(references), "references") if len(references) else no_idf(self.manifest)

    def _idf_of(self, slices: Iterable[Side], name: str = "") -> TokenWeights:
        return idf_of_documents(self._pipeline.documents(slices), self.manifest, name)


def _check_positive(name: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")
