"""The fenced blocks of the documents, and the comparison of shown output with printed output."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ("python", "console")
"""Languages of blocks that are run."""

MARK = re.compile(r"<!-- not run: (?P<reason>.+) -->")
"""The line above a block that cannot be run here."""

NEED = re.compile(r"<!-- with (?P<material>\S+) -->")
"""The line above a block that runs only with an engine or with public material."""

PROMISE = 1e-5
"""By how much scores may differ between machines."""

NUMBER = re.compile(r"-?\d+\.(\d+)")


@dataclass(frozen=True)
class Snippet:
    """A block of a document."""

    place: str
    """Its document and line, for the test's name."""

    language: str
    text: str
    output: str | None
    """What the block directly below a Python block shows, in the language `text`."""

    reason: str | None
    """Why it is not run, or None."""

    material: str | None = None
    """The engine that it needs, or the file or folder of public material by the name it has there;
    None for none.
    """

    def commands(self) -> list[tuple[str, str]]:
        """Return the commands of a console block, each with the output that is shown for it."""
        starts = [match.start() for match in re.finditer(r"^\$ ", self.text, flags=re.MULTILINE)]
        assert starts[0] == 0, f"{self.place} begins with output"
        commands = []
        for start, end in pairwise([*starts, len(self.text)]):
            found = re.match(r"\$ ((?:.*\\\n)*.*)\n?", self.text[start:end])
            assert found
            commands.append((found[1], self.text[start + found.end() : end]))
        return commands


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def copy_examples(folder: Path) -> None:
    """Copy the examples into a reader's folder, without what their builds leave there."""
    ignored = shutil.ignore_patterns("node_modules", "site")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=ignored)


def run_in_bash(command: str) -> str:
    """Run a command that has to succeed; return all that it prints."""
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def snippets(document: Path, *languages: str) -> Iterator[Snippet]:
    """Yield the blocks of a document in these languages ("" for none), by default those that can be
    run.
    """
    lines = document.read_text(encoding="utf-8").splitlines()
    blocks = list(_blocks(lines))
    for number, (start, end, language) in enumerate(blocks):
        if language not in (languages or RUN):
            continue
        below = blocks[number + 1] if number + 1 < len(blocks) else None
        shows = (
            below is not None
            and below[2] == "text"
            and not "".join(lines[end + 1 : below[0]]).strip()
        )
        above = lines[start - 1] if start else ""
        mark, need = MARK.fullmatch(above), NEED.fullmatch(above)
        yield Snippet(
            f"{document.relative_to(ROOT)}:{start + 1}",
            language,
            "\n".join(lines[start + 1 : end]) + "\n",
            "\n".join(lines[below[0] + 1 : below[1]])
            if below and shows and language == "python"
            else None,
            mark["reason"] if mark else None,
            need["material"] if need else None,
        )


def _blocks(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, the last line and the language of each fenced block."""
    start = None
    for number, line in enumerate(lines):
        if line.startswith("```") and start is None:
            start = number
        elif line == "```" and start is not None:
            yield start, number, lines[start].removeprefix("```").strip()
            start = None
    assert start is None, f"a block that begins in line {start} does not end"


def difference(shown: str, came: str) -> str | None:
    """Compare shown output with printed output; return a description of the difference, or None.

    `…` stands for anything, as the first line for any lines or none. A number with decimals may
    differ by one unit of the last digit that is shown, and by 1e-5; spaces may follow it, with
    which numpy pads an array.
    """
    parts = re.split(rf"(\A…\n|…|{NUMBER.pattern.replace('(', '(?:')})", shown.strip())
    pattern = "".join(_pattern(part) for part in parts)
    found = re.fullmatch(pattern, came.strip(), flags=re.DOTALL)
    if found is None:
        return f"The text differs. Shown:\n{shown}\nCame:\n{came}"
    numbers = [match for part in parts if (match := NUMBER.fullmatch(part))]
    for number, value in zip(numbers, found.groups(), strict=True):
        if abs(float(number[0]) - float(value)) > max(1.01 * 10 ** -len(number[1]), PROMISE):
            return f"{number[0]} is shown, and {value} came:\n{came}"
    return None


def _pattern(part: str) -> str:
    if part.startswith("…"):
        return ".*?" if part == "…" else r"(?:.*?\n)?"
    return r"(-?\d+\.\d+) *" if NUMBER.fullmatch(part) else re.escape(part)
