"""`BERTScorer`: scores texts with one model, token weights and rescaling."""

import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence, Sized
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Never, Self, TypeVar, overload

import numpy as np
import tokenizers

from bertscore_onnx.arrays import Float64Array, Int64Array
from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.concurrency.shared import Shared
from bertscore_onnx.encoding.providers import engine_version
from bertscore_onnx.encoding.session import OptimizeFor
from bertscore_onnx.errors import (
    Argument,
    BaselineError,
    ClosedError,
    IdfError,
    InputError,
    InputTypeError,
    meant,
)
from bertscore_onnx.files import StrPath
from bertscore_onnx.matching.matrix import match_matrix
from bertscore_onnx.matching.pairs import EncodedTexts
from bertscore_onnx.matching.rescaling import Rescaling, choose_rescaling, random_pairs_f1
from bertscore_onnx.matching.variants import Matching, checked_matching
from bertscore_onnx.matching.weights import (
    Idf,
    TokenWeights,
    idf_given,
    idf_of_counts,
    idf_of_references,
    uniform,
)
from bertscore_onnx.scores import Score, Scores, Signature, join_scores
from bertscore_onnx.scoring.golden import check_golden
from bertscore_onnx.scoring.inputs import (
    Cands,
    Contexts,
    Pair,
    Pairs,
    Refs,
    Side,
    check_no_context,
    check_positive,
    collect_items,
    collect_pairs,
    collect_single,
    read_items,
    read_pairs,
    singles,
    slices_of,
)
from bertscore_onnx.scoring.pipeline import Pipeline
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.scoring.text_stats import TextStats
from bertscore_onnx.settings import ScorerSettings, find_bundle
from bertscore_onnx.tables.columns import ColumnName
from bertscore_onnx.tables.row_reader import RowReader, text_columns
from bertscore_onnx.tables.score_columns import SCORE_NAMES, Errors, check_free, check_score_names
from bertscore_onnx.text.texts import Reference, check_string, collect_strings
from bertscore_onnx.text.tokenizer import LongText, TokenisedTexts

if TYPE_CHECKING:
    from bertscore_onnx.similarity import TokenMatches, TokenNames  # costs start-up time

Size = int | None
Frame = TypeVar("Frame")


def _refuse(function: str, unknown: Iterable[str], accepted: Iterable[str] = ()) -> None:
    """Raise InputTypeError for an unknown argument of a function, and suggest an accepted one."""
    for name in unknown:
        hint = ""
        if name in ScorerSettings.__annotations__:
            hint = f": it is a setting of the scorer, BERTScorer(..., {name}=...)"
        raise InputTypeError(f"{function} takes no {name!r}{hint}.{meant(name, accepted)}")


def _of_pairs(signature: Signature, counts: Int64Array, *, in_context: bool) -> Signature:
    """Return the signature of scores with these numbers of references."""
    largest = int(counts.max(initial=1))
    if largest > 1:
        signature = signature.with_references(int(counts.min()), largest)
    return signature.in_context() if in_context else signature


class BERTScorer(Closeable):
    """Scores candidates against references with one exported model.

    A drop-in replacement for bert-score's class of the same name. Its settings do not change after
    construction, so threads may share it; only `compute_idf` replaces the weights, in one step.

    Raises:
        ClosedError: a method was called after `close`.
        EncodingError: the model returned vectors that are not finite.
        IdfError: idf weights come from the references of a call, and these do not differ.

    Warns:
        UserWarning: as `score` says, wherever texts are read; `stream` warns at its end.
    """

    def __init__(
        self,
        model_type: StrPath | None = None,
        num_layers: int | None = None,
        batch_size: int | None = None,
        nthreads: int | None = None,
        all_layers: bool = False,
        idf: Idf = False,
        idf_sents: Iterable[str] | None = None,
        device: object = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: StrPath | None = None,
        use_fast_tokenizer: bool | None = None,
        *,
        precision: Precision | None = None,
        verify: bool = False,
        allow_fp32_baseline: bool = False,
        long_text: LongText = "truncate",
        max_length: int | None = None,
        optimize_for: OptimizeFor = "throughput",
        matching: Matching | str = "bertscore",
        **unknown: Never,
    ) -> None:
        """Load a bundle.

        The positional arguments are those of bert-score's class, in its order.

        Args:
            model_type: a catalogue name, a Hub id, or the path of a bundle, whose manifest then
                names model and layer; `hf://ORG/REPO[@REVISION][/VARIANT]` for a bundle on the hub,
                which is pulled unless it is here. None for the default of `lang`, or without it the
                one that the environment variable `BERTSCORE_ONNX_MODEL` names.
            num_layers: the layer to take token embeddings from, which may be any of a bundle of all
                layers; None for the bundle's, or the one that bert-score tuned.
            batch_size: the most texts in one run of the model; runs are capped by tokens in any
                case.
            nthreads: CPU threads; None for all that this process may keep busy, at most
                `OMP_NUM_THREADS`.
            all_layers: score every layer, with a bundle that was exported with `--all-layers`.
            idf: weight tokens by inverse document frequency, computed from `idf_sents` or by
                `compute_idf`, or else from the references of each call; or `DocumentCounts`; or a
                mapping of token id to weight.
            idf_sents: sentences to compute idf weights from; needs `idf=True`.
            device: "cpu", "cuda" or "cuda:N"; "openvino" for the CPU in bfloat16 where that is
                fast; None for CUDA if available, else the CPU.
            lang: language code; chooses the baseline, and the model if none is named.
            rescale_with_baseline: rescale scores so that unrelated sentences score about 0; needs
                `lang` or `baseline_path`.
            baseline_path: a baseline file of your own, `LAYER,P,R,F`.
            use_fast_tokenizer: use the bundle that was exported with the fast tokenizer's ids, or
                the slow one's; None for the mode of a bundle given by path, and the slow one's by
                name.
            precision: "fp32", "fp16" or "int8": use the bundle that was exported in it; None for
                that of a bundle given by path, and fp32 by name.
            verify: check the digests of the bundle's files even if they seem unchanged, and compare
                the scores of its golden pairs with those at the time of export.
            allow_fp32_baseline: rescale with a baseline that was computed in fp32 even if the
                scores are not.
            long_text: how to treat a text that is longer than the maximum. "truncate" cuts it, as
                bert-score does, and warns. "window" encodes it in overlapping windows of that
                length, so that all of it counts; each token's vector comes from the window in which
                it has most context.
            max_length: the most tokens of a text, or of a window of it, special tokens included, as
                `tokenizer.model_max_length` counts them; at most the model's own maximum, which is
                the default.
            optimize_for: "throughput" runs a batch of texts on each CPU thread. "latency" runs one
                batch on all of them, which then spin for a moment: one pair is faster, but many
                pairs are slower, and so are other programs on the machine.
            matching: which tokens are matched, and how: a `Matching`, or its spec, such as
                "code-bert-score" or "exclude=special".

        Raises:
            InputError: an argument is out of range.
            UnknownModelError, UnknownLayerError, BaselineError: there is no such model, layer or
                baseline.
            BundleError: the bundle is missing or damaged, or does not match its manifest.
            HubError: it cannot be pulled.
            DeviceError, MissingExtraError: the device cannot run the model, or a package for it is
                not installed.
        """
        _refuse("BERTScorer", unknown, ScorerSettings.__annotations__)
        check_positive("batch_size", batch_size)
        check_positive("nthreads", nthreads)
        settings: ScorerSettings = {
            "model_type": model_type,
            "num_layers": num_layers,
            "lang": lang,
            "use_fast_tokenizer": use_fast_tokenizer,
            "precision": precision,
            "long_text": long_text,
            "max_length": max_length,
            "nthreads": nthreads,
            "device": None if device is None else str(device),
            "optimize_for": optimize_for,
            "matching": checked_matching(matching),
        }
        bundle = find_bundle(settings, all_layers=all_layers, verify=verify)
        self._batch_size = batch_size
        self._pipelines = Shared(lambda: Pipeline(bundle, **settings), is_kept=False)
        self._shared_pipeline = self._pipelines.acquire()
        self._is_closed = False
        self._weights: TokenWeights | None = None  # the idf in the references of each call
        self._rescaling = Rescaling()
        if rescale_with_baseline:
            self._rescaling = self._chosen_rescaling(lang, baseline_path, allow_fp32_baseline)
        if verify:
            check_golden(bundle, self._pipeline.encoder)
        self._set_weights(idf, idf_sents)

    @overload
    def score(
        self,
        cands: Cands,
        refs: Refs,
        verbose: bool = ...,
        batch_size: Size = ...,
        return_hash: Literal[False] = ...,
        *,
        contexts: Contexts = ...,
    ) -> Scores: ...

    @overload
    def score(
        self,
        cands: Cands,
        refs: Refs,
        verbose: bool = ...,
        batch_size: Size = ...,
        *,
        return_hash: Literal[True],
        contexts: Contexts = ...,
    ) -> tuple[Scores, str]: ...

    def score(
        self,
        cands: Cands,
        refs: Refs,
        verbose: bool = False,
        batch_size: Size = None,
        return_hash: bool = False,
        *,
        contexts: Contexts = None,
        **unknown: Never,
    ) -> Scores | tuple[Scores, str]:
        """Score candidates against their references.

        Args:
            cands: candidate sentences, encoded by `encode` or not; a `TextInContext` may stand for
                any of them.
            refs: for each candidate one reference, or a list of several, of which the best counts;
                encoded or not.
            verbose: show a progress bar on standard error.
            batch_size: the most texts in one run of the model, for this call.
            return_hash: also return the line of the signature.
            contexts: the context of each candidate and its references, such as the lines or
                sentences before: a text, a list of sentences, or None. It is encoded with the text
                and, by default, not matched; see `Matching.context`. If both are too long for the
                model, the beginning of the context is cut off.

        Returns:
            `Scores`, three float32 arrays (candidates,) that unpack as `P, R, F`, or (layers,
            candidates) with `all_layers`; with `return_hash` a tuple of these and the line of the
            signature.

        Raises:
            InputError: candidates, references and contexts do not pair up, are not strings, or were
                encoded by another model.

        Warns:
            UserWarning: pairs score 0 because a side is empty, or all its tokens are excluded or
                have weight 0; a context is empty; texts were truncated because they are longer than
                the model's maximum; or in more than a tenth of the texts more than a third of the
                tokens are unknown to the model.
        """
        _refuse("score", unknown, ("verbose", "batch_size", "return_hash", "contexts"))
        pairs = collect_pairs(cands, refs, contexts)
        scores, stats = self.score_pairs(pairs, verbose=verbose, batch_size=batch_size)
        stats.warn(self.max_length, stacklevel=2)
        return (scores, str(scores.signature)) if return_hash else scores

    def stream(
        self,
        pairs: Iterable[Pair],
        *,
        verbose: bool | None = False,
        batch_size: int | None = None,
        max_seconds: float | None = None,
        **unknown: Never,
    ) -> Generator[Score, None, None]:
        """Score pairs one after the other.

        The memory that it takes does not depend on their number.

        Args:
            pairs: a candidate and its reference, or a list of references, each; a text may be a
                `TextInContext`. They are read in the calling thread, about a thousand ahead. If idf
                weights come from the references, they are read twice, and so must be a list or
                another iterable that can be read again, not an iterator.
            verbose: show a progress bar on standard error; None for one that appears after 2
                seconds, on a terminal.
            batch_size: the most texts in one run of the model.
            max_seconds: about the longest time without a score, where the model is slow; pairs are
                then scored fewer at a time, with more padding. None for any.

        Yields:
            The `Score` of each pair, in their order, which unpacks as `P, R, F`. If a pair is
            invalid, or the iterable raises an error, the scores of the pairs before it come first.

        Raises:
            InputError: a pair is not a candidate with its references.
            IdfError: idf weights come from the references, which are read from an iterator.
        """
        _refuse("stream", unknown)
        if self._weights is None and isinstance(pairs, Iterator):
            raise IdfError(
                "A stream cannot compute idf weights from the references of an iterator, which "
                "can be read only once. Give an iterable that can be read again, such as a list; "
                "or call compute_idf first, or give idf_sents, or a table."
            )
        # as they are now, though the scores are computed later
        fixed_weights = self._weights
        max_items = self._max_items(batch_size)

        def scores() -> Generator[Score, None, None]:
            total = len(pairs) if isinstance(pairs, Sized) else None
            stats = TextStats()
            weights = fixed_weights
            if weights is None:
                references = (chunk.references for chunk in read_pairs(pairs))
                weights = self._idf_of(references, "references")
            with progress_bar(total, shown=verbose) as advance:
                chunks = self._pipeline.score(
                    read_pairs(pairs),
                    weights,
                    max_items=max_items,
                    advance=advance,
                    max_seconds=max_seconds,
                )
                for chunk_scores, chunk_stats in chunks:
                    stats += chunk_stats
                    yield from self._finish(chunk_scores).each()
            stats.warn(self.max_length, stacklevel=2)

        return scores()

    def score_frame(
        self,
        frame: Frame,
        candidate: ColumnName | None = None,
        reference: ColumnName | Sequence[ColumnName] | None = None,
        *,
        context: ColumnName | None = None,
        names: Sequence[str] = SCORE_NAMES,
        errors: Errors = "raise",
        verbose: bool | None = False,
        **unknown: Never,
    ) -> Frame:
        """Score the rows of a data frame, and return it with further columns.

        Args:
            frame: a DataFrame of pandas or polars, a `pyarrow.Table`, a `datasets.Dataset`, or a
                dict of columns.
            candidate: the name of the column of candidates, or its number where columns have
                numbers; None for the column with a usual name, such as `candidate`.
            reference: the name of the column of references, a text or a list of texts per row; or
                several names; None for the columns with a usual name, such as `reference` and
                `reference2`.
            context: the name of a column of contexts, a text or a list of sentences per row, as for
                `score`.
            names: the names of the columns of precision, recall and F1; with a fourth name, a
                further column marks rows with a truncated text, and another, `unknown`, has the
                share of unknown tokens as in `Scores`.
            errors: how to handle a row with a null, or with something other than texts: "raise" for
                an InputError with its number, counted from 0, "null" for nulls as its scores and a
                further column `error` with the reason. If idf weights come from the references,
                those of such rows count too, so that a missing candidate does not change the scores
                of other rows.
            verbose: show a progress bar on standard error; None for one that appears after 2
                seconds, on a terminal.

        Returns:
            A frame of the same kind with the same columns, and after them the scores, float32; if a
            row has several references, also `best_reference`, the position of the one with the best
            F. With `all_layers`, each is a list over the layers. The given frame is not changed.

        Raises:
            InputError: a column is missing, or has the name of one that is to be added; `names` are
                not three or four different ones; or a row cannot be scored.
            InputTypeError: the frame is of another kind.
        """
        from bertscore_onnx.tables.batches import adapt
        from bertscore_onnx.tables.score_columns import ScoreColumns

        _refuse(
            "score_frame",
            unknown,
            ("candidate", "reference", "context", "names", "errors", "verbose"),
        )
        score_names = check_score_names(names)
        adapter = adapt(frame, "The frame")
        texts = text_columns(candidate, reference, context)
        found = texts.find(adapter.names, "The frame")
        rows = RowReader(errors).read(found, adapter.values)
        has_several = any(len(pair[1]) > 1 for pair in rows.pairs)
        all_layers = self.signature.layer == "all"
        columns = ScoreColumns(all_layers, errors, score_names, has_several)
        check_free(adapter.names, columns.names, "The frame", ("drop it",))
        candidates = [pair[0] for pair in rows.pairs]
        pairs = collect_pairs(candidates, [pair[1] for pair in rows.pairs])
        references = None
        if rows.pairs and rows.unscored_references:
            scored = [reference for pair in rows.pairs for reference in pair[1]]
            references = singles([*scored, *rows.unscored_references])
        scores, stats = self.score_pairs(pairs, verbose=verbose, references=references)
        stats.warn(self.max_length, stacklevel=2)
        signature = scores.signature or self.signature
        values = columns.values(list(scores.each()), rows.reasons)
        return adapter.with_scores(columns, values, signature)

    def encode(self, texts: Iterable[Reference]) -> EncodedTexts:
        """Encode texts once, to score them many times.

        Args:
            texts: strings, or lists of strings, each the references of one candidate.

        Returns:
            The encoded texts; `score` and `pairwise` of the same model take them in place of the
            strings.

        Raises:
            InputError: something is not a string.
        """
        encoded, stats = self.encode_items(collect_items(texts, "texts"))
        stats.warn(self.max_length, stacklevel=2)
        return encoded

    def pairwise(
        self, cands: Iterable[str] | EncodedTexts, refs: Iterable[str] | EncodedTexts
    ) -> Scores:
        """Score every candidate against every reference.

        This is for minimum Bayes risk decoding, or to find duplicates.

        Args:
            cands: candidate sentences, encoded by `encode` or not.
            refs: reference sentences, encoded or not; each stands for itself.

        Returns:
            `Scores` of three float32 arrays (cands, refs), or (layers, cands, refs) with
            `all_layers`; `best_reference` is (cands,), or (layers, cands); 0 if there are no
            references. `truncated` is (cands, refs).

        Raises:
            InputError: something is not a string.
        """
        candidates = collect_single(cands, "cands")
        references = collect_single(refs, "refs")
        check_no_context(Pairs(candidates, references).texts, "`pairwise`")
        known: TokenisedTexts = {}
        weights = self.weights_for(references, known)
        encoded, stats = self._pipeline.encode([candidates, references], known)
        precision, recall, f1 = match_matrix(encoded[0], encoded[1], weights, self.matching.beta)
        stats.warn(self.max_length, stacklevel=2)
        best = np.zeros(f1.shape[:2], dtype=np.int64)
        if len(references):
            best = f1.argmax(axis=2)
        candidate_truncated, reference_truncated = (
            side.is_truncated[side.rows] for side in encoded
        )
        truncated = candidate_truncated[:, None] | reference_truncated
        candidate_unknown, reference_unknown = (side.unknown[side.rows] for side in encoded)
        unknown = np.maximum(candidate_unknown[:, None], reference_unknown)
        return self._finish(Scores(precision, recall, f1, best, truncated, unknown))

    def compute_idf(self, sents: Iterable[str]) -> None:
        """Compute idf weights from sentences, usually all references.

        The weights replace any earlier ones.

        Args:
            sents: the n sentences, duplicates included; read a few at a time and not kept in
                memory. As in bert-score, a token in all of them weighs 0, and one in none of them
                ln(n + 1), even if n is 1.

        Raises:
            InputError: one of them is not a string.
            IdfError: there is no sentence.
        """
        if not self._uses_idf:
            warnings.warn("idf weights have no effect without idf=True.", UserWarning, stacklevel=2)
            return
        self._weights = self._idf_of(read_items(sents, "sents"))

    def with_idf(self, idf: Idf, idf_sents: Iterable[str] | None = None) -> Self:
        """Return a scorer with other token weights that shares this one's model.

        Args:
            idf: False for equal weights; else as for the constructor.
            idf_sents: sentences to compute idf weights from.

        Raises:
            IdfError: the weights cannot be computed.
        """
        scorer = self.shared()
        try:
            scorer._set_weights(idf, idf_sents)
        except BaseException:
            scorer.close()
            raise
        return scorer

    def with_rescaling(
        self,
        lang: str | None = None,
        baseline_path: StrPath | None = None,
        *,
        allow_fp32_baseline: bool = False,
    ) -> Self:
        """Return a scorer with another rescaling that shares this one's model.

        Args:
            lang, baseline_path, allow_fp32_baseline: as for the constructor; with neither language
                nor file scores stay raw.

        Raises:
            BaselineError: there is no such baseline.
        """
        is_raw = lang is None and baseline_path is None
        rescaling = (
            Rescaling()
            if is_raw
            else self._chosen_rescaling(lang, baseline_path, allow_fp32_baseline)
        )
        scorer = self.shared()
        scorer._rescaling = rescaling
        return scorer

    def unrelated_scores(self, lang: str | None = None) -> Float64Array | None:
        """Return the F of random pairs of texts, on the scale of this scorer.

        These are evenly spaced quantiles, lowest first, (quantiles,), or (layers, quantiles) with
        `all_layers`; None if `bertscore-onnx baseline` has not measured 100 or more with this
        bundle in this precision, or with idf or another matching. `lang` chooses among several
        languages; the default is the language of the rescaling, or the only one.
        """
        return random_pairs_f1(self.manifest, self.signature, self._rescaling, lang)

    def match(self, candidate: str, reference: str | Iterable[str]) -> "TokenMatches":
        """Match the tokens of a candidate with those of its reference.

        Args:
            candidate: the text.
            reference: one text, or a list of several, of which the result shows the best.

        Returns:
            `TokenMatches`, which `print` and notebooks show: which tokens match, and how similar
            they are.

        Raises:
            InputError: a text is not a string, there is no reference, or the scorer scores all
                layers.
        """
        from bertscore_onnx.similarity import TokenMatches, pair_similarities

        check_string(candidate, "candidate")
        given = [reference] if isinstance(reference, str) else reference
        references = tuple(collect_strings(given, "reference"))
        if not references:
            raise InputError("There is no reference; expected one text, or a list of at least one.")
        pairs = [(candidate, text) for text in references]
        similarities = pair_similarities(self, self._token_names, pairs)
        self.tokenise(Pairs(singles([candidate]), singles(references)))[1].warn(
            self.max_length, stacklevel=2
        )
        return TokenMatches(candidate, references, tuple(similarities), self.signature)

    def plot_example(self, candidate: str, reference: str, fname: StrPath = "") -> None:
        """Draw the similarity of every two tokens of a candidate and a reference.

        Special tokens are left out. Similarities are rescaled by the baseline of F if scores are.
        Idf weights stand beside the tokens, unless they come from the references of each call: a
        single pair has none. The drawing is shown if there is a screen.

        Args:
            candidate, reference: the texts; each needs a token.
            fname: a file to save the drawing to, such as `match.png` or `match.svg`; "" for none.

        Raises:
            MissingExtraError: matplotlib is not installed.
            InputError: a text has no token; the format is unknown, or the file cannot be written;
                or the scorer scores all layers, while a drawing shows one.
        """
        from bertscore_onnx.similarity import pair_similarities
        from bertscore_onnx.similarity.drawing import plot_matches

        weighted = self.with_idf(False) if self._weights is None else nullcontext(self)
        with weighted as scorer:
            [similarities] = pair_similarities(scorer, self._token_names, [(candidate, reference)])
        self.tokenise(Pairs(singles([candidate]), singles([reference])))[1].warn(
            self.max_length, stacklevel=2
        )
        plot_matches(similarities, fname)

    @cached_property
    def _token_names(self) -> "TokenNames":
        from bertscore_onnx.similarity import TokenNames

        return TokenNames(self.bundle)

    def close(self) -> None:
        """Stop using the model; this scorer cannot score again.

        The model is released with the last scorer that shares it.
        """
        if not self._is_closed:
            self._is_closed = True
            self._pipelines.release(self._shared_pipeline)

    @property
    def model_type(self) -> str:
        """The name of the model."""
        return self.manifest.model_id

    @property
    def num_layers(self) -> int:
        """The layer that token embeddings are taken from.

        The last if every layer is scored.
        """
        return self.manifest.num_layers

    @property
    def signature(self) -> Signature:
        """Everything that can change a digit of a score.

        `str()` of it is the line to print.
        """
        return self._signature("references" if self._weights is None else self._weights.name)

    def _signature(self, idf: str) -> Signature:
        """Return the signature of scores by weights of this name."""
        manifest = self.manifest
        pipeline = self._shared_pipeline
        versions = [
            engine_version(pipeline.encoder.session.provider),
            f"tokenizers-{tokenizers.__version__}",
            f"numpy-{np.__version__}",
        ]
        return Signature(
            model=manifest.model_id,
            layer="all" if manifest.all_layers else manifest.num_layers,
            idf=idf,
            rescale=self._rescaling.name,
            tokenizer=pipeline.tokenizer.description,
            long_text=pipeline.tokenizer.long_text,
            max_length=pipeline.max_length,
            precision=pipeline.encoder.precision,
            bundle=manifest.digest[:12],
            matching=pipeline.matching_spec,
            libraries="+".join(versions),
        )

    def signature_of(self, pairs: Pairs) -> Signature:
        """Return the signature of the scores of these pairs."""
        return _of_pairs(self.signature, pairs.references.counts, in_context=pairs.are_in_context)

    @property
    def hash(self) -> str:
        """The line of the `signature`, under bert-score's name for it."""
        return str(self.signature)

    @property
    def bundle(self) -> Bundle:
        """The loaded bundle.

        The method `check_unchanged` of the bundle raises an error if its files were replaced.
        """
        return self._shared_pipeline.bundle

    @property
    def manifest(self) -> Manifest:
        """The manifest of the bundle: the facts of the model."""
        return self._shared_pipeline.manifest

    @property
    def provider(self) -> str:
        """What runs the model: an execution provider of ONNX Runtime, or OpenVINO."""
        return self._shared_pipeline.encoder.provider

    @property
    def max_length(self) -> int:
        """The most tokens of a text, or of a window of it.

        Special tokens are included.
        """
        return self._shared_pipeline.tokenizer.max_length

    @property
    def matching(self) -> Matching:
        """Which tokens are matched, and how."""
        return self._shared_pipeline.matching.matching

    @property
    def rescaling(self) -> Rescaling:
        """The rescaling of raw scores."""
        return self._rescaling

    # What other parts of the library call: texts that were checked already, and statistics instead
    # of warnings.

    def score_pairs(
        self,
        pairs: Pairs,
        *,
        verbose: bool | None = False,
        batch_size: int | None = None,
        references: Side | None = None,
    ) -> tuple[Scores, TextStats]:
        """Score pairs from `collect_pairs`.

        Return scores with their signature, and statistics that `score` warns of.

        Idf weights of references are computed from `references`, or from the references of the
        pairs.
        """
        max_items = self._max_items(batch_size)
        counts = pairs.references.counts
        with progress_bar(len(counts), shown=verbose) as advance:
            known: TokenisedTexts = {}
            if references is None:
                references = pairs.references
            weights = self.weights_for(references, known)
            parts = []
            stats = TextStats()
            chunks = self._pipeline.score(
                pairs.slices(), weights, max_items=max_items, advance=advance, known=known
            )
            for scores, chunk_stats in chunks:
                parts.append(scores)
                stats += chunk_stats
        joined = self._finish(join_scores(parts, self._shared_pipeline.num_layers))
        joined.signature = _of_pairs(
            self._signature(weights.name), counts, in_context=pairs.are_in_context
        )
        joined.worst = self._rescaling.worst
        return joined, stats

    def tokenise(self, pairs: Pairs) -> tuple[Pairs, TextStats]:
        """Tokenise pairs before they are scored.

        Return them with their token ids, and statistics of their texts.
        """
        return self._shared_pipeline.tokenise(pairs)

    def encode_items(self, items: Side) -> tuple[EncodedTexts, TextStats]:
        """Encode texts that `collect_items` has checked.

        Return statistics of them, too, which `encode` warns of.
        """
        check_no_context(items.texts, "`encode`")
        [encoded], stats = self._pipeline.encode([items])
        return encoded, stats

    def weights_for(self, references: Side, known: TokenisedTexts | None = None) -> TokenWeights:
        """Return the token weights for a call with these references.

        The weights are the scorer's own, or the idf in the references. Texts that are tokenised for
        the idf are added to `known`.
        """
        if self._weights is not None:
            return self._weights
        if not len(references):
            return replace(uniform(self.manifest), name="references")
        return self._idf_of(slices_of(references), "references", known)

    def with_fixed_weights(self, references: Iterable[Reference]) -> Self:
        """Return a scorer that keeps the token weights of a call.

        The call is one with these references; the scorer shares the model.
        """
        if self._weights is not None:
            return self.shared()
        return self.with_idf(self._pipeline.count_documents(read_items(references, "references")))

    def warm_up(self) -> None:
        """Prepare the device for every shape of a run, so that no later call waits.

        A CPU needs none of this. On CUDA this takes seconds: cuDNN plans its kernels for each
        shape, in each thread that runs the model.
        """
        self._pipeline.encoder.warm_up()

    def release_memory(self) -> None:
        """Return to the system the memory that only large texts need.

        This helps for example when a process becomes idle.
        """
        self._pipeline.encoder.release_memory()

    def shared(self) -> Self:
        """Return a scorer with the same settings that shares the model.

        The caller closes it.
        """
        self._check_open()
        scorer = object.__new__(type(self))
        scorer.__dict__.update(self.__dict__, _shared_pipeline=self._pipelines.acquire())
        return scorer

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied."""
        raise InputTypeError(
            "A BERTScorer cannot be pickled or copied: its sessions belong to one process. Send "
            "the path of the bundle and make a scorer in each process."
        )

    def __repr__(self) -> str:
        """Name the scorer by its signature."""
        state = "closed, " if self._is_closed else ""
        return f"BERTScorer({state}{self.signature}, provider={self.provider})"

    @property
    def _pipeline(self) -> Pipeline:
        """The pipeline, unless this scorer was closed."""
        self._check_open()
        return self._shared_pipeline

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("The scorer was closed. Make a new one.")

    def _set_weights(self, idf: Idf, idf_sents: Iterable[str] | None) -> None:
        self._uses_idf = not isinstance(idf, bool) or idf
        self._weights = None if self._uses_idf else uniform(self.manifest)
        if not isinstance(idf, bool):
            given = idf_given(idf, self.manifest, self._pipeline.tokenization)
            self._weights = given or uniform(self.manifest)
        if idf_sents is not None:
            self.compute_idf(idf_sents)

    def _chosen_rescaling(
        self, lang: str | None, path: StrPath | None, allow_fp32_baseline: bool
    ) -> Rescaling:
        if path is None and not self.matching.is_default:
            raise BaselineError(
                f"The baselines of bundles are for the default matching, and these scores are for "
                f"{self.matching}. Give a file of your own with ",
                Argument("baseline_path"),
                ", or leave rescaling off.",
            )
        precision = self._pipeline.encoder.precision
        return choose_rescaling(
            self.manifest, precision, lang, path, allow_fp32_baseline=allow_fp32_baseline
        )

    def _finish(self, scores: Scores) -> Scores:
        """Rescale scores, (layers, …), and drop the axis of a single layer."""
        return self._rescaling.apply(scores if self.manifest.all_layers else scores.of_layer(0))

    def _max_items(self, batch_size: int | None) -> int | None:
        if batch_size is None:
            return self._batch_size
        check_positive("batch_size", batch_size)
        return batch_size

    def _idf_of(
        self, slices: Iterable[Side], name: str = "", known: TokenisedTexts | None = None
    ) -> TokenWeights:
        pipeline = self._pipeline
        weights_of = idf_of_references if name else idf_of_counts
        return weights_of(
            pipeline.count_documents(slices, known), self.manifest, pipeline.tokenization, name
        )
