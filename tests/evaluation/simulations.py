"""Draws of systems and metrics that are equally good, on which tests are simulated."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import permutation_test

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EqualSystems:
    """Two systems that are equally good in the population, by the differences of their scores of
    segments.
    """

    segments: int
    differing: float = 1
    """The share of segments in which they differ; draws in which none does are left out."""
    documents: int | None = None
    """How many documents of ten segments there are, whose differences have an intraclass
    correlation of .1.
    """

    @property
    def units(self) -> NDArray[np.int64] | None:
        return None if self.documents is None else np.arange(self.segments) // 10

    def differences(self, seed: int) -> Floats:
        rng = np.random.default_rng([seed, self.segments])
        differences = np.zeros(self.segments)
        while not differences.any():
            differences = rng.normal(size=self.segments) * (
                rng.random(self.segments) < self.differing
            )
        if self.documents is not None:
            differences = 0.9**0.5 * differences + 0.1**0.5 * rng.normal(
                size=self.documents
            ).repeat(10)
        return differences


@dataclass(frozen=True)
class Shape:
    """How the differences of segments between two systems with the same mean are distributed."""

    draw: Callable[[np.random.Generator, int], Floats]
    differing: float = 1
    """The share of segments in which they differ."""

    def __call__(self, rng: np.random.Generator, number: int) -> Floats:
        differences = self.draw(rng, number)
        return (
            differences
            if self.differing == 1
            else differences * (rng.random(number) < self.differing)
        )


def normal(rng: np.random.Generator, number: int) -> Floats:
    return rng.normal(size=number)


SHAPES = {
    "normal": Shape(normal),
    "Student's t, 3 degrees": Shape(lambda rng, number: rng.standard_t(3, size=number)),
    "exponential": Shape(lambda rng, number: rng.exponential(size=number) - 1),
    "lognormal": Shape(lambda rng, number: rng.lognormal(size=number) - np.exp(0.5)),
    "two lognormal scores": Shape(
        lambda rng, number: rng.lognormal(size=number) - rng.lognormal(size=number)
    ),
    "few exceptions": Shape(
        lambda rng, number: (
            np.where(rng.random(number) < 0.1, -0.45, 0.05) + rng.normal(0, 0.003, size=number)
        )
    ),
    "2 % fail": Shape(lambda rng, number: np.where(rng.random(number) < 0.02, -1, 0.02 / 0.98)),
    "30 % differ": Shape(lambda rng, number: rng.normal(size=number) * 0.3**-0.5, 0.3),
    "3 % differ": Shape(normal, 0.03),
    "0 or 1": Shape(
        lambda rng, number: np.diff(rng.integers(2, size=(2, number)), axis=0)[0].astype(float)
    ),
    "0, 0.5 or 1": Shape(
        lambda rng, number: (rng.integers(3, size=number) - rng.integers(3, size=number)) / 2
    ),
    "counts of errors": Shape(
        lambda rng, number: (rng.poisson(1, number) - rng.poisson(1, number)).astype(float)
    ),
}
"""Most have a deviation of 1."""


@dataclass(frozen=True)
class Losses:
    """The losses of segments of a system whose baseline always has the best score, which is the
    worst loss.
    """

    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    mean: float
    worst: float = 1.0


def errors(rng: np.random.Generator, shape: tuple[int, int], share: float) -> Floats:
    """Draw penalties as of MQM: in a share of segments one to three errors of 1 or 5."""
    return (rng.random(shape) < share) * rng.choice([1.0, 5.0], shape) * rng.integers(1, 4, shape)


LOSSES = {
    "0 or 1, 5 % lost": Losses(lambda rng, shape: (rng.random(shape) < 0.05).astype(float), 0.05),
    "0 or 1, 12 % lost, 7 % won": Losses(
        lambda rng, shape: rng.choice([1.0, -1, 0], shape, p=[0.12, 0.07, 0.81]), 0.05
    ),
    "exponential": Losses(lambda rng, shape: np.minimum(rng.exponential(0.05, shape), 1), 0.05),
    "exponential in 30 %": Losses(
        lambda rng, shape: np.minimum(rng.exponential(0.1, shape) * (rng.random(shape) < 0.3), 1),
        0.03,
    ),
    "lognormal": Losses(
        lambda rng, shape: np.minimum(0.02 * rng.lognormal(size=shape), 1), 0.02 * np.exp(0.5)
    ),
    "normal": Losses(lambda rng, shape: rng.normal(0.03, 0.1, shape), 0.03),
    "MQM": Losses(lambda rng, shape: errors(rng, shape, 0.38) - errors(rng, shape, 0.3), 0.48, 25),
    "3 % fail by 0.8": Losses(
        lambda rng, shape: rng.normal(0, 0.02, shape) + 0.8 * (rng.random(shape) < 0.03), 0.024
    ),
    "1 % of the baseline's speed-ups are 30": Losses(
        lambda rng, shape: 29 * (rng.random(shape) < 0.01) + rng.normal(0, 0.3, shape), 0.29, 60
    ),
    "2 % of grades 4 and 5 fall to 1": Losses(
        lambda rng, shape: rng.choice([3.0, 4], shape) * (rng.random(shape) < 0.02), 0.07, 5
    ),
}

EQUAL_SYSTEMS = {
    "20 segments": EqualSystems(20),
    "100 segments": EqualSystems(100),
    "1,000 segments": EqualSystems(1000),
    "20 segments, 3 % differ": EqualSystems(20, 0.03),
    "100 segments, 3 % differ": EqualSystems(100, 0.03),
    "1,000 segments, 0.2 % differ": EqualSystems(1000, 0.002),
    "20 documents of 10 segments": EqualSystems(200, documents=20),
    "100 documents of 10 segments": EqualSystems(1000, documents=100),
}


def exact_p(differences: Floats) -> float:
    """Return SciPy's p of all swaps of the differences that are not 0, which are few."""
    rounded = differences.round(6)
    differing = rounded[rounded != 0]
    if not len(differing):
        return 1.0
    found = permutation_test(
        (differing,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    return float(found.pvalue)


def rate(happens: Callable[[int], bool], trials: int) -> float:
    return float(np.mean([happens(seed) for seed in range(trials)]))


JUDGEMENTS = ("MQM", "grades")


def judged_outputs(
    rng: np.random.Generator,
    systems: int,
    segments: int,
    judgements: str,
    number: int = 2,
    quality: Floats | None = None,
    documents: NDArray[np.int64] | None = None,
) -> tuple[Floats, list[Floats]]:
    """Draw human scores, (systems, segments), and metrics that are as good as each other.

    Human scores are sums of errors as of MQM, most of them 0, or grades of 1 to 5; metrics are then
    of few values too. Outputs of a document of a system are alike, and so are those of a segment.
    """
    quality = 0.4 * rng.normal(size=systems) if quality is None else quality
    latent = (
        quality[:, None] + 0.7 * rng.normal(size=segments) + rng.normal(size=(systems, segments))
    )
    if documents is not None:
        latent += (
            rng.normal(size=(systems, documents.max() + 1))[:, documents]
            + rng.normal(size=len(documents))[documents]
        )
    noisy = latent + 0.3 * rng.normal(size=latent.shape)
    human = np.select(
        [noisy > 0.3, noisy > -0.5, noisy > -1.2, noisy > -1.8], [0.0, -1.0, -5.0, -6.0], -10.0
    )
    if judgements == "grades":
        human = np.clip(np.round(1.2 * noisy + 3), 1, 5)
    shared = 0.5 * rng.normal(size=latent.shape) + 0.5 * rng.normal(size=segments)
    metrics = [latent + shared + rng.normal(size=latent.shape) for _ in range(number)]
    return human, [(2 * metric).round() if judgements == "grades" else metric for metric in metrics]


def zipf_documents(number: int) -> NDArray[np.int64]:
    """Return the sizes of documents, the largest of which has as many segments as 60 of the
    smallest.
    """
    return np.maximum(1, (60 / np.arange(1, number + 1)).round()).astype(np.int64)
