"""Does the work of a job on Ray, task by task; a task whose process dies is done again."""

from collections import deque
from collections.abc import Iterator, Sequence

from bertscore_onnx.distributed.job.engines.tasks import cut_tasks
from bertscore_onnx.distributed.job.parts import Part
from bertscore_onnx.distributed.job.work import Advance, Result, Work
from bertscore_onnx.errors import BertScoreOnnxError, check_installed

NUM_CPUS = 4
"""The CPUs of a task, where nothing else is asked for: each process has the model's weights in memory once."""

MAX_RETRIES = 3
"""How often a task is done again whose process died."""


class RayEngine:
    """The Ray cluster that this process is connected to, or `RAY_ADDRESS` names; else one that starts here."""

    def __init__(self, nthreads: int | None, device: object) -> None:
        """Take what a task needs.

        Args:
            nthreads: its CPUs; None for `NUM_CPUS`, or all of a smaller machine.
            device: the scorer's; a task has a GPU of its own where that is one.

        Raises:
            MissingExtraError: Ray is not installed.
        """
        check_installed(["ray"], "ray,cpu", "Scoring on Ray")
        self._nthreads = nthreads
        self._num_gpus = int(str(device).startswith("cuda"))

    def __call__(self, work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield the results of all parts, in any order; an `Engine`.

        After an error the tasks under way go on, two for each worker at most, until they or this process end: where one
        is done at the moment when it is cancelled, Ray 2.60 aborts this process.
        """
        import ray

        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        cpus_of_nodes = [int(node["Resources"]["CPU"]) for node in ray.nodes() if "CPU" in node["Resources"]]
        num_cpus = self._nthreads or min([NUM_CPUS, *cpus_of_nodes])
        num_workers = max(1, int(ray.cluster_resources().get("CPU", 1)) // num_cpus)
        do = ray.remote(num_cpus=num_cpus, num_gpus=self._num_gpus, max_retries=MAX_RETRIES, max_calls=0)(_do)
        shared = ray.put(work)
        unsent = deque(cut_tasks(parts, num_workers))
        sent: dict[object, int] = {}
        while unsent or sent:
            while unsent and len(sent) < 2 * num_workers:
                task = unsent.popleft()
                sent[do.remote(shared, task)] = sum(part.rows for part in task)
            [done], _ = ray.wait(list(sent), num_returns=1)
            outcome = ray.get(done)
            if isinstance(outcome, BertScoreOnnxError):
                raise outcome
            advance(sent.pop(done))
            yield from outcome


def _do(work: Work[Result], parts: Sequence[Part]) -> list[Result] | BertScoreOnnxError:
    """Return the results of a task, or what went wrong: an error of ours is no reason to try again."""
    try:
        return list(work(parts, lambda rows: None))
    except BertScoreOnnxError as error:
        return error
