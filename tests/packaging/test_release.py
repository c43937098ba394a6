import io
import tarfile
import zipfile
from collections.abc import Callable

import pytest
from check_release import PACKAGES, SBOM, faults

from bertscore_onnx import __version__

INFO = f"bertscore_onnx-{__version__}.dist-info"
METADATA = f"{INFO}/METADATA"
HOME = "/" + "home/someone/project"  # in parts, since the source distribution holds this file
WINDOWS = "C:" + r"\Users\someone"
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def built(wheel, packages) -> tuple[Files, Files]:
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive]
        return files, {name.partition("/")[2]: file.read() for name, file in members if file}


@pytest.fixture
def changed(built, wheel, packages, tmp_path) -> Callable[..., list[str]]:
    """Returns a function that changes the files of both packages, and returns the faults that are
    then found.
    """
    [source] = packages.glob("*.tar.gz")

    def change(
        in_wheel: Callable[[Files], object] = dict, in_source: Callable[[Files], object] = dict
    ) -> list[str]:
        files, sources = map(dict, built)
        in_wheel(files)
        with zipfile.ZipFile(tmp_path / wheel.name, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        in_source(sources)
        # without compression, which takes half a second
        with tarfile.open(tmp_path / source.name, "w") as archive:
            for name, content in sources.items():
                member = tarfile.TarInfo(f"{source.name.removesuffix('.tar.gz')}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return faults(tmp_path / wheel.name, tmp_path / source.name)

    return change


def edit(old: str, new: str) -> Callable[[Files], None]:
    """Return a change of the metadata of a package, the README among them."""

    def change(files: Files) -> None:
        [name] = {METADATA, "PKG-INFO"} & {*files}
        text = files[name].decode()
        assert old in text
        files[name] = text.replace(old, new, 1).encode()

    return change


def add(name: str, content: bytes = b"") -> Callable[[Files], None]:
    return lambda files: files.update({name: content})


def remove(name: str) -> Callable[[Files], None]:
    return lambda files: files.pop(name)


def test_the_packages_have_no_fault(wheel, packages):
    [source] = packages.glob("*.tar.gz")
    assert faults(wheel, source) == []


WHEEL_CHANGES = {
    "no licence": (remove(f"{INFO}/licenses/LICENSE"), "licenses/LICENSE is missing"),
    "no notice of the tables": (
        remove(f"{INFO}/licenses/LICENSES/bert-score.txt"),
        "bert-score.txt is missing",
    ),
    "no components": (remove(f"{INFO}/sboms/{SBOM}"), f"{SBOM} is missing"),
    "no metadata": (remove(METADATA), "METADATA is missing"),
    "no command": (remove(f"{INFO}/entry_points.txt"), "the command bertscore-onnx is missing"),
    "a folder of tests": (add("tests/conftest.py"), "tests/conftest.py does not belong here"),
    "a test beside a module": (
        add("bertscore_onnx/test_scorer.py"),
        "test_scorer.py does not belong here",
    ),
    "bytecode": (
        add("bertscore_onnx/__pycache__/scorer.cpython-311.pyc"),
        ".pyc does not belong here",
    ),
    "a hidden file": (add("bertscore_onnx/.env"), ".env does not belong here"),
    "another package": (add("examples/demo.py"), "examples/demo.py does not belong here"),
    "a path of a machine": (add("bertscore_onnx/made.txt", HOME.encode()), HOME),
    "a path of Windows": (add("bertscore_onnx/made.txt", WINDOWS.encode()), "of a machine"),
}


@pytest.mark.parametrize("name", WHEEL_CHANGES)
def test_a_fault_of_the_wheel_is_found(changed, name):
    change, fault = WHEEL_CHANGES[name]
    [found] = changed(in_wheel=change)
    assert found.startswith(f"bertscore_onnx-{__version__}-py3-none-any.whl: ")
    assert fault in found


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_an_untyped_package_is_found(changed, package):
    [found] = changed(in_wheel=remove(f"{package}/py.typed"))
    assert f"{package}/py.typed is missing" in found


PICTURE = "https://github.com/owner/bertscore-onnx/raw/main/docs/images/matching.svg"
METADATA_CHANGES = {
    "a picture by its path": (PICTURE, "docs/images/matching.svg", "cannot be shown"),
    "a picture without TLS": (PICTURE, PICTURE.replace("https", "http"), "cannot be shown"),
    "a picture in the text": (PICTURE, "data:image/png;base64,AAAA", "cannot be shown"),
    "a page as a picture": (PICTURE, "https://example.org/picture.html", "cannot be shown"),
    "a picture that is not there": ("matching.svg", "absent.svg", "docs/images/absent.svg"),
    "a link by its path": (
        "https://github.com/owner/bertscore-onnx/blob/main/docs/tutorial.md",
        "docs/tutorial.md",
        "'docs/tutorial.md' leads nowhere",
    ),
    "a link to a file that is not there": (
        "blob/main/docs/tutorial.md",
        "blob/main/docs/absent.md",
        "absent.md",
    ),
    "an export without an upper bound": (
        "transformers<6,>=4.57",
        "transformers>=4.57",
        "cuts graphs",
    ),
    "a hub without an upper bound": (
        "huggingface-hub<3,>=0.34.4",
        "huggingface-hub>=0.34.4",
        "HTTP client",
    ),
    "a dependency without a lower bound": (
        "msgspec>=0.19",
        "msgspec",
        "msgspec has no lower bound",
    ),
    "a bounded dependency under another name": (
        "sacrebleu<3",
        "sacrebleu2<3",
        "sacrebleu, which needs",
    ),
    "an address without TLS": ("Repository, https", "Repository, http", "not an https address"),
    "no licence expression": ("License-Expression: MIT\n", "", "no License-Expression"),
    "no Python": ("Requires-Python: >=3.11\n", "", "no Requires-Python"),
}


@pytest.mark.parametrize("name", METADATA_CHANGES)
def test_a_fault_of_the_metadata_is_found(changed, name):
    old, new, fault = METADATA_CHANGES[name]
    assert fault in "\n".join(changed(edit(old, new), edit(old, new)))


SOURCE_CHANGES = {
    "no licence": (remove("LICENSE"), "LICENSE is missing"),
    "an environment": (add(".venv/pyvenv.cfg"), ".venv/pyvenv.cfg does not belong here"),
    "packages of node": (add("examples/web/node_modules/a/a.js"), "a.js does not belong here"),
    "other metadata": (edit("Name: bertscore-onnx", "Name: bertscore"), "not those of the wheel"),
    "a path of a machine": (add("docs/made.md", HOME.encode()), HOME),
}


@pytest.mark.parametrize("name", SOURCE_CHANGES)
def test_a_fault_of_the_source_is_found(changed, name):
    change, fault = SOURCE_CHANGES[name]
    [found] = [
        one
        for one in changed(in_source=change)
        if one.startswith(f"bertscore_onnx-{__version__}.tar.gz: ")
    ]
    assert fault in found
