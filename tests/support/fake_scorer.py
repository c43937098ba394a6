"""A scorer that fails when the text orders it to."""

import threading
from dataclasses import replace

import numpy as np

from bertscore_onnx.errors import ClosedError
from bertscore_onnx.matching.variants import Matching
from bertscore_onnx.scores import Scores, Signature
from bertscore_onnx.scoring.text_stats import TextStats
from bertscore_onnx.text.tokenizer import TokenisedText

GUARD = 60
"""Seconds after which a test is taken to hang."""


class FakeScorer:
    """Score each candidate with its length as precision, and a longer reference higher; some texts
    are orders.
    """

    def __init__(self, model="fake", idf="no"):
        self.matching = Matching()
        self.signature = Signature(model, 1, idf, "no", "slow", "truncate", None, "fp32", "fake")
        self.max_length = 512
        self.calls = []
        self.faults = {}
        self.broken = None
        self.closed = False
        self.releases = 0
        self.entered = threading.Event()
        self.gate = threading.Event()

    def tokenise(self, pairs):
        """Give each text a token a character, and two special ones."""
        ids = {text: TokenisedText(np.zeros(len(text) + 2, np.int64)) for text in pairs.texts}
        return replace(pairs, tokenised=ids), TextStats()

    def score_pairs(self, pairs):
        cands, refs = pairs.candidates.texts, pairs.references.texts
        self.calls.append(list(cands))
        if self.closed:
            raise ClosedError("closed")
        if self.broken is not None:
            raise self.broken
        for cand in cands:
            if cand in self.faults:
                raise self.faults[cand]
        if "hold" in cands:
            self.entered.set()
            assert self.gate.wait(GUARD)
        values = np.array([np.nan if cand == "nan" else len(cand) for cand in cands], np.float32)
        f1 = values / 4 + np.array([*map(len, refs)], np.float32)
        return Scores(values, values / 2, f1, np.zeros(len(cands), np.int64)), TextStats(
            empty=cands.count("")
        )

    def warm_up(self):
        self.is_warm = True

    def release_memory(self):
        self.releases += 1

    def close(self):
        self.closed = True

    @property
    def batches(self):
        """The calls but for the probes."""
        return [call for call in self.calls if call != ["a probe"]]
