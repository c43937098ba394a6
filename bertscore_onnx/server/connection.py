"""HTTP connections of uvicorn that are not kept open for nothing."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS = 15.0
"""How often a connection is looked at. One on which nothing has happened from one look to the next is closed."""


class TimedConnection(H11Protocol):
    """Closes itself where no complete request head comes, and breaks off where a finished answer is not taken."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look at the clock."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(IDLE_SECONDS, self._look, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self, before: object) -> None:
        """Break the connection off where it has had nothing to answer, or has been closing, since the last look."""
        is_idle = self.cycle is None or self.cycle.response_complete
        now = (self.transport.is_closing(), self.cycle)
        if now == before and (is_idle or self.transport.is_closing()):
            self.transport.abort()
            return
        self._timer = self.loop.call_later(IDLE_SECONDS, self._look, now)
