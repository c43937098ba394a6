"""Where a model comes from, and how to say that it cannot be had."""

from dataclasses import dataclass
from pathlib import Path

from bertscore_onnx.errors import ExportError


@dataclass(frozen=True, slots=True)
class Source:
    """A model of the Hub, or a local folder."""

    name_or_path: str
    """A Hub id, or a folder written by `save_pretrained`."""

    revision: str | None = None
    """A branch, tag or commit of the Hub; None for the default branch."""

    name: str | None = None
    """What to call the model; None for its own name."""

    @property
    def model_id(self) -> str:
        """The name the model goes by: the one given, the Hub's, or that of the folder.

        Raises:
            ExportError: it would break a signature, a line of a log or a path.
        """
        path = Path(self.name_or_path)
        own = path.resolve().name if path.is_dir() else self.name_or_path
        name = own if self.name is None else self.name
        if not name.isprintable() or "|" in name or name in {"", ".", ".."}:
            raise ExportError(
                f"{name!r} cannot be a model's name, which has printable characters only, and no '|'. Choose another "
                "with --name."
            )
        return name


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; those of transformers run to a page."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
