"""The command line, as `bertscore-onnx` and as `python -m bertscore_onnx`."""

import os
import signal
from contextlib import suppress
from types import FrameType


def main() -> None:
    """Run the command line.

    Its imports take a moment in which a user may interrupt it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it is not ignored
        signal.signal(signal.SIGINT, _interrupt)
    from bertscore_onnx import cli

    cli.main()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise a KeyboardInterrupt inside a command.

    Elsewhere, and while a module is imported, end the process.

    Native modules that are being imported would turn the KeyboardInterrupt into other errors.
    """
    callers = []
    while frame is not None:
        callers.append(frame.f_code)
        frame = frame.f_back
    is_in_command = any(code.co_qualname == "Commands.invoke" for code in callers)
    is_importing = any(code.co_filename.startswith("<frozen importlib") for code in callers)
    if is_in_command and not is_importing:
        raise KeyboardInterrupt
    with suppress(OSError):  # standard error is closed
        os.write(2, b"Interrupted.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
