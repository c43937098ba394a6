"""Scores for many callers, and on many machines.

`batcher` and `http` serve callers; `jobs` scores on many machines.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["CountBatch", "MicroBatcher", "ScoreBatch"]

_MODULES = {
    "CountBatch": "jobs.batches",
    "MicroBatcher": "batcher.batcher",
    "ScoreBatch": "jobs.batches",
}

if TYPE_CHECKING:
    from bertscore_onnx_service.batcher.batcher import MicroBatcher
    from bertscore_onnx_service.jobs.batches import CountBatch, ScoreBatch
else:  # hidden from type checkers, to which every name would be a member

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used.

        A server needs no job, and a job no server.
        """
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List the public names and all names that were imported already."""
        return sorted({*globals(), *__all__})
