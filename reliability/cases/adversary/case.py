"""A server is attacked in many ways: it says that it lives, keeps to its memory, lets others in, and can be stopped."""

import http.client
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from harness.results import Figure
from reliability.attacker import Attacker
from reliability.bounds import at_most, none_of
from reliability.cases.adversary.attacks import ATTACKS, Attack
from reliability.server import Client, Server
from reliability.settings import Settings
from reliability.traffic import NEVER, pairs_body
from reliability.watch import HEALTH_SECONDS, KEPT_MB, MEMORY_MB, RETURN_SECONDS, SLOT_SECONDS, Watch

DRAIN = 5
"""Seconds for requests in progress at SIGTERM."""

LAST_SECONDS = 6
"""For what comes after those."""

BACK_SECONDS = 5.0
"""Within which an honest request is scored."""

HOLDING_SECONDS = 7.0
"""For which slots are held at least, so that the end of the attack does not let others in."""


LOG_LINES = 300
HONEST = pairs_body([("It is cold today.", "It is freezing today.")])

_TAKING_SECONDS = 0.5
"""Within which all slots are taken."""

_BEFORE_STOP = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the server."""

    slowest: float
    """Seconds of the slowest answer of `/health/live`."""

    unanswered: int
    """Probes of it without an answer."""

    growth_mb: float
    kept_mb: float
    statuses: Counter[int]
    """That the attacker was answered."""

    back: float
    """Seconds until an honest request was scored."""

    slots: float
    """Requests still in progress some time after the attacker has gone."""

    lines: int
    """That the server logged."""

    tracebacks: int
    """Among them; an error that the server does not know."""

    ending: float
    """Seconds from SIGTERM to its end."""

    exit_status: int | None

    @property
    def broken(self) -> int:
        """Answers 5xx; the deadline and a queue that is full are none of the server's fault."""
        return sum(count for status, count in self.statuses.items() if status >= 500 and status not in (503, 504))


def measure(settings: Settings) -> list[Figure]:
    """Attack a fresh server each time, twice: to the end, and until it is told to stop."""
    outcomes = {}
    for name, attack in ATTACKS.items():
        outcomes[name] = _outcome(settings, attack)
        print(f"{name}: {outcomes[name]}", file=sys.stderr)
    asked = sum(sum(outcome.statuses.values()) for outcome in outcomes.values())

    def worst(title: str, of: Callable[[Outcome], float], unit: str, bound: float, *, of_speed: bool = False) -> Figure:
        name = max(outcomes, key=lambda name: of(outcomes[name]))
        return at_most(f"{title} ({name})", of(outcomes[name]), unit, bound, of_speed=of_speed)

    def total(title: str, of: Callable[[Outcome], float]) -> Figure:
        return none_of(title, round(sum(map(of, outcomes.values()))))

    return [
        worst("slowest /health/live", lambda one: one.slowest, "s", HEALTH_SECONDS, of_speed=True),
        total("probes of it without an answer", lambda one: one.unanswered),
        worst("growth of memory", lambda one: one.growth_mb, "MB", MEMORY_MB),
        worst(f"of which was kept after {RETURN_SECONDS:g} s", lambda one: one.kept_mb, "MB", KEPT_MB),
        total(f"of {asked:,} answers to attackers, 5xx other than 503 and 504", lambda one: one.broken),
        total("neither answered nor closed", lambda one: one.statuses[NEVER]),
        worst("until an honest request is scored", lambda one: one.back, "s", BACK_SECONDS, of_speed=True),
        total(f"slots that are taken up {SLOT_SECONDS:g} s after the attack", lambda one: one.slots),
        at_most("lines logged of idle connections", outcomes["idle connections"].lines, "", LOG_LINES),
        total("tracebacks in the log", lambda one: one.tracebacks),
        worst("from SIGTERM to the end", lambda one: one.ending, "s", DRAIN + LAST_SECONDS, of_speed=True),
        total("exit status other than 0", lambda one: one.exit_status != 0),
    ]


def _outcome(settings: Settings, attack: Attack) -> Outcome:
    seconds = max(settings.sizes.attack_seconds, HOLDING_SECONDS if attack.holds_slots else 0)
    options = ("--drain", str(DRAIN), *attack.options)
    with Server(settings.minilm, *options, open_files=attack.open_files) as server:
        _until_scored(server)  # so that what is kept for reuse is there
        lines = server.log().count("\n")
        with Watch(server) as watch:
            with Attacker(attack.rush, server.port, seconds) as attacker:
                if attack.holds_slots:
                    time.sleep(_TAKING_SECONDS)  # half of the time that the server waits for a client
                    back = _until_scored(server)
                statuses = attacker.statuses()
            if not attack.holds_slots:
                back = _until_scored(server)
            slots = server.requests_left(SLOT_SECONDS)
            lines = server.log().count("\n") - lines
            tracebacks = server.log().count("Traceback")
            kept = watch.kept_mb()
        with Attacker(attack.rush, server.port, seconds):
            time.sleep(_BEFORE_STOP)  # so that it is in the middle of the attack
            ending, status = _stop(server)
    return Outcome(
        watch.slowest,
        watch.unanswered,
        watch.growth_mb,
        kept,
        statuses,
        back,
        slots,
        lines,
        tracebacks,
        ending,
        status,
    )


def _until_scored(server: Server) -> float:
    """Ask until an honest request is scored; return the seconds, infinity where it takes too long."""
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < BACK_SECONDS:
        try:
            with Client(server.port, timeout=BACK_SECONDS - waited) as client:
                if client.post(HONEST)[0] == 200:
                    return time.monotonic() - begun
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.1)  # between two tries, until the limit
    return math.inf


def _stop(server: Server) -> tuple[float, int | None]:
    """Tell the server to stop; return the seconds until it has, and its exit status."""
    begun = time.monotonic()
    server.stop()
    try:
        status: int | None = server.process.wait(2 * (DRAIN + LAST_SECONDS))
    except subprocess.TimeoutExpired:
        return math.inf, None
    return time.monotonic() - begun, status
