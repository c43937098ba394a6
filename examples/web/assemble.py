"""Writes the page and a bundle into a folder of files for any web server.

    python assemble.py BUNDLE [FOLDER]
    python3 -m http.server --directory FOLDER

FOLDER is `site` beside this file by default. The second command shows the page.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = (
    "onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.wasm",
    "@huggingface/tokenizers/dist/tokenizers.min.mjs",
)
BUNDLE = ("bertscore.json", "tokenizer.json", "model.onnx", "model.onnx.data", "scoring.onnx")


def copy_page(folder: Path) -> None:
    """Copy the page, without a model."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("index.html", "style.css", "offline.js", "*.mjs"):
        for file in HERE.glob(pattern):
            shutil.copyfile(file, folder / file.name)


def copy_model(bundle: Path, folder: Path) -> None:
    """Copy a bundle and the packages that run it, and list the sizes and digests of large files in
    `files.json`.
    """
    sources = {f"lib/{Path(name).name}": HERE / "node_modules" / name for name in PACKAGES}
    sources |= {f"bundle/{name}": bundle / name for name in BUNDLE}
    if missing := [source for source in sources.values() if not source.is_file()]:
        raise FileNotFoundError(
            f"{missing[0]} is missing. `npm ci` installs the packages, and `bertscore-onnx export "
            "--tokenizer-mode fast --scoring-graph` writes the bundle."
        )
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
    files = {
        name: _entry(source)
        for name, source in sources.items()
        if not name.endswith((".mjs", "bertscore.json"))
    }
    (folder / "files.json").write_text(json.dumps(files, indent=1), encoding="utf-8")


def _entry(file: Path) -> dict[str, int | str]:
    """Return what the page knows of a file before it loads it."""
    with file.open("rb") as content:
        return {
            "size": file.stat().st_size,
            "sha256": hashlib.file_digest(content, "sha256").hexdigest(),
        }


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(
            "Expected the path of a bundle, and of a folder to write: assemble.py BUNDLE [FOLDER]"
        )
    target = Path(sys.argv[2]) if len(sys.argv) == 3 else HERE / "site"
    try:
        copy_page(target)
        copy_model(Path(sys.argv[1]), target)
    except OSError as error:
        sys.exit(f"assemble.py: {error}")
