"""Keeps the scorers of the last few settings, so that scoring again with the same settings need not load a model."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from bertscore_onnx.errors import DigestError
from bertscore_onnx.scorer import BERTScorer


class ScorerCache:
    """A few scorers by their settings, of which the least recently used goes first; threads may share it."""

    def __init__(self, max_scorers: int) -> None:
        """Start without scorers.

        Args:
            max_scorers: how many to keep, at least 1.
        """
        self._max_scorers = max_scorers
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._change = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._follow_fork)

    def get(self, settings: Hashable, load: Callable[[], BERTScorer]) -> BERTScorer:
        """Return a scorer that shares the model of the one that is kept; the caller closes it.

        Args:
            settings: what tells the scorer from others.
            load: makes a scorer, where none is kept or its bundle was replaced. Its errors are passed
                on. Of threads that ask for the same settings one loads it and the others wait.
        """
        while True:
            entry = self._entry(settings)
            with entry.lock:
                if not entry.is_dropped:
                    try:
                        return entry.share(load)
                    except BaseException:
                        self._forget(settings, entry)
                        raise

    def clear(self) -> None:
        """Close all scorers; the model of one that is scoring is released when it is done."""
        with self._change:
            dropped, self._entries = [*self._entries.values()], OrderedDict()
        for entry in dropped:
            entry.drop()

    def _entry(self, settings: Hashable) -> "_Entry":
        dropped = None
        with self._change:
            entry = self._entries.setdefault(settings, _Entry())
            self._entries.move_to_end(settings)
            if len(self._entries) > self._max_scorers:
                _, dropped = self._entries.popitem(last=False)
        if dropped is not None:
            dropped.drop()
        return entry

    def _forget(self, settings: Hashable, entry: "_Entry") -> None:
        """Leave the place of an entry that could not be loaded to others; threads that wait for it try again."""
        with self._change:
            if self._entries.get(settings) is entry:
                del self._entries[settings]
        entry.is_dropped = True

    def _follow_fork(self) -> None:
        """Forget what other threads were about to load: they are not in this process to finish it."""
        self._change = threading.Lock()
        self._entries = OrderedDict((key, entry) for key, entry in self._entries.items() if not entry.lock.locked())


class _Entry:
    """The scorer of some settings, once it is loaded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while the scorer is loaded or shared, not while it scores."""
        self.is_dropped = False
        self._scorer: BERTScorer | None = None

    def share(self, load: Callable[[], BERTScorer]) -> BERTScorer:
        """Return one more user of the model, loaded if need be; the caller holds the lock."""
        if self._scorer is not None:
            try:
                self._scorer.bundle.check_unchanged()
            except DigestError:
                self._close()
        if self._scorer is None:
            self._scorer = load()
        return self._scorer.shared()

    def drop(self) -> None:
        """Close the scorer, and let none be loaded here again."""
        with self.lock:
            self.is_dropped = True
            self._close()

    def _close(self) -> None:
        if self._scorer is not None:
            self._scorer.close()
            self._scorer = None
