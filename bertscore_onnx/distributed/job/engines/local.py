"""Does the work of a job in this process, with all of its threads."""

from collections.abc import Iterator, Sequence

from bertscore_onnx.distributed.job.parts import Part
from bertscore_onnx.distributed.job.work import Advance, Result, Work


def run_here(work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
    """Yield the results of all parts, as one task; an `Engine`."""
    return work(parts, advance)
