"""Hides the messages of the libraries that the export uses.

Their progress bars are hidden too.
"""

import logging
import warnings

from transformers.utils import logging as transformers_logging

_FUSIONS = (
    "fusion_attention",
    "fusion_base",
    "fusion_utils",
    "onnx_model",
    "onnxruntime.transformers",
)
"""The loggers of ONNX Runtime's optimizer; some are not named after its package."""

_LOGGERS = ("huggingface_hub", "onnx_ir", "onnxscript", "optimum", "torch", *_FUSIONS)


def quiet_libraries() -> None:
    """Hide the libraries' progress bars and messages.

    Messages of errors are still shown.
    """
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", module="bertscore_onnx")
