"""The one public way in: `BERTScorer`, and `score()` for a single call."""

import warnings
from collections.abc import Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.baselines import choose_baselines, rescale_layers
from bertscore_onnx.deduplication import number_distinct
from bertscore_onnx.encoder import Encoder
from bertscore_onnx.errors import InputError
from bertscore_onnx.inputs import Reference, collect_pairs, collect_texts
from bertscore_onnx.locate import find_bundle
from bertscore_onnx.matching import f_measure
from bertscore_onnx.pairing import match_pairs
from bertscore_onnx.progress import progress_bar
from bertscore_onnx.scores import Scores, best_of_references, make_signature
from bertscore_onnx.tokenization import TextTokenizer
from bertscore_onnx.weighting import TokenWeights, idf_of_documents, idf_of_mapping, no_idf


class BERTScorer:
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
        verify: bool = False,
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
            device: "cpu", "cuda" or "cuda:N"; None for CUDA where there is one, else the CPU.
            lang: language code; chooses the model where none is named, and the baseline.
            rescale_with_baseline: rescale scores so that unrelated sentences score about 0; needs `lang` or
                `baseline_path`.
            baseline_path: a baseline file of your own, `LAYER,P,R,F`.
            use_fast_tokenizer: take the bundle that was exported with the fast tokenizer's ids.
            nthreads: CPU threads for the model; None for all that this process may keep busy.
            verify: read the bundle's files for their digests even where they seem unchanged.

        Raises:
            InputError, UnknownModelError, UnknownLayerError, BaselineError, BundleError, DeviceError,
            MissingExtraError: as `bertscore_onnx.errors` says.
        """
        _check_positive("batch_size", batch_size)
        _check_positive("nthreads", nthreads)
        bundle = find_bundle(
            None if model_type is None else str(model_type),
            lang=lang,
            num_layers=num_layers,
            all_layers=all_layers,
            tokenizer_mode="fast" if use_fast_tokenizer else "slow",
            verify=verify,
        )
        self.manifest = bundle.manifest
        """What the bundle says of the model."""
        self._batch_size = batch_size
        self._baselines, self._baselines_name = choose_baselines(
            self.manifest, rescale_with_baseline, lang, baseline_path
        )
        self._tokenizer = TextTokenizer.of_bundle(bundle)
        self._idf = bool(idf) or isinstance(idf, Mapping)
        self._weights: TokenWeights | None = None if self._idf else no_idf(self.manifest)
        if isinstance(idf, Mapping):
            self._weights = idf_of_mapping(idf, self.manifest)
        if idf_sents is not None:
            self.compute_idf(idf_sents)
        self._encoder = Encoder(bundle, device=device, num_threads=nthreads)

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
        return make_signature(self.manifest, idf=idf, rescaling=self._baselines_name)

    @property
    def hash(self) -> str:
        """The `signature`, under bert-score's name for it."""
        return self.signature

    def compute_idf(self, sents: Iterable[str]) -> None:
        """Compute idf weights from sentences, usually all references; they replace any earlier ones.

        Raises:
            IdfError: fewer than two different sentences.
        """
        if not self._idf:
            warnings.warn("idf weights have no effect without idf=True.", UserWarning, stacklevel=2)
            return
        self._weights = idf_of_documents(self._tokenizer(collect_texts(sents, "sents")), self.manifest)

    @overload
    def score(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        verbose: bool = ...,
        batch_size: int | None = ...,
        return_hash: Literal[False] = ...,
    ) -> Scores: ...

    @overload
    def score(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        verbose: bool = ...,
        batch_size: int | None = ...,
        *,
        return_hash: Literal[True],
    ) -> tuple[Scores, str]: ...

    @overload
    def score(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        verbose: bool = ...,
        batch_size: int | None = ...,
        return_hash: bool = ...,
    ) -> Scores | tuple[Scores, str]: ...

    def score(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        verbose: bool = False,
        batch_size: int | None = None,
        return_hash: bool = False,
    ) -> Scores | tuple[Scores, str]:
        """Score candidates against their references.

        Args:
            cands: candidate sentences.
            refs: for each candidate one reference, or a list of several, of which the best counts.
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
            UserWarning: pairs score 0 because a side is empty, or has no token that weighs anything.
        """
        _check_positive("batch_size", batch_size)
        pairs = collect_pairs(cands, refs)
        sequences, of_text = self._tokenise([*pairs.candidates, *pairs.references])
        candidate, reference = np.split(of_text, 2)  # the sequence on each side, (pairs,) each
        weights = self._weights
        if weights is None and len(reference):
            weights = idf_of_documents([sequences[text] for text in reference], self.manifest, "references")
        with progress_bar(len(sequences), shown=verbose) as advance:
            embeddings = self._encoder.encode(sequences, max_items=batch_size or self._batch_size, advance=advance)
        precision, recall = match_pairs(
            embeddings, candidate, reference, weights or no_idf(self.manifest), self.manifest.special_ids
        )
        scores = best_of_references(precision, recall, f_measure(precision, recall), pairs.counts)
        if self._baselines is not None:
            scores = rescale_layers(scores, self._baselines)
        if not self.manifest.all_layers:
            scores = Scores(scores.P[0], scores.R[0], scores.F[0], scores.best_reference[0])
        return (scores, self.signature) if return_hash else scores

    def close(self) -> None:
        """Release the model; the scorer cannot score after that."""
        self._encoder.close()

    def __enter__(self) -> Self:
        """Return the scorer itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the scorer."""
        self.close()

    def __repr__(self) -> str:
        """Name the scorer by its signature."""
        return f"BERTScorer({self.signature}, provider={self.provider})"

    def _tokenise(self, texts: list[str]) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """Return the distinct id sequences of the texts, and which of them each text has, (texts,)."""
        first, text_number = number_distinct(texts)
        sequences = self._tokenizer([texts[position] for position in first])
        first, sequence_number = number_distinct([ids.tobytes() for ids in sequences])
        return [sequences[position] for position in first], sequence_number[text_number]


def score(
    cands: Iterable[str],
    refs: Iterable[Reference],
    model_type: str | PathLike[str] | None = None,
    num_layers: int | None = None,
    verbose: bool = False,
    idf: bool | Mapping[int, float] = False,
    device: object = None,
    batch_size: int | None = None,
    nthreads: int | None = None,
    all_layers: bool = False,
    lang: str | None = None,
    return_hash: bool = False,
    rescale_with_baseline: bool = False,
    baseline_path: str | PathLike[str] | None = None,
    use_fast_tokenizer: bool = False,
    *,
    idf_sents: Iterable[str] | None = None,
) -> Scores | tuple[Scores, str]:
    """Score once; the arguments are those of bert-score's `score` and mean what `BERTScorer` says.

    For more than one call make a `BERTScorer`, which loads the model once.
    """
    with BERTScorer(
        model_type,
        num_layers,
        batch_size,
        all_layers,
        idf,
        idf_sents,
        device,
        lang,
        rescale_with_baseline,
        baseline_path,
        use_fast_tokenizer=use_fast_tokenizer,
        nthreads=nthreads,
    ) as scorer:
        return scorer.score(cands, refs, verbose, return_hash=return_hash)


def _check_positive(name: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")
