"""The one public way in: `BERTScorer`."""

import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from os import PathLike
from typing import Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.encoding.encoded_texts import EncodedTexts
from bertscore_onnx.encoding.onnx_runtime.sessions import OptimizeFor
from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.hub import local_path
from bertscore_onnx.matching.rescaling import Rescaling, choose_rescaling
from bertscore_onnx.matching.unrelated import unrelated_f1
from bertscore_onnx.matching.weights import Idf, TokenWeights, idf_given, uniform
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.golden import check_golden
from bertscore_onnx.scoring.inputs import Reference, check_positive, collect_pairs, read_items
from bertscore_onnx.scoring.pipeline import Pipeline
from bertscore_onnx.scoring.text_scorer import TextScorer
from bertscore_onnx.text.tokenizer import LongText

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
