"""Where this checkout lies, and how its processes import it."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def environment() -> dict[str, str]:
    """Return the variables of a process that imports the library from this checkout, and asks no model hub."""
    folders = [str(ROOT), str(ROOT / "export"), str(ROOT / "models"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(filter(None, folders))}
