"""An alarm, as for a time limit, in the main thread."""

import signal
import threading

import pytest


class TooLateError(Exception):
    """The error of the handler."""


@pytest.fixture
def late():
    """The error that `raise_late` raises in the main thread."""
    return TooLateError


@pytest.fixture
def raise_late():
    """Return a function that lets a signal handler raise `TooLateError` in the main thread."""

    def ring(*_):
        raise TooLateError

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
    signal.signal(signal.SIGALRM, before)
