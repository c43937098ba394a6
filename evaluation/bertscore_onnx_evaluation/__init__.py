"""Compare systems by their scores, and metrics by human judgements; needs the extra `evaluation`.

What users call can be imported from here, and is loaded with the first use of any of it; `public` lists it. Further
functions and the records inside results are in the modules.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertscore_onnx_evaluation.public import *  # noqa: F403 -- with the types of all of it
else:  # hidden from type checkers, to which every name would be a member

    def __getattr__(name: str) -> object:
        """Return a public name; raise AttributeError with the module of another name."""
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = import_module(f"{__name__}.public")
        if name == "__all__" or name in public.__all__:
            return getattr(public, name)
        for module in [*sys.modules]:
            found = getattr(sys.modules[module], name, None) if module.startswith(f"{__name__}.") else None
            if getattr(found, "__module__", None) == module:
                raise AttributeError(f"{name} is in {module}: `from {module} import {name}`.")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
