"""The cases, by their number: a title, and the function that measures it in a process of its own."""

from collections.abc import Callable

from harness.results import Figure
from reliability.cases import batched, faults, jobs, overload, processes, served, shapes, shared, starvation, stopping
from reliability.cases.adversary import case as adversary
from reliability.cases.damage import case as damage
from reliability.cases.fuzzing import case as fuzzing
from reliability.cases.mutated import case as mutated
from reliability.settings import Settings

CASES: dict[str, tuple[str, Callable[[Settings], list[Figure]]]] = {
    "1": ("batching", batched.measure),
    "2": ("overload", overload.measure),
    "3": ("faults", faults.measure),
    "4": ("memory", shapes.measure),
    "5": ("threads", shared.measure),
    "6": ("stopping", stopping.measure),
    "7": ("processes", processes.measure),
    "8": ("damage", damage.measure),
    "9": ("fuzzing", fuzzing.measure),
    "10": ("serving", served.measure),
    "11": ("adversary", adversary.measure),
    "12": ("starvation", starvation.measure),
    "13": ("mutated bundles", mutated.measure),
    "14": ("jobs", jobs.measure),
}
