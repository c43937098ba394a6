"""What a run of the cases works with."""

from dataclasses import dataclass
from pathlib import Path

from reliability.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Settings:
    """The sizes, and bundles; it can be sent to another process."""

    sizes: Sizes

    tiny: Path
    """A bundle of a random BERT, where the model does not matter."""

    minilm: Path
    """A bundle of MiniLM, where scores or the time they take do."""

    large: Path | None = None
    """A bundle of roberta-large's size, where it matters that a token costs much; None leaves it out."""
