"""How much may be in progress at a time: requests, and the bytes of their bodies; and the end of that at a stop.

A request that is let in holds a slot until it is over. A slot that waits for its client can be taken back.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from bertscore_onnx.server.errors import draining, too_busy
from bertscore_onnx.server.limits import Limits

PATIENCE = 2.0
"""Seconds that a request may have waited for its client in all, where others find no room."""


class Admission:
    """Lets no more requests in than allowed, or none when the server is to stop."""

    def __init__(self, limits: Limits) -> None:
        """Let requests in."""
        self._limits = limits
        self._slots: set[Slot] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.num_bytes = 0
        """Of all bodies, as far as they are held or announced."""

        self.is_draining = False

    @property
    def active(self) -> int:
        """Requests that are being read, scored or answered."""
        return len(self._slots)

    def enter(self) -> "Slot":
        """Let a request in.

        Raises:
            ApiError: 429: there are too many, and none that waits for its client; 503: the server is to stop.
        """
        if self.is_draining:
            raise draining()
        if self.active >= self._limits.max_requests and not self._take_back():
            raise too_busy(f"{self.active} requests are in progress, as many as are allowed. Try again.", 1.0)
        slot = Slot(self)
        self._slots.add(slot)
        self._idle.clear()
        return slot

    def hold(self, num_bytes: int) -> None:
        """Take note of bytes that are kept for a request.

        Raises:
            ApiError: 429: there are too many, and no request that waits for its client.
        """
        if self.num_bytes + num_bytes > self._limits.max_bytes and not self._take_back():
            raise too_busy(f"The requests in progress have {self.num_bytes:,} bytes. Try again.", 1.0)
        self.num_bytes += num_bytes

    def leave(self, slot: "Slot", num_bytes: int) -> None:
        """Take note that a request is over, and its bytes are gone."""
        self._slots.discard(slot)
        self.num_bytes -= num_bytes
        if not self._slots:
            self._idle.set()

    async def drain(self, timeout: float) -> bool:
        """Let no more requests in, and wait for those in progress; return whether all ended in time."""
        self.is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        return not self.active

    def abandon(self) -> None:
        """End the wait of `drain`."""
        self._idle.set()

    def _take_back(self) -> bool:
        """End the request that has waited longest for its client; say whether there was one to end."""
        slowest = max(self._slots, key=lambda slot: slot.waited, default=None)
        return slowest is not None and slowest.waited > PATIENCE and slowest.give_up()


class Slot:
    """What one request holds."""

    def __init__(self, admission: Admission) -> None:
        """Begin without bytes."""
        self._admission = admission
        self._num_bytes = 0
        self._waits: set[asyncio.Timeout] = set()
        self._works = 0
        self._waited = 0.0
        self._waiting_since: float | None = None

    @property
    def waited(self) -> float:
        """Seconds that it has waited for its client in all; 0 where it does not wait now, or is to end."""
        if self._waiting_since is None:
            return 0.0
        return self._waited + time.monotonic() - self._waiting_since

    def hold(self, num_bytes: int) -> None:
        """Take note of bytes that are kept; raises what `Admission.hold` does."""
        self._admission.hold(num_bytes)
        self._num_bytes += num_bytes

    def release(self, num_bytes: int) -> None:
        """Take note that some of these bytes are not kept any more."""
        self._num_bytes -= num_bytes
        self._admission.num_bytes -= num_bytes

    def leave(self) -> None:
        """Give the slot back."""
        self._admission.leave(self, self._num_bytes)

    @asynccontextmanager
    async def client_turn(self, until: float) -> AsyncIterator[None]:
        """Wait for the client, to send or to take something in.

        Args:
            until: how long at most, by the running loop's clock.

        Raises:
            TimeoutError: it took longer, or the slot is needed.
        """
        async with asyncio.timeout_at(until) as wait:
            self._waits.add(wait)
            self._take_time()
            try:
                yield
            finally:
                self._waits.discard(wait)
                self._take_time()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Do something that the client waits for, so that it is not the client that is waited for."""
        self._works += 1
        self._take_time()
        try:
            yield
        finally:
            self._works -= 1
            self._take_time()

    def give_up(self) -> bool:
        """End what waits for the client; say whether anything did."""
        waits, self._waits = self._waits, set()
        for wait in waits:
            wait.reschedule(asyncio.get_running_loop().time())
        self._take_time()
        return bool(waits)

    def _take_time(self) -> None:
        now = time.monotonic()
        if self._waiting_since is not None:
            self._waited += now - self._waiting_since
        self._waiting_since = now if self._waits and not self._works else None
