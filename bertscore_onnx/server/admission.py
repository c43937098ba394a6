"""How many requests may be in progress at a time, and the end of that when the server is told to stop."""

import asyncio
from contextlib import suppress

from bertscore_onnx.server.requests.errors import draining, too_busy


class Admission:
    """Counts the requests that score, and lets no more in than allowed, or none when the server is to stop."""

    def __init__(self, max_requests: int) -> None:
        """Let requests in."""
        self._max_requests = max_requests
        self._idle = asyncio.Event()
        self._idle.set()
        self.active = 0
        """Requests that are being read, scored or answered."""

        self.is_draining = False

    def enter(self) -> None:
        """Let a request in.

        Raises:
            ApiError: 429: there are too many; 503: the server is to stop.
        """
        if self.is_draining:
            raise draining()
        if self.active >= self._max_requests:
            raise too_busy(f"{self.active} requests are in progress, as many as are allowed. Try again.", 1.0)
        self.active += 1
        self._idle.clear()

    def leave(self) -> None:
        """Take note that a request is over."""
        self.active -= 1
        if not self.active:
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
