"""The attacks by name: what a client does, and how the server was started."""

import os
from dataclasses import dataclass
from functools import partial

from reliability.attacker import Rush
from reliability.cases.adversary import bodies, connections, slots, streams
from reliability.traffic import keep_asking

FEW = 4
"""Connections, where each request costs much."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack."""

    rush: Rush
    options: tuple[str, ...] = ()
    """Of the server."""

    open_files: int | None = None
    """That the server may have."""

    holds_slots: bool = False
    """Whether all requests that may be in progress are the attacker's, so that others have to be let in meanwhile."""


ATTACKS = {
    "duplicate keys": Attack(partial(keep_asking, bodies.duplicate_keys, FEW)),
    "combining marks": Attack(partial(keep_asking, bodies.combining_marks, FEW)),
    "wrong lines": Attack(streams.wrong_lines),
    "wrong lines, unread": Attack(streams.wrong_lines_unread),
    "tiny lines": Attack(streams.tiny_lines),
    "unread answers": Attack(slots.unread_answers, slots.OPTIONS, holds_slots=True),
    "slow uploads": Attack(slots.slow_uploads, slots.OPTIONS, holds_slots=True),
    "slow lines": Attack(slots.slow_lines, slots.OPTIONS, holds_slots=True),
    "dots": Attack(partial(keep_asking, bodies.dots, 2 * (os.cpu_count() or 1))),
    "token bombs": Attack(partial(keep_asking, bodies.token_bombs, FEW)),
    "long matches": Attack(partial(keep_asking, bodies.long_matches, FEW), ("--long-text", "window")),
    "idle connections": Attack(connections.idle, open_files=connections.OPEN_FILES),
    "large bodies": Attack(connections.large_bodies),
    "odd connections": Attack(connections.odd_ones),
}
