"""Comparison with bert-score, and with the scoring graph as somebody without this package runs
it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from bertscore_onnx.bundle.manifest import Manifest

TOLERANCE = 1e-5

KNOWN_WARNINGS = [
    pytest.mark.filterwarnings("ignore:.* 0 because :UserWarning"),
    pytest.mark.filterwarnings("ignore:.* longer than .* truncated:UserWarning"),
    # bert-score's baselines
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning"),
]
"""Marks of tests that score empty and long texts by both libraries."""


def assert_same_scores(ours: Any, theirs: Any) -> float:
    """Compare the scores for which bert-score returns a number; its NaN, for a text without
    weights, is 0 here.

    Returns:
        The largest absolute difference.
    """
    theirs = np.stack([array.numpy() for array in theirs])
    ours = np.stack(ours)
    defined = np.isfinite(theirs).all(axis=0)
    assert defined.sum() > len(defined) / 2
    difference = float(np.abs(ours - theirs)[:, defined].max())
    assert difference <= TOLERANCE
    assert (ours[:, ~defined] == 0).all()
    return difference


def equations(
    candidate: NDArray[Any],
    of_candidate: NDArray[np.bool_],
    reference: NDArray[Any],
    of_reference: NDArray[np.bool_],
) -> tuple[float, float]:
    """Return P and R by the paper's equations, of the unit vectors of each side, and of which of
    its tokens weigh.
    """
    similarity = candidate.astype(np.float64) @ reference.astype(np.float64).T
    return similarity.max(axis=1)[of_candidate].mean(), similarity.max(axis=0)[of_reference].mean()


def unit(vectors: NDArray[Any]) -> NDArray[Any]:
    lengths: NDArray[Any] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths


def idf_of(texts: Sequence[Sequence[int]], vocab_size: int) -> NDArray[np.float32]:
    """Return the idf of each id in texts, (vocab_size,)."""
    frequency = np.zeros(vocab_size)
    for ids in texts:
        frequency[[*set(ids)]] += 1
    return np.log((len(texts) + 1) / (frequency + 1)).astype(np.float32)


def without_stand_ins(texts: Sequence[list[int]], manifest: Manifest) -> list[list[int]]:
    """Return the ids of texts; in bert-score an empty one has none where padding stands in for it
    here.
    """
    return [[] if ids == [manifest.pad_id] else ids for ids in texts]


class PlainSession:
    """The scoring graph of a bundle."""

    def __init__(self, bundle: Path) -> None:
        self._session = onnxruntime.InferenceSession(
            bundle / "scoring.onnx", providers=["CPUExecutionProvider"]
        )

    def run(
        self,
        candidates: Sequence[Sequence[int]],
        references: Sequence[Sequence[int]],
        *,
        weights: NDArray[np.float32] | None = None,
        padding: int = 0,
        pad_id: int = 0,
        token: int = 1,
        left: bool = False,
    ) -> NDArray[np.float32]:
        """Return P, R and F, (3, pairs), or with the layers before the pairs.

        Args:
            candidates, references: the ids of each text.
            weights: what each id weighs; None for the graph's own weights.
            padding: tokens of padding on every candidate, beside what the longest one needs.
            pad_id: the id on padding.
            token: what the masks have on tokens.
            left: whether padding stands before the tokens, where it must not.
        """
        feed = {} if weights is None else {"token_weights": weights}
        for side, texts, more in (("candidate", candidates, padding), ("reference", references, 0)):
            width = max(map(len, texts), default=0) + more
            mask = np.array(
                [[token] * len(ids) + [0] * (width - len(ids)) for ids in texts], dtype=np.int64
            )
            padded = np.full_like(mask, pad_id)
            for row, ids in zip(padded, texts, strict=True):
                row[: len(ids)] = ids
            if left:
                padded, mask = padded[:, ::-1], mask[:, ::-1]
            feed |= {
                f"{side}_ids": padded.reshape(len(texts), width),
                f"{side}_mask": mask.reshape(len(texts), width),
            }
        return np.stack(self._session.run(["precision", "recall", "f1"], feed))


_EXAMPLES = Path(__file__).parents[2] / "examples"

ORDINARY_PAIRS: list[tuple[str, str]] = list(
    zip(
        (_EXAMPLES / "candidates.txt").read_text(encoding="utf-8").splitlines(),
        (_EXAMPLES / "references.txt").read_text(encoding="utf-8").splitlines(),
        strict=True,
    )
)

EDGE_CASE_PAIRS: list[tuple[str, str]] = [
    ("", "nothing on the other side"),
    ("nothing on the other side", ""),
    (" \t\n ", "only white space"),
    ("", ""),
    ("\u3000\u00a0", "ideographic and no-break space"),
    ("same", "same"),
    ("a", "I"),
    (".", "?!"),
    ("before [SEP] after", "before after"),
    ("[CLS] hello [PAD] world [MASK]", "hello world"),
    ("<s> hello </s> <pad> <mask> world <unk>", "hello world"),
    ("[SEP]glued[SEP]", "glued"),
    ("naïve café Ångström Łódź İstanbul", "naive cafe Angstrom Lodz Istanbul"),
    ("e\u0301te\u0301 a\u0308\u0323 \u0301alone", "été ạ̈ alone"),
    ("ΣΊΣΥΦΟΣ ΟΔΟΣ", "σίσυφος οδός"),
    ("今日は暑い。中文 한국어", "今天很热。日本語 조선말"),
    ("مرحبا بالعالم", "שלום עולם"),
    ("😀👩‍👩‍👧‍👦🇩🇪✌🏽 fun", "fun 😀"),
    ("zero\u200bwidth\ufeffmark\u00adsoft", "zerowidthmarksoft"),
    ("control\u0001\u001f\u007f\u0085 nul\u0000byte", "control nulbyte"),
    ("line\u2028separator\u2029and\u000bmore", "line separator and more"),
    ("unassigned \u0378\U000e0001 private \ue000 \ufffd", "unassigned private"),
    ("𝓗𝓮𝓵𝓵𝓸 ①②③ ½ ﬁne ㎏", "Hello 123 1/2 fine kg"),
    ("﹏‿⁀ ⸺ 〽 ꠸ ৽", "punctuation of newer Unicode"),
    ("x" * 150, "x" * 100),
    ("!?" * 60, "!"),
    ("1,234.56 -- 7e-8 (9%)", "1234.56 or 0.00000007"),
    ("https://example.org/a_b?c=d&e=%20", "a link"),
    ("one two three " * 300, "one two three " * 10),
    ("beginning " + "middle " * 700 + "end", "beginning " + "middle " * 700 + "other"),
]

SEVERAL_REFERENCES: list[tuple[str, list[str]]] = [
    ("I like lemons.", ["I am proud of you.", "I love lemons.", "Go on."]),
    ("It is freezing today.", ["It is freezing today."]),
    (
        "The river flows north.",
        ["The river flows south.", "The river flows south.", "North flows the river."],
    ),
    ("café", ["", "cafe", "CAFÉ !"]),
    (
        "Nobody knows who wrote the letter.",
        ["the letter " * 100, "Who wrote the letter is unknown to everybody."],
    ),
]
