"""The library in place of bert-score.

`install` makes `import bert_score` import the drop-in replacement, in this process.
"""

import sys
from pathlib import Path
from types import ModuleType

from bertscore_onnx.compat import bert_score
from bertscore_onnx.compat.bert_score import utils
from bertscore_onnx.errors import StandInError

_MODULES: dict[str, ModuleType] = {
    "bert_score": bert_score,
    # the package's attribute is the function
    "bert_score.score": sys.modules[f"{bert_score.__name__}.score"],
    "bert_score.scorer": sys.modules[f"{bert_score.__name__}.scorer"],
    "bert_score.utils": utils,
}


_IMPORT_PATH = str(Path(__file__).with_name("import_path"))
"""A folder in which new processes of `multiprocessing` find the replacement: they inherit our
search path.
"""


def install() -> None:
    """Make `import bert_score` import this library, in this process.

    It does so from now on; a second call changes nothing. Call it before anything imports
    bert-score. It also applies to processes that `multiprocessing` starts. Packages that check
    whether the distribution `bert-score` is installed still see the installed one, and so do other
    programs that this one starts.

    Raises:
        StandInError: the original bert-score is imported already, so parts of the program may use
            it.
    """
    for name, module in _MODULES.items():
        if sys.modules.get(name, module) is not module:
            raise StandInError(
                f"{name} is imported already, from "
                f"{getattr(sys.modules[name], '__file__', None)}, and what imported it would keep "
                "it. Call bertscore_onnx.compat.install() before the first `import bert_score`, "
                "or run the program with `python -m bertscore_onnx.compat`."
            )
    sys.modules.update(_MODULES)
    if _IMPORT_PATH not in sys.path:
        sys.path.insert(1, _IMPORT_PATH)  # behind the folder of the program


def uninstall() -> None:
    """Make `import bert_score` import the installed package again.

    Modules that imported the replacement keep it.
    """
    for name, module in _MODULES.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    while _IMPORT_PATH in sys.path:
        sys.path.remove(_IMPORT_PATH)
