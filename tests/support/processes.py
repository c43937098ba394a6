"""Work in forked processes, and code in a Python of its own."""

import multiprocessing
import os
import subprocess
import sys

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
"""Marks a test that forks."""


def in_forked_child(work):
    """Run `work` in a forked child that shares this process's memory; return its result, or raise
    its error.
    """
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
        assert receiver.poll(300), "the child hangs"
        result = receiver.recv()  # EOFError where the child crashed
    finally:
        child.kill()
        child.join()
    if isinstance(result, Exception):
        raise result
    return result


def run_python(code, *arguments, under=(), **variables):
    """Run code in a Python of its own, with some environment variables set, under another program
    if that is given; return the process that has ended.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    quiet = ["-W", "ignore::DeprecationWarning"]  # of forks
    command = [*under, sys.executable, *quiet, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
