"""Compares scores with those that a bundle was exported with."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle import Manifest, open_bundle
from bertscore_onnx.errors import GoldenScoreError
from bertscore_onnx.home import Precision
from bertscore_onnx.scores import Scores

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer

GOLDEN_TOLERANCES: Mapping[Precision, float] = {"fp32": 1e-5, "fp16": 2e-3, "int8": 0.05}
"""The most a golden score may differ from PyTorch's.

Measured on tiny random models of every family: at most 0.001 in fp16 and 0.04 in int8; on MiniLM: 0.0001 and 0.008. A
wrong graph is off by more, but for fp16's fusions, which the export checks in fp32.
"""

_TOLERANCES_OF_DEVICES = {"bf16": 0.05}
"""The same for arithmetic that a device brings in."""


def golden_scorer(folder: str | PathLike[str], *, device: object = None) -> "BERTScorer":
    """Return a scorer for the golden pairs of a bundle, whose files are all read for their digests.

    The pairs are not scored yet.

    Raises:
        BundleError, DeviceError, MissingExtraError: as `BERTScorer` says.
    """
    from bertscore_onnx.scorer import BERTScorer  # which imports this module

    manifest = open_bundle(folder, verify=True).manifest
    return BERTScorer(folder, all_layers=manifest.all_layers, device=device)


def golden_difference(scorer: "BERTScorer") -> float:
    """Score a bundle's golden pairs and return the largest absolute difference from the manifest's scores.

    Args:
        scorer: a scorer of the bundle without idf and rescaling, such as `golden_scorer` makes.
    """
    golden = scorer.manifest.golden
    scores = scorer.score([pair.candidate for pair in golden], [pair.reference for pair in golden])
    return _difference(scorer.manifest, np.stack([np.atleast_2d(values) for values in scores]))


def check_golden(manifest: Manifest, scores: Scores, *, precision: str) -> None:
    """Compare the scores of all golden pairs with the manifest's.

    Args:
        manifest: the manifest.
        scores: the raw scores of its pairs, (layers, pairs).
        precision: the arithmetic they were computed in, which on some devices is not that of the bundle.

    Raises:
        GoldenScoreError: they differ by more than the precision explains, or there are none to compare.
    """
    if not manifest.golden:
        raise GoldenScoreError("The bundle has no golden scores to be verified by. Export the model again.")
    difference = _difference(manifest, np.stack(list(scores)))
    tolerance = max(GOLDEN_TOLERANCES[manifest.precision], _TOLERANCES_OF_DEVICES.get(precision, 0.0))
    if not difference <= tolerance:
        raise GoldenScoreError(
            f"The golden scores of {manifest.model_id} differ by {difference:.1e} from those it was exported with; at "
            f"most {tolerance:.0e} is expected in {precision}. Export the model again, or copy the bundle anew."
        )


def _difference(manifest: Manifest, computed: NDArray[np.float32]) -> float:
    """Return the largest absolute difference of scores, (3, layers, pairs), from the manifest's."""
    expected = np.array([(pair.precision, pair.recall, pair.f1) for pair in manifest.golden])  # (pairs, 3, layers)
    return float(np.abs(computed - expected.transpose(1, 2, 0)).max(initial=0))
