"""bert-score's `BERTScorer`.

It has the same arguments and properties, and its results behave like tensors.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from functools import cache, cached_property
from typing import Any

import numpy as np

from bertscore_onnx.compat.bert_score.tokenizer import BundleTokenizer
from bertscore_onnx.compat.bert_score.utils import get_hash, look_up
from bertscore_onnx.compat.tensors import as_tensor, as_tensors
from bertscore_onnx.errors import BaselineError
from bertscore_onnx.files import StrPath
from bertscore_onnx.scorer import BERTScorer as OnnxScorer
from bertscore_onnx.text.texts import Reference


class BERTScorer:
    """Scores candidates against references.

    The arguments are those of `bertscore_onnx.BERTScorer`.
    """

    def __init__(
        self,
        model_type: StrPath | None = None,
        num_layers: int | None = None,
        batch_size: int = 64,
        nthreads: int = 4,
        all_layers: bool = False,
        idf: bool | Mapping[int, float] = False,
        idf_sents: Iterable[str] | None = None,
        device: object = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: StrPath | None = None,
        use_fast_tokenizer: bool = False,
    ) -> None:
        """Load a bundle; the arguments are as of `bertscore_onnx.BERTScorer`.

        Args:
            nthreads: has no effect; in bert-score it is the number of processes that tokenise for
                idf.
            device: may also be PyTorch's: the number of a card, "cpu:0", or another accelerator
                such as "mps", for which the CPU scores, with one warning.
        """
        model, layer, known_lang = look_up(model_type, num_layers, lang)
        self._scorer = OnnxScorer(
            model,
            layer,
            batch_size=batch_size,
            all_layers=all_layers,
            idf=idf,
            idf_sents=idf_sents,
            device=device_named(device),
            lang=known_lang,
            rescale_with_baseline=rescale_with_baseline,
            baseline_path=baseline_path,
            # False is the default, and a bundle has its own
            use_fast_tokenizer=use_fast_tokenizer or None,
        )
        self.model_type = str(model)
        self.num_layers = self._scorer.num_layers if layer is None else layer
        self.batch_size = batch_size
        self.nthreads = nthreads
        self.all_layers = all_layers
        self.idf = idf
        self.device = device
        self.lang = lang
        self.rescale_with_baseline = rescale_with_baseline
        self.baseline_path = baseline_path
        self.use_custom_baseline = baseline_path is not None
        self.use_fast_tokenizer = use_fast_tokenizer

    @cached_property
    def _tokenizer(self) -> BundleTokenizer:
        """The tokenizer that programs pass to `get_idf_dict`."""
        return BundleTokenizer(self._scorer.bundle)

    @property
    def baseline_vals(self) -> Any:
        """The baseline of P, R and F, (3,), or (layers, 1, 3) with `all_layers`.

        Raises a BaselineError if there is none.
        """
        if self.lang is None and not self.use_custom_baseline:
            raise BaselineError(
                "A baseline needs the language, `lang`, or a file, `baseline_path`."
            )
        baselines = self._scorer.with_rescaling(self.lang, self.baseline_path).rescaling.baselines
        values = np.array([astuple(baseline) for baseline in baselines], dtype=np.float32)
        return as_tensor(values[:, None] if self.all_layers else values[0])

    @property
    def hash(self) -> str:
        """The line that `get_hash` returns for these settings."""
        return get_hash(
            self.model_type,
            self.num_layers,
            self.idf,
            self.rescale_with_baseline,
            self.use_custom_baseline,
            self.use_fast_tokenizer,
        )

    def compute_idf(self, sents: Iterable[str]) -> None:
        """Weight tokens by their idf in these sentences from now on."""
        self._scorer.compute_idf(sents)

    def score(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        verbose: bool = False,
        batch_size: int = 64,
        return_hash: bool = False,
    ) -> Any:
        """Score candidates against their references.

        It does so as `bertscore_onnx.BERTScorer.score` does.

        Returns:
            P, R and F; with `return_hash` a tuple of these and the hash.
        """
        scores = as_tensors(self._scorer.score(cands, refs, verbose=verbose, batch_size=batch_size))
        return (scores, self.hash) if return_hash else scores

    def plot_example(self, candidate: str, reference: str, fname: str = "") -> None:
        """Draw which tokens match, as `bertscore_onnx.BERTScorer.plot_example` does."""
        self._scorer.plot_example(candidate, reference, fname)

    def __repr__(self) -> str:
        """Name the scorer by its settings."""
        return (
            f"BERTScorer(hash={self.hash}, batch_size={self.batch_size}, nthreads={self.nthreads})"
        )


def device_named(device: object) -> object:
    """Return our name for a device of PyTorch.

    The CPU, with one warning, stands in for an accelerator but CUDA.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    kind, _, index = str(device).partition(":")
    if kind == "cpu" and index.isdecimal():
        return "cpu"
    if kind not in _ACCELERATORS:
        return device
    _warn_of_accelerator(kind)
    return "cpu"


_ACCELERATORS = ("hpu", "ipu", "maia", "mps", "mtia", "npu", "vulkan", "xla", "xpu")
"""PyTorch's names of accelerators that no execution provider here serves."""


@cache
def _warn_of_accelerator(kind: str) -> None:
    warnings.warn(
        f'device "{kind}" is not available. The CPU scores instead.', RuntimeWarning, stacklevel=4
    )
