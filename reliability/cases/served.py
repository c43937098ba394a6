"""What a server costs over direct calls: the same requests, scored by one and by the other in turn."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from bertscore_onnx import BERTScorer
from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.bounds import at_most, none_of
from reliability.server import Client, Server, body_of
from reliability.settings import Settings

PAIRS = 32
"""In a request."""

CLIENTS = 4


def measure(settings: Settings) -> list[Figure]:
    """Compare the time of both, round by round."""
    requests = _requests(settings.sizes.served_requests)
    bodies = [body_of(*request) for request in requests]
    ratios, refused = [], 0
    with BERTScorer(settings.minilm, device="cpu") as scorer, Server(settings.minilm) as server:
        for number in range(settings.sizes.served_rounds + 1):
            begun = time.perf_counter()
            for candidates, references in requests:
                scorer.score(candidates, references)
            direct = time.perf_counter() - begun
            begun = time.perf_counter()
            refused += _serve_all(server, bodies)
            if number:  # the first round warms both up
                ratios.append((time.perf_counter() - begun) / direct)
    title = f"time of {len(requests)} requests of {PAIRS} pairs, against direct calls"
    return [
        none_of("requests not answered with 200", refused),
        at_most(title, statistics.median(ratios), "×", 1.35, of_speed=True),
    ]


def _requests(count: int) -> list[tuple[list[str], list[str]]]:
    candidates, references = synthetic_pairs(PAIRS * count)
    parts = [slice(start, start + PAIRS) for start in range(0, len(candidates), PAIRS)]
    return [(candidates[part], references[part]) for part in parts]


def _serve_all(server: Server, bodies: list[bytes]) -> int:
    """Send all requests, a few at a time; return how many were not answered with 200."""

    def send(some: list[bytes]) -> int:
        with Client(server.port) as client:
            return sum(client.post(body)[0] != 200 for body in some)

    with ThreadPoolExecutor(CLIENTS) as clients:
        return sum(clients.map(send, [bodies[start::CLIENTS] for start in range(CLIENTS)]))
