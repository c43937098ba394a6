"""Packs what a machine with a GPU and no network needs.

    python scripts/pack_for_gpu.py FOLDER [--architecture 90]

The machine has Python, PyTorch with CUDA and `onnx`. In FOLDER come `site.tar.xz`, with this
library and the packages, and `setup.sh`: run `. setup.sh` beside it there, and `python -m
benchmarks.gpu`. ONNX Runtime's library holds every kernel for six architectures; those of the
others are overwritten by zeros, which makes the archive a quarter as large.
"""

import argparse
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("bertscore_onnx", "evaluation", "service", "export", "models", "benchmarks", "harness")
PACKAGES = (
    *(
        "onnxruntime-gpu",
        "tokenizers>=0.22,<0.23",
        "msgspec",
        "platformdirs",
        "sentencepiece",
        "typer",
        "pydantic",
    ),
    *(
        "pydantic-core",
        "annotated-types",
        "typing-inspection",
        "threadpoolctl",
        "transformers>=4.57,<5",
    ),
    *(
        "huggingface-hub<1",
        "bert-score==0.3.13",
        "starlette",
        "uvicorn",
        "h11",
        "prometheus-client",
    ),
)
PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "any",
)
KERNELS = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
UNUSED = "onnxruntime/capi/libonnxruntime_providers_tensorrt.so"
SETUP = """\
tar xJf site.tar.xz
ln -sfn "$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])')" site/nvidia
for house in . evaluation service export models; do PYTHONPATH=$PWD/site/$house:$PYTHONPATH; done
export PYTHONPATH HF_HUB_OFFLINE=1
"""

# the mark of a container of kernels; the kind of machine code
CONTAINER, CUBIN = bytes.fromhex("50ed55ba"), 2


def main() -> None:
    """Download, shrink and pack."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--architecture",
        type=int,
        default=90,
        help="of the GPU: 80 A100, 89 L4 and L40S, 90 H100 and H200",
    )
    parser.add_argument("--python", default="3.12", help="the version on the machine")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        site = Path(temporary) / "site"
        download(PACKAGES, options.python, site)
        (site / UNUSED).unlink(missing_ok=True)
        library = site / KERNELS
        library.write_bytes(
            keep_kernels(library.read_bytes(), section(library), options.architecture)
        )
        for name in SOURCES:
            shutil.copytree(ROOT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        with tarfile.open(options.folder / "site.tar.xz", "w:xz", preset=9) as archive:
            archive.add(site, "site")
    (options.folder / "setup.sh").write_text(SETUP, encoding="utf-8")
    print(f"{(options.folder / 'site.tar.xz').stat().st_size / 1e6:.0f} MB in {options.folder}")


def download(packages: tuple[str, ...], python: str, site: Path) -> None:
    """Download packages for another Python, without what they need, and unpack them."""
    wheels = site.with_name("wheels")
    platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        *platforms,
    ]
    command += ["--python-version", python, "--implementation", "cp", "--dest", str(wheels)]
    for package in packages:  # one by one, as the versions of some exclude each other's
        subprocess.run([*command, package], check=True)
    for wheel in wheels.iterdir():
        shutil.unpack_archive(wheel, site, "zip")


def section(library: Path) -> slice:
    """Return the range of the section with the kernels."""
    command = ["/usr/bin/readelf", "-SW", str(library)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    [line] = [line for line in listing.splitlines() if " .nv_fatbin " in line]
    fields = line.partition("]")[2].split()  # name, type, address, offset, size
    begin = int(fields[3], 16)
    return slice(begin, begin + int(fields[4], 16))


def keep_kernels(library: bytes, section: slice, architecture: int) -> bytes:
    """Overwrite all kernels but those of one architecture by zeros; the layout stays."""
    content, at = bytearray(library), section.start
    while at < section.stop:
        if content[at : at + len(CONTAINER)] != CONTAINER:  # padding between containers
            at += 8
            continue
        header, size = struct.unpack_from("<HQ", content, at + 6)
        at, end = at + header, at + header + size
        while at < end:
            kind, _, header, size, *_, of_entry = struct.unpack_from("<HHIQIIHHI", content, at)
            if kind != CUBIN or of_entry != architecture:
                content[at + header : at + header + size] = bytes(size)
            at += header + size
    return bytes(content)


if __name__ == "__main__":
    main()
