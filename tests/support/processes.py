"""Work in forked processes."""

import multiprocessing
import os

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
"""Marks a test that forks."""


def in_forked_child(work):
    """Run `work` in a forked child that shares this process's memory; return its result, or raise its error."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def report():
        try:
            sender.send(work())
        except Exception as error:
            sender.send(error)

    child = context.Process(target=report)
    child.start()
    sender.close()
    try:
        assert receiver.poll(60), "the child hangs"
        result = receiver.recv()  # EOFError where the child crashed
    finally:
        child.kill()
        child.join()
    if isinstance(result, Exception):
        raise result
    return result
