"""How much each case does: the short form for every change, the long form for a release."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of all cases."""

    case_seconds: float
    """How long a case may take before it counts as hanging."""

    requests: int
    """That clients hand to the batcher, mixed lengths."""

    clients: int
    overload_seconds: float
    calm_seconds: float
    """For which the throughput without overload is measured."""

    faults: int
    shapes: int
    """Runs of the graph, each of another shape."""

    sharing_threads: int
    calls_a_thread: int
    openings_a_thread: int
    in_flight: int
    """Requests that are being answered at SIGTERM."""

    started_processes: int
    """Rounds of every way to start a process."""

    fuzzed_strings: int
    fuzzed_requests: int
    """Of a grammar, to the server."""

    mutated_bundles: int
    served_requests: int
    """To compare the server with direct calls."""

    served_rounds: int
    attack_seconds: float
    """For which each attack goes on."""

    starved_seconds: float
    """For which a polite client asks beside each kind of neighbour."""

    killed_rows: int
    """Of the job that is killed."""

    job_rows: int
    """Of the job whose memory is compared with that of one with a tenth of them; 0 for none."""


SHORT = Sizes(
    case_seconds=600,
    requests=400,
    clients=32,
    overload_seconds=8,
    calm_seconds=4,
    faults=20,
    shapes=60,
    sharing_threads=32,
    calls_a_thread=8,
    openings_a_thread=2,
    in_flight=64,
    started_processes=1,
    fuzzed_strings=5_000,
    mutated_bundles=600,
    fuzzed_requests=5_000,
    served_requests=8,
    served_rounds=3,
    attack_seconds=2,
    starved_seconds=2,
    killed_rows=20_000,
    job_rows=0,
)

LONG = Sizes(
    case_seconds=7200,
    requests=10_000,
    clients=32,
    overload_seconds=60,
    calm_seconds=10,
    faults=200,
    shapes=10_000,
    sharing_threads=32,
    calls_a_thread=256,
    openings_a_thread=20,
    in_flight=64,
    started_processes=10,
    fuzzed_strings=100_000,
    mutated_bundles=10_000,
    fuzzed_requests=100_000,
    served_requests=60,
    served_rounds=5,
    attack_seconds=25,
    starved_seconds=60,
    killed_rows=200_000,
    job_rows=1_000_000,
)
