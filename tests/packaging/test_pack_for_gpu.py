"""The script that packs what a machine with a GPU and no network needs, without the downloads."""

import struct
import sys
import tarfile

from tests.support.bundles import ROOT

sys.path.append(str(ROOT / "scripts"))
import pack_for_gpu

CODE, ASSEMBLY = 2, 1


def entry(kind, architecture, code):
    return struct.pack("<HHIQIIHHI", kind, 0, 32, len(code), 0, 0, 0, 0, architecture) + code


def library():
    """Return a library with two containers of kernels, its section of kernels, and what is left of
    it for 90.
    """

    def content(kernels):
        containers = [kernels[:3], kernels[3:]]
        parts = [
            struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(b"".join(part))) + b"".join(part)
            for part in containers
        ]
        return b"before--" + (bytes(16)).join(parts) + bytes(8) + b"after"

    kernels = [
        (CODE, 80, b"eighty.."),
        (CODE, 90, b"ninety.."),
        (ASSEMBLY, 90, b"text"),
        (CODE, 90, b"more"),
    ]
    whole = content([entry(*kernel) for kernel in kernels])
    kept = [code if (kind, of) == (CODE, 90) else bytes(len(code)) for kind, of, code in kernels]
    rest = content(
        [entry(kind, of, code) for (kind, of, _), code in zip(kernels, kept, strict=True)]
    )
    return whole, slice(8, len(whole) - len(b"after")), rest


def test_kernels_of_other_architectures_become_zeros():
    whole, section, rest = library()
    assert pack_for_gpu.keep_kernels(whole, section, 90) == rest
    assert len(rest) == len(whole)


def test_the_archive_has_the_library_the_packages_and_a_setup(tmp_path, monkeypatch):
    whole, section, rest = library()

    def download(packages, python, site):
        assert {"onnxruntime-gpu", "bert-score==0.3.13", "starlette"} <= {*packages}
        (site / pack_for_gpu.KERNELS).parent.mkdir(parents=True)
        (site / pack_for_gpu.KERNELS).write_bytes(whole)

    monkeypatch.setattr(pack_for_gpu, "download", download)
    monkeypatch.setattr(pack_for_gpu, "section", lambda library: section)
    monkeypatch.setattr(sys, "argv", ["pack_for_gpu.py", str(tmp_path)])
    pack_for_gpu.main()
    with tarfile.open(tmp_path / "site.tar.xz") as archive:
        names = archive.getnames()
        assert archive.extractfile(f"site/{pack_for_gpu.KERNELS}").read() == rest
    assert {
        "site/bertscore_onnx/matching/greedy.onnx",
        "site/benchmarks/gpu.py",
        "site/harness/gpu.py",
    } <= {*names}
    assert "site.tar.xz" in (tmp_path / "setup.sh").read_text(encoding="utf-8")
