"""All errors that the library raises on purpose, in one tree.

BertScoreOnnxError
├── InputError (ValueError)             texts, files or options that cannot be scored
│   ├── InputTypeError (TypeError)      … because they are of the wrong type
│   └── IdfError                        … because all idf weights would be zero, or undefined
├── UnknownModelError (LookupError)     no such model in the catalogue or among the bundles
├── UnknownLayerError (LookupError)     the model has no such layer, or none was chosen
├── BaselineError (LookupError)         no baseline to rescale with
├── BundleError (ValueError)            a bundle that cannot be used
│   ├── BundleNotFoundError (FileNotFoundError)
│   ├── ManifestError                   bertscore.json is not JSON, or not a manifest
│   ├── FormatVersionError              written in another version of the format
│   ├── UnsafePathError                 names a file outside its own folder
│   ├── DigestError                     a file differs from the exported one
│   ├── TokenizerError                  the tokenizer's file is none, or a text exceeds its budget
│   ├── GraphError                      the graph does not match the manifest
│   └── GoldenScoreError                the golden pairs get other scores than at the export
├── HubError (OSError)                  a bundle cannot be pulled or pushed
│   └── HubUnreachableError             … because the server does not answer
├── MissingExtraError (ModuleNotFoundError)  an optional dependency is not installed
├── StandInError (ImportError)          bert-score is already imported, so it cannot be replaced
├── DeviceError (RuntimeError)          the requested device cannot run the model
├── EncodingError (RuntimeError)        the model returned something other than token vectors
│   └── OutOfMemoryError (MemoryError)  … because even a single text does not fit into memory
├── ClosedError (RuntimeError)          the scorer, or the batcher, was closed
│   └── DrainingError                   … or it finishes its requests and accepts no more
├── QueueFullError (RuntimeError)       more requests are waiting than allowed
├── DeadlineError (TimeoutError)        no score before the deadline
├── WorkerError (RuntimeError)          the scoring thread failed
├── ForkError (RuntimeError)            a batcher was used in a forked process
└── ExportError (RuntimeError)          a model cannot be exported
    ├── UnsupportedFamilyError          … because its architecture cannot be cut or traced
    └── VerificationError               the exported bundle does not reproduce the model's scores
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from typing import Any, get_args

MAX_MESSAGE = 4000
"""The most characters of a message that are printed."""

MOST_LISTED = 12


def one_line(message: object) -> str:
    """Return a message as one line of limited length.

    Control characters, which files may put into it, are escaped.
    """
    line = shortened(" ".join(str(message).splitlines()), MAX_MESSAGE)
    characters = []
    for character in line:
        characters.append(character if character.isprintable() else ascii(character)[1:-1])
    return "".join(characters)


def is_interrupt(error: BaseException) -> bool:
    """Return whether a signal handler raised an error, as for a time limit.

    Otherwise the library that was running raised it.
    """
    import signal  # costs start-up time, as `traceback` does

    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code not in codes:
        traceback = traceback.tb_next
    return traceback is not None


_JSON_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}
_JSON_FAULTS = {
    r"Object missing required field (`.+`)": "{where} lacks the field {}",
    r"Object contains unknown field (`.+`)": "{where} has an unknown field {}",
    r"Invalid enum value (.+)": "{where} has the unknown value {}",
    r"Number out of range": (
        "{where} is a number out of range; expected one that fits into 64 bits"
    ),
    r"JSON is malformed: .+ \(byte (\d+)\)": "{root} is malformed from byte {} on",
    r"Input data was truncated": "{root} ends too early",
}
"""Our words for msgspec's messages, by their patterns; other messages stay as they are."""


def json_fault(error: Exception, root: str = "it") -> str:
    """Return what msgspec found wrong in a JSON value, in our words.

    The value is called `root`.
    """

    def kinds(types: str) -> str:
        return " or ".join(_JSON_TYPES.get(name, name) for name in types.split(" | "))

    # msgspec has no fields for these facts, but a fixed text for each fault.
    message, _, path = one_line(error).partition(" - at `$")
    name = path.rstrip("`").removeprefix(".")
    where = f"`{name}`" if name else root
    if found := re.fullmatch(r"Expected `(.+)`, got `(.+)`", message):
        return f"{where} is {kinds(found[2])}; expected {kinds(found[1])}"
    if found := re.fullmatch(r"Expected `(.+)` (of length )?([<>]=?) (\S+)", message):
        of_length = "of a length of " if found[2] else ""
        return (
            f"{where} is out of range; expected {kinds(found[1])} {of_length}{_BOUNDS[found[3]]} "
            f"{found[4]}"
        )
    for pattern, fault in _JSON_FAULTS.items():
        if found := re.fullmatch(pattern, message):
            return fault.format(*found.groups(), where=where, root=root)
    return f"{where}: {message}" if name else message


def shortened(text: str, most: int = 40) -> str:
    """Return a text from a file as it is shown in a message.

    It has a limited number of characters there.
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def plural(number: int, noun: str) -> str:
    """Write a number of things, such as `3 systems`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def either(names: Iterable[str]) -> str:
    """Return names as the choices in a message, such as `a, b or c`."""
    *earlier, last = names
    return f"{', '.join(earlier)} or {last}" if earlier else last


def shown_names(names: Sequence[str]) -> str:
    """Return names from files or answers as they are listed in a message.

    It is a limited number, each of limited length.
    """
    if not names:
        return "none"
    names_in_list = ", ".join(shortened(name, 100) for name in names[:MOST_LISTED])
    if len(names) > MOST_LISTED:
        return f"{names_in_list} and {len(names) - MOST_LISTED:,} more"
    return names_in_list


def meant(name: str, names: Iterable[str]) -> str:
    """Return a question for the name that is most like an unknown one.

    It begins with a space, and is empty if no name is like the unknown one. Such a name has most of
    the letters in the same order, or begins with the unknown one, or the reverse.
    """
    by_case = {existing.lower(): existing for existing in names}
    wanted = name.lower()
    near = get_close_matches(wanted, list(by_case), n=1, cutoff=0.65)
    if not near:
        for existing in by_case:
            shorter, longer = sorted((wanted, existing), key=len)
            if len(shorter) > 2 and longer.startswith(shorter):
                near.append(existing)
    if not near:
        return ""
    return f" Did you mean {shortened(by_case[near[0]], 100)!r}?"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a message names.

    The command line writes it as an option.
    """

    name: str
    value: Any = None
    """The value to give, such as {"segment": "none"}; None if the name alone matters. "…" stands
    for further ones.
    """

    option: str = ""
    """The option, if it is not called `--name`."""

    def __str__(self) -> str:
        """Return it as Python has it."""
        if self.value is None:
            return f"`{self.name}`"
        from json import dumps  # costs start-up time

        value = dumps(self.value, ensure_ascii=False).replace('"…"', "…")
        return f"{self.name}={'True' if self.value is True else value}"


@dataclass(frozen=True, slots=True)
class OptionalStep:
    """A step that a message advises to leave out.

    The command line adds the typed command without its option.
    """

    name: str
    option: str

    def __str__(self) -> str:
        """Return its name."""
        return self.name


class BertScoreOnnxError(Exception):
    """Base of all errors that the library raises on purpose."""

    def __init__(self, *parts: object, **fields: Any) -> None:
        """Join the parts of a message.

        They are texts, and the arguments and steps that it names.
        """
        super().__init__("".join(map(str, parts)), **fields)
        self.parts = parts


class InputError(BertScoreOnnxError, ValueError):
    """Texts, files or options that cannot be scored."""


class InputTypeError(InputError, TypeError):
    """A text or an option is of the wrong type."""


class IdfError(InputError):
    """All idf weights would be zero, or undefined."""


class UnknownModelError(BertScoreOnnxError, LookupError):
    """No model of this name is in the catalogue or among the exported bundles."""


class UnknownLayerError(BertScoreOnnxError, LookupError):
    """The model has no such layer, or a layer has to be chosen."""


class BaselineError(BertScoreOnnxError, LookupError):
    """No baseline exists for this model, layer and language."""


class BundleError(BertScoreOnnxError, ValueError):
    """A bundle cannot be used."""


class BundleNotFoundError(BundleError, FileNotFoundError):
    """There is no bundle at the expected place, or it lacks a file."""


class ManifestError(BundleError):
    """The manifest is not JSON, or a field is missing or wrong."""


class FormatVersionError(BundleError):
    """The bundle was written in a format that this version does not read."""


class UnsafePathError(BundleError):
    """The manifest or the graph names a file outside the bundle's own folder."""


class DigestError(BundleError):
    """A file's SHA-256 differs from the one in the manifest."""


class TokenizerError(BundleError):
    """The tokenizer's file cannot be loaded, or a text exceeds its budget."""


class GraphError(BundleError):
    """The graph cannot be loaded, or does not match the manifest.

    Its inputs or its output are others than those there.
    """


class GoldenScoreError(BundleError):
    """The golden pairs get other scores than at the export."""


class HubError(BertScoreOnnxError, OSError):
    """A bundle cannot be pulled or pushed.

    It is refused, does not fit on the disk, or would replace something.
    """


class HubUnreachableError(HubError):
    """The hub cannot be reached, or failed; a retry may succeed."""


class MissingExtraError(BertScoreOnnxError, ModuleNotFoundError):
    """An optional dependency is needed and not installed."""


class StandInError(BertScoreOnnxError, ImportError):
    """The original bert-score was imported before its drop-in replacement."""


class DeviceError(BertScoreOnnxError, RuntimeError):
    """The requested device cannot run the model."""


class EncodingError(BertScoreOnnxError, RuntimeError):
    """The model returned something other than finite token vectors."""


class OutOfMemoryError(EncodingError, MemoryError):
    """A single text does not fit into the device's memory."""


class ClosedError(BertScoreOnnxError, RuntimeError):
    """The scorer or the batcher was closed.

    It was used after that, or was closed before the result was ready.
    """


class DrainingError(ClosedError):
    """The batcher finishes its requests and accepts no more."""


class QueueFullError(BertScoreOnnxError, RuntimeError):
    """The batcher's queue is full."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """An estimate of the seconds until the queue has capacity."""


class DeadlineError(BertScoreOnnxError, TimeoutError):
    """An item was not scored before its deadline."""


class WorkerError(BertScoreOnnxError, RuntimeError):
    """The scorer failed, and could not score anything else either."""


class ForkError(BertScoreOnnxError, RuntimeError):
    """A batcher was used in a process forked from its own.

    Its threads do not exist there.
    """


class ExportError(BertScoreOnnxError, RuntimeError):
    """A model cannot be exported."""


class UnsupportedFamilyError(ExportError):
    """The model's architecture cannot be cut at a layer, or cannot be traced."""


class VerificationError(ExportError):
    """The exported bundle does not reproduce the scores of its model."""


def check_choice(name: str, value: object, choice: Any) -> None:
    """Raise an InputError for a value that is none of those of a Literal."""
    choices = get_args(choice)
    if value not in choices:
        quoted = map('"{}"'.format, choices)
        raise InputError(f"{name} is {value!r}; expected {either(quoted)}.")


# Optional packages, which are imported where they are used.


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Raise a MissingExtraError if an import in the block fails.

    It has the command to install.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "bertscore_onnx"):
            raise
        extras = extra.split(",")
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed. Install the "
            f"extra{'s' * (len(extras) > 1)} {' and '.join(extras)}: {install_command(*extras)}.",
            name=package,
        ) from error


@contextmanager
def needs_package(package: str, message: str) -> Iterator[None]:
    """Raise a MissingExtraError with a message, if an import fails.

    The package is one that is in no extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(message, name=package) from error


def install_command(*extras: str) -> str:
    """Return the command that installs the packages of extras.

    It works wherever this package itself came from.
    """
    try:
        requirements = requires("bertscore-onnx") or []
    except PackageNotFoundError:  # it runs from its source folder
        requirements = [f".[{extra}]; extra == '{extra}'" for extra in extras]
    packages = []
    for extra in extras:
        for line in requirements:
            requirement, _, marker = line.replace('"', "'").partition(";")
            if marker.strip() == f"extra == '{extra}'":
                packages.append(requirement.strip())
    return f"`pip install {shlex.join(packages)}`"


def check_installed(packages: Iterable[str], extra: str, purpose: str) -> None:
    """Import packages that are needed later.

    So a missing one is reported before any work is done.
    """
    with needs_extra(extra, purpose):
        for package in packages:
            import_module(package)
