"""Checks the packages of a release: their files, and that they work where nothing else of this
project is.

`make release-check` runs `python scripts/check_release.py FOLDER`. `FOLDER/dist` holds a wheel and
a source distribution, and `FOLDER/minilm` a bundle. Each package is installed into an environment
in the folder, with its extra `cpu`, and runs `examples/demo.py` there.
"""

import email
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from readme_renderer import markdown

ROOT = Path(__file__).parents[1]
SBOM = "bertscore-onnx.cdx.json"
PACKAGES = {
    "bertscore_onnx",
    "bertscore_onnx_evaluation",
    "bertscore_onnx_export",
    "bertscore_onnx_models",
    "bertscore_onnx_service",
}
BOUNDED = {
    "huggingface-hub": (
        "its major versions change the errors and the HTTP client that pulls and pushes handle"
    ),
    "sacrebleu": (
        "a major version may change BLEU, chrF and TER, which reports show beside BERTScore"
    ),
    "transformers": "the export cuts graphs at modules inside its models",
}
"""Dependencies that need an upper bound, and why.

Others have none: a bound would keep users from versions that their other packages need. The job
`newest` tests them, and the golden scores of a bundle find a version that changes scores.
"""
NOT_IN_WHEEL = re.compile(
    r"(^|/)(tests?|__pycache__|node_modules|\.[^/]*|conftest\.py|test_[^/]*\.py|[^/]*\.pyc)(/|$)"
)
NOT_IN_SOURCE = re.compile(r"(^|/)(__pycache__|node_modules|\.venv|build|dist|[^/]*\.pyc)(/|$)")
MACHINE = re.compile(
    r"(?<![\w.])/(home|Users|root|tmp|private|builds)/\w[^\s\"'`)]*|\b[A-Z]:\\+Users\\+\w+"
)
PICTURES = (".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp")
BADGES = "img.shields.io"


class Addresses(HTMLParser):
    """The pictures and links of a page."""

    def __init__(self) -> None:
        """Prepare the parser."""
        super().__init__()
        self.pictures: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the address of an element."""
        values = dict(attrs)
        if tag == "img":
            self.pictures.append(values.get("src") or "")
        elif tag == "a" and "href" in values:
            self.links.append(values["href"] or "")


def faults(wheel: Path, source: Path) -> list[str]:
    """Return the faults of a wheel and of the source distribution beside it."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sources = _sources(source)
    info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    if f"{info}/METADATA" not in files:
        return [f"{wheel.name}: {info}/METADATA is missing"]
    metadata = email.message_from_string(files[f"{info}/METADATA"].decode())
    of_wheel = [
        *_wheel_faults(files, info),
        *_metadata_faults(metadata),
        *_dependency_faults(metadata),
        *_readme_faults(metadata, {*sources}),
        *_machine_faults(files),
    ]
    of_source = [
        f"{name} is missing" for name in ("LICENSE", "README.md", "PKG-INFO") if name not in sources
    ]
    of_source += [f"{name} does not belong here" for name in sources if NOT_IN_SOURCE.search(name)]
    if sources.get("PKG-INFO") != files[f"{info}/METADATA"]:
        of_source.append("its metadata are not those of the wheel")
    of_source += _machine_faults(sources)
    return [
        f"{file.name}: {fault}"
        for file, found in ((wheel, of_wheel), (source, of_source))
        for fault in found
    ]


def _sources(source: Path) -> dict[str, bytes]:
    """Return the files of a source distribution by their path in its folder."""
    with tarfile.open(source) as archive:
        members = [
            (member.name.partition("/")[2], archive.extractfile(member)) for member in archive
        ]
        return {name: file.read() for name, file in members if file is not None}


def _wheel_faults(files: dict[str, bytes], info: str) -> Iterator[str]:
    """Yield files that are missing, and those that do not belong into a wheel."""
    # ours; that of bert-score's tables; the components (PEP 770)
    notices = ["licenses/LICENSE", "licenses/LICENSES/bert-score.txt", f"sboms/{SBOM}"]
    for name in [
        *(f"{info}/{notice}" for notice in notices),
        *(f"{package}/py.typed" for package in sorted(PACKAGES)),
    ]:
        if name not in files:
            yield f"{name} is missing"
    for name in files:
        if name.partition("/")[0] not in {*PACKAGES, info} or NOT_IN_WHEEL.search(name):
            yield f"{name} does not belong here"
    if b"bertscore-onnx = bertscore_onnx.__main__:main" not in files.get(
        f"{info}/entry_points.txt", b""
    ):
        yield "the command bertscore-onnx is missing"


def _metadata_faults(metadata: Message) -> Iterator[str]:
    """Yield fields that are missing or lead nowhere."""
    for field in (
        "Summary",
        "License-Expression",
        "License-File",
        "Requires-Python",
        "Description-Content-Type",
    ):
        if not metadata[field]:
            yield f"the metadata have no {field}"
    for line in metadata.get_all("Project-URL", []):
        if urlsplit(line.partition(", ")[2]).scheme != "https":
            yield f"the Project-URL {line!r} is not an https address"


def _dependency_faults(metadata: Message) -> Iterator[str]:
    """Yield dependencies without a bound that they need."""
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    for requirement in requirements:
        if not {">=", "==", "~="} & {one.operator for one in requirement.specifier}:
            yield f"the requirement {requirement} has no lower bound"
        if requirement.name in BOUNDED and not {"<", "<=", "==", "~="} & {
            one.operator for one in requirement.specifier
        }:
            yield f"the requirement {requirement} has no upper bound: {BOUNDED[requirement.name]}"
    for name in sorted(BOUNDED.keys() - {requirement.name for requirement in requirements}):
        yield f"{name}, which needs an upper bound, is not required"


def _readme_faults(metadata: Message, sources: set[str]) -> Iterator[str]:
    """Yield what a package index would not show of the README, as its own renderer shows it."""
    page = markdown.render(metadata.get_payload(), stream=io.StringIO())
    if not page:
        yield "the README cannot be rendered"
        return
    addresses = Addresses()
    addresses.feed(page)
    repositories = re.findall(
        r"^Repository, (.*)$", "\n".join(metadata.get_all("Project-URL", [])), re.MULTILINE
    )
    if not addresses.pictures:
        yield "the README has no picture"
    for picture in addresses.pictures:
        parts = urlsplit(picture)
        if parts.scheme != "https" or not (
            parts.netloc == BADGES or parts.path.lower().endswith(PICTURES)
        ):
            yield (
                f"the README's picture {picture!r} cannot be shown: it is not an https address of "
                "a picture"
            )
    for link in addresses.links:
        if urlsplit(link).scheme != "https" and not link.startswith("#"):
            yield f"the README's link {link!r} leads nowhere: it is not an https address"
    for address in [*addresses.pictures, *addresses.links]:
        for repository in repositories:
            found = re.match(rf"{re.escape(repository)}/(?:raw|blob)/[^/]+/([^#?]+)", address)
            if found and found[1] not in sources:
                yield f"the README names {found[1]}, which the repository does not have"


def _machine_faults(files: dict[str, bytes]) -> Iterator[str]:
    """Yield paths of the machine that built the packages, or of any other."""
    own = [str(path) for path in (ROOT, Path.home(), sys.prefix) if len(Path(path).parts) > 2]
    for name, content in files.items():
        text = content.decode("utf-8", errors="ignore")
        found = MACHINE.search(text)
        for path in [found[0]] if found else [path for path in own if path in text][:1]:
            yield f"{name} has the path {path!r} of a machine"


def install(package: Path, environment: Path) -> None:
    """Make an environment with a package and its extra `cpu`, in the versions of
    `constraints.txt`.
    """
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        _python(environment),
    ]
    options = ["--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([*pip, "install", *options, f"{package.resolve()}[cpu]"], check=True)
    subprocess.run([*pip, "check"], check=True, stdout=subprocess.DEVNULL)
    for record in environment.rglob("direct_url.json"):
        # with the path of the package on this machine, which sbom.json would repeat
        record.unlink()


def demonstrate(environment: Path, demo: Path, bundle: Path) -> str:
    """Run the demo and the command in an environment, with nothing else on the path; return what
    the demo prints.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    python = _python(environment)

    def run(*command: str | Path) -> str:
        return subprocess.run(
            command,
            cwd=demo.parent,
            env=variables,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ).stdout

    home = run(python, "-c", "import bertscore_onnx; print(bertscore_onnx.__file__)").strip()
    if not Path(home).resolve().is_relative_to(environment.resolve()):
        sys.exit(f"{environment.name}: bertscore_onnx is imported from {home}.")
    absent = (
        "import importlib.util as u; print(*filter(u.find_spec, ['torch', 'transformers', 'onnx']))"
    )
    if found := run(python, "-c", absent).strip():
        sys.exit(f"{environment.name}: {found} is installed.")
    run(python.with_name("bertscore-onnx"), "inspect", bundle.resolve())
    return run(python, demo.name, bundle.resolve())


def _python(environment: Path) -> Path:
    return environment.resolve() / (
        "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    )


def main(folder: Path) -> None:
    """Check the packages of a folder."""
    [wheel], [source] = folder.glob("dist/*.whl"), folder.glob("dist/*.tar.gz")
    if found := faults(wheel, source):
        sys.exit("\n".join(found))
    print(f"{wheel.name} and {source.name} have no fault.")
    demo = folder / "demo" / "demo.py"
    demo.parent.mkdir(exist_ok=True)
    demo.write_bytes(_sources(source)["examples/demo.py"])
    printed = set()
    for package, name in ((wheel, "wheel"), (source, "source")):
        install(package, folder / name)
        printed.add(demonstrate(folder / name, demo, folder / "minilm"))
        print(f"{package.name} scores without PyTorch.")
    if len(printed) != 1:
        sys.exit("The two packages print other scores.")
    print(*printed)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
