"""Lets `import bert_score` give this library's stand-in, in this process."""

import sys
from pathlib import Path
from types import ModuleType

from bertscore_onnx.compat import bert_score
from bertscore_onnx.compat.bert_score import utils
from bertscore_onnx.errors import StandInError

_MODULES: dict[str, ModuleType] = {
    "bert_score": bert_score,
    "bert_score.score": sys.modules[f"{bert_score.__name__}.score"],  # the package's attribute is the function
    "bert_score.scorer": sys.modules[f"{bert_score.__name__}.scorer"],
    "bert_score.utils": utils,
}


_IMPORT_PATH = str(Path(__file__).with_name("import_path"))
"""A folder in which new processes of `multiprocessing` find the stand-in: they get the search path of this one."""


def install() -> None:
    """Let `import bert_score` give the stand-in from now on, in this process; a second time changes nothing.

    Call it before anything imports bert-score. It holds for the processes that `multiprocessing` starts, too. Packages
    that ask whether the distribution `bert-score` is installed still see what is installed, and so does every other
    program that this one starts.

    Raises:
        StandInError: the true bert-score is imported already, so parts of the program may hold it.
    """
    for name, module in _MODULES.items():
        if sys.modules.get(name, module) is not module:
            raise StandInError(
                f"{name} is imported already, from {getattr(sys.modules[name], '__file__', None)}, and what imported "
                "it would go on with it. Call bertscore_onnx.compat.install() before the first `import bert_score`, or "
                "run the program with `python -m bertscore_onnx.compat`."
            )
    sys.modules.update(_MODULES)
    if _IMPORT_PATH not in sys.path:
        sys.path.insert(1, _IMPORT_PATH)  # behind the folder of the program


def uninstall() -> None:
    """Let `import bert_score` give what is installed again; what imported the stand-in keeps it."""
    for name, module in _MODULES.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    while _IMPORT_PATH in sys.path:
        sys.path.remove(_IMPORT_PATH)
