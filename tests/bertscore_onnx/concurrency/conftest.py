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
    """Return a function that lets a signal handler raise `TooLateError` in the main thread, once.

    A signal that comes just before a thread waits is handled after the wait, so it is sent until it
    is handled.
    """
    handled = threading.Event()

    def ring(*_):
        if not handled.is_set():
            handled.set()
            raise TooLateError

    def send():
        while not handled.is_set():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            handled.wait(0.05)

    before = signal.signal(signal.SIGALRM, ring)
    yield send
    signal.signal(signal.SIGALRM, before)
