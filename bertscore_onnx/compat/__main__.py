"""Programs that import bert-score, unchanged on this library.

`python -m bertscore_onnx.compat` runs them.
"""

import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from bertscore_onnx.compat.stand_in import install

USAGE = """usage: python -m bertscore_onnx.compat SCRIPT [ARGUMENT ...]
       python -m bertscore_onnx.compat [-m] MODULE [ARGUMENT ...]

Run a Python program in which `import bert_score` imports bertscore-onnx. SCRIPT may be an \
installed command,
such as "$(command -v lm_eval)". This includes processes of `multiprocessing`; other programs that \
it starts import
what is installed."""


_COMMANDS = {"bert-score": "bertscore-onnx score", "bert-score-show": "bertscore-onnx show"}
"""The commands of bert-score, which exist only if it is installed, and our commands with the same
options.
"""


def main() -> None:
    """Run the program that the command line names, with the arguments after its name."""
    match sys.argv[1:]:
        case ["-h" | "--help", *_]:
            print(USAGE)
        case ["-m", module, *arguments]:
            _run_module(module, arguments)
        case [program, *arguments] if os.path.isfile(program):
            install()
            sys.argv = [program, *arguments]
            if not sys.flags.safe_path:
                sys.path[0] = str(Path(program).absolute().parent)
            runpy.run_path(program, run_name="__main__")
        case [module, *arguments] if not module.startswith("-"):
            _run_module(module, arguments)
        case _:
            print(USAGE, file=sys.stderr)
            sys.exit(2)


def _run_module(name: str, arguments: list[str]) -> None:
    try:
        is_there = find_spec(name) is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        advice = (
            f"use `{_COMMANDS[name]}` in its place"
            if name in _COMMANDS
            else "expected a Python program"
        )
        print(f"{name!r} is neither a file nor a module; {advice}.\n{USAGE}", file=sys.stderr)
        sys.exit(2)
    install()
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
