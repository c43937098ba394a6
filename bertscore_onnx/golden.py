"""Recomputes the scores that a bundle was exported with."""

from collections.abc import Mapping
from os import PathLike

import numpy as np

from bertscore_onnx.bundle import read_manifest
from bertscore_onnx.home import Precision
from bertscore_onnx.scorer import BERTScorer

GOLDEN_TOLERANCES: Mapping[Precision, float] = {"fp32": 1e-5, "fp16": 2e-3, "int8": 0.05}
"""The most a golden score may differ from PyTorch's.

Measured on tiny random models of every family: at most 0.001 in fp16 and 0.04 in int8; on MiniLM: 0.0001 and 0.008. A
wrong graph is off by more, but for fp16's fusions, which the export checks in fp32.
"""


def golden_scorer(folder: str | PathLike[str], *, device: object = None) -> BERTScorer:
    """Return a scorer for the golden pairs of a bundle, whose files are all read for their digests.

    Raises:
        BundleError, DeviceError, MissingExtraError: as `BERTScorer` says.
    """
    return BERTScorer(folder, all_layers=read_manifest(folder).all_layers, device=device, verify=True)


def golden_difference(scorer: BERTScorer) -> float:
    """Score a bundle's golden pairs and return the largest absolute difference from the manifest's scores.

    Args:
        scorer: a scorer of the bundle without idf and rescaling, such as `golden_scorer` makes.
    """
    golden = scorer.manifest.golden
    scores = scorer.score([pair.candidate for pair in golden], [pair.reference for pair in golden])
    expected = np.array([(pair.precision, pair.recall, pair.f1) for pair in golden])  # (pairs, 3, layers)
    computed = np.stack([np.atleast_2d(values) for values in scores])  # (3, layers, pairs)
    return float(np.abs(computed - expected.transpose(1, 2, 0)).max(initial=0))
