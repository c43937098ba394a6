"""bert-score's functions `score` and `plot_example`."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from bertscore_onnx import functional
from bertscore_onnx.compat.bert_score.scorer import BERTScorer, device_named
from bertscore_onnx.compat.bert_score.utils import get_hash, look_up, model2layers
from bertscore_onnx.compat.tensors import as_tensors
from bertscore_onnx.errors import BaselineError, one_line
from bertscore_onnx.files import StrPath
from bertscore_onnx.scores import Scores
from bertscore_onnx.text.texts import Reference

__all__ = ["plot_example", "score"]


def score(
    cands: Iterable[str],
    refs: Iterable[Reference],
    model_type: StrPath | None = None,
    num_layers: int | None = None,
    verbose: bool = False,
    idf: bool | Mapping[int, float] = False,
    device: object = None,
    batch_size: int = 64,
    nthreads: int = 4,
    all_layers: bool = False,
    lang: str | None = None,
    return_hash: bool = False,
    rescale_with_baseline: bool = False,
    baseline_path: StrPath | None = None,
    use_fast_tokenizer: bool = False,
) -> Any:
    """Score in a single call, as `bertscore_onnx.score` does.

    It keeps the model for the next call.

    Args:
        device: may also be PyTorch's, as for `BERTScorer`.
        nthreads: has no effect.
        rescale_with_baseline: if there is no baseline for `lang`, scores stay raw, with a line on
            standard error.

    Returns:
        P, R and F; with `return_hash` a tuple of these and the hash.
    """
    model, layer, lang = look_up(model_type, num_layers, lang)

    def call(rescale_with_baseline: bool) -> Scores:
        return functional.score(
            cands,
            refs,
            model,
            layer,
            verbose,
            idf,
            device_named(device),
            batch_size,
            all_layers=all_layers,
            lang=lang,
            rescale_with_baseline=rescale_with_baseline,
            baseline_path=baseline_path,
            use_fast_tokenizer=use_fast_tokenizer or None,
        )

    try:
        scores = call(rescale_with_baseline)
    except BaselineError as error:
        if lang is None:
            raise
        print(f"Warning: {one_line(error)} The scores are not rescaled.", file=sys.stderr)
        scores = call(rescale_with_baseline=False)
    if not return_hash:
        return as_tensors(scores)
    layer = model2layers[str(model)] if layer is None else layer
    has_file = baseline_path is not None
    return as_tensors(scores), get_hash(
        str(model), layer, idf, rescale_with_baseline, has_file, use_fast_tokenizer
    )


def plot_example(
    candidate: str,
    reference: str,
    model_type: StrPath | None = None,
    num_layers: int | None = None,
    lang: str | None = None,
    rescale_with_baseline: bool = False,
    baseline_path: StrPath | None = None,
    use_fast_tokenizer: bool = False,
    fname: str = "",
) -> None:
    """Draw the similarities of the tokens of a candidate and a reference.

    Every token of one is compared with every token of the other.

    Args:
        candidate, reference: the texts.
        fname: a file to save the drawing to; "" for none. The others are as for `BERTScorer`.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    scorer = BERTScorer(
        model_type,
        num_layers,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
        use_fast_tokenizer=use_fast_tokenizer,
    )
    scorer.plot_example(candidate, reference, fname)
