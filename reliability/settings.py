"""What a run of the cases works with."""

from dataclasses import dataclass
from pathlib import Path

from reliability.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Settings:
    """The sizes, and two bundles; it can be sent to another process."""

    sizes: Sizes

    tiny: Path
    """A bundle of a random BERT, where the model does not matter."""

    minilm: Path
    """A bundle of MiniLM, where scores or the time they take do."""
