"""Keeps the libraries of the export from talking where a user reads."""

import logging
import warnings

from transformers.utils import logging as transformers_logging

_FUSIONS = ("fusion_attention", "fusion_base", "fusion_utils", "onnx_model", "onnxruntime.transformers")
"""The loggers of ONNX Runtime's optimizer, whose modules are not named after its package."""

_TALKERS = ("huggingface_hub", "optimum", "torch", *_FUSIONS)


def quiet_libraries() -> None:
    """Hide the progress bars of the libraries the export stands on, and their messages below an error."""
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", module="bertscore_onnx")
