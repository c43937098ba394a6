"""Keeps the libraries of the export from talking where a user reads."""

import logging
import warnings

from transformers.utils import logging as transformers_logging

_TALKERS = ("huggingface_hub", "optimum", "torch")


def quiet_libraries() -> None:
    """Hide the progress bars of the libraries the export stands on, and their messages below an error."""
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", module="bertscore_onnx")
