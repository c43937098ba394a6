"""`score()`: BERTScore in a single call."""

from collections.abc import Iterable, Mapping
from os import PathLike

from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.encoding.passages import LongText
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Reference, collect_pairs


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
    precision: Precision | None = None,
    allow_fp32_baseline: bool = False,
    long_text: LongText = "truncate",
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
        precision=precision,
        long_text=long_text,
        allow_fp32_baseline=allow_fp32_baseline,
    ) as scorer:
        scores, counts = scorer.score_pairs(collect_pairs(cands, refs), verbose=verbose)
        counts.warn(scorer.max_length, stacklevel=2)
        return (scores, scorer.hash) if return_hash else scores
