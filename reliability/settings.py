"""The sizes and the bundles of a run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the cases; the defaults are the short form."""

    case_seconds: float = 600  # after which a case counts as hanging
    requests: int = 400  # of mixed lengths, to a batcher
    clients: int = 32
    overload_seconds: float = 8
    calm_seconds: float = 4  # to measure the throughput without overload
    faults: int = 20
    shapes: int = 60  # runs of the graph, each with another shape
    sharing_threads: int = 32
    calls_per_thread: int = 8
    openings_per_thread: int = 2
    in_flight: int = 64  # requests in progress at SIGTERM
    started_processes: int = 1  # rounds of all ways to start a process
    fuzzed_strings: int = 5_000
    fuzzed_requests: int = 5_000  # from a grammar, to a server
    mutated_bundles: int = 600
    served_requests: int = 8  # to compare a server with direct calls
    served_rounds: int = 3
    attack_seconds: float = 2  # of each attack
    starved_seconds: float = 2  # of a polite client beside each kind of neighbour
    killed_rows: int = 20_000  # of the job that is killed
    # of the job whose memory is compared with that of a tenth of its rows; 0 for none
    job_rows: int = 0
    rewritten_inputs: int = 6  # while a job runs
    mutated_files: int = 120  # that commands read


SHORT = Sizes()
LONG = Sizes(
    case_seconds=7200,
    requests=10_000,
    overload_seconds=60,
    calm_seconds=10,
    faults=200,
    shapes=10_000,
    calls_per_thread=256,
    openings_per_thread=20,
    started_processes=10,
    fuzzed_strings=100_000,
    fuzzed_requests=100_000,
    mutated_bundles=10_000,
    served_requests=60,
    served_rounds=5,
    attack_seconds=25,
    starved_seconds=60,
    killed_rows=200_000,
    job_rows=1_000_000,
    rewritten_inputs=50,
    mutated_files=3_000,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The sizes and the bundles; can be sent to another process."""

    sizes: Sizes
    tiny: Path  # a bundle of a random BERT, if the model does not matter
    minilm: Path  # a bundle of MiniLM, if the scores or the time they take matter
    # a bundle of roberta-large's size, whose tokens take long; None to leave it out
    large: Path | None = None
