"""What was measured of unrelated pairs: their mean scores at each layer, and how far these can be trusted."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from bertscore_onnx.bundle.catalogue import Baseline


@dataclass(frozen=True, slots=True)
class LayerBaseline:
    """What unrelated pairs scored at one layer."""

    layer: int
    """Its number; 0 is the embeddings."""

    mean: Baseline
    """The mean of P, of R and of F."""

    standard_error: Baseline
    """Of each of these means."""

    f1_quantiles: tuple[float, ...]
    """F at 0 %, 1 %, … 100 % of the pairs, in ascending order."""


@dataclass(frozen=True, slots=True)
class MeasuredBaseline:
    """What unrelated pairs scored with one bundle."""

    signature: str
    """How the scores were made."""

    precision: str
    """Their compute precision."""

    num_pairs: int
    seed: int

    max_words: int
    """Texts had fewer words."""

    layers: tuple[LayerBaseline, ...]
    """Those that the bundle has."""

    @property
    def largest_standard_error(self) -> float:
        """The largest of P, R and F at all layers."""
        return max(max(one.precision, one.recall, one.f1) for one in (layer.standard_error for layer in self.layers))

    def to_csv(self) -> str:
        """Return the means as the baseline file that bert-score and `baseline_path` read: LAYER,P,R,F."""
        rows = ((layer.layer, layer.mean.precision, layer.mean.recall, layer.mean.f1) for layer in self.layers)
        return "LAYER,P,R,F\n" + "".join(f"{layer},{p:.8f},{r:.8f},{f:.8f}\n" for layer, p, r, f in rows)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as what JSON has."""
        return {
            "signature": self.signature,
            "pairs": self.num_pairs,
            "seed": self.seed,
            "max_words": self.max_words,
            "layers": [
                {
                    "layer": layer.layer,
                    **asdict(layer.mean),
                    "standard_error": asdict(layer.standard_error),
                    "f1_quantiles": list(layer.f1_quantiles),
                }
                for layer in self.layers
            ],
        }

    def to_json(self) -> str:
        """Return all of it as one JSON object."""
        return json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False)
