"""A shared resource is made once, and closed when nobody uses or keeps it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bertscore_onnx.concurrency.shared import Shared
from bertscore_onnx.errors import ClosedError


class Resource:
    is_closed = False

    def close(self):
        assert not self.is_closed
        self.is_closed = True


def test_the_last_user_closes_a_resource_that_is_not_kept():
    shared = Shared(Resource, is_kept=False)
    first = shared.acquire()
    assert shared.acquire() is first
    shared.release(first)
    assert not first.is_closed
    shared.release(first)
    assert first.is_closed
    assert shared.acquire() is not first


def test_a_kept_resource_stays_open_until_it_is_closed():
    shared = Shared(Resource)
    resource = shared.acquire()
    shared.release(resource)
    assert not resource.is_closed
    assert shared.acquire() is resource
    shared.close()
    assert not resource.is_closed
    shared.release(resource)
    assert resource.is_closed
    with pytest.raises(ClosedError):
        shared.acquire()


def test_closing_closes_an_unused_resource_at_once():
    shared = Shared(Resource)
    resource = shared.acquire()
    shared.release(resource)
    shared.close()
    shared.close()
    assert resource.is_closed


def test_a_replaced_resource_is_closed_with_its_last_user():
    shared = Shared(Resource)
    stale = shared.acquire()
    shared.replace(stale)
    fresh = shared.acquire()
    assert fresh is not stale
    assert not stale.is_closed
    shared.replace(stale)
    assert shared.acquire() is fresh
    shared.release(stale)
    assert stale.is_closed
    assert not fresh.is_closed


def test_a_resource_made_while_closing_goes_with_its_user():
    def make():
        shared.close()
        return Resource()

    shared = Shared(make)
    resource = shared.acquire()
    shared.release(resource)
    assert resource.is_closed


def test_threads_make_it_once():
    start, made = threading.Barrier(8), []

    def make():
        made.append(Resource())
        return made[-1]

    shared = Shared(make)

    def acquire(_):
        start.wait()
        return shared.acquire()

    with ThreadPoolExecutor(8) as threads:
        assert {id(resource) for resource in threads.map(acquire, range(8))} == {id(made[0])}
    assert len(made) == 1


def test_after_a_failure_the_next_user_makes_it():
    makers = [lambda: 1 / 0, Resource]
    shared = Shared(lambda: makers.pop(0)())
    with pytest.raises(ZeroDivisionError):
        shared.acquire()
    assert not shared.is_being_made
    assert isinstance(shared.acquire(), Resource)
