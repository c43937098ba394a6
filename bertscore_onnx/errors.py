"""Every error the library raises on purpose, in one tree.

BertScoreOnnxError
├── InputError (ValueError)             texts, files or options that cannot be scored
│   ├── InputTypeError (TypeError)      … because they are of the wrong type
│   └── IdfError                        … because they leave every idf weight at zero, or undefined
├── UnknownModelError (LookupError)     no such model in the catalogue or among the bundles
├── UnknownLayerError (LookupError)     the model has no such layer, or no layer was chosen
├── BaselineError (LookupError)         no baseline to rescale with
├── BundleError (ValueError)            a bundle that cannot be trusted
│   ├── BundleNotFoundError (FileNotFoundError)
│   ├── ManifestError                   bertscore.json is not JSON, or not a manifest
│   ├── FormatVersionError              written by another generation of this library
│   ├── UnsafePathError                 names a file outside its own folder
│   ├── DigestError                     a file is not the one that was exported
│   ├── TokenizerError                  tokenizer.json is not a tokenizer
│   ├── GraphError                      the graph is not the one the manifest describes
│   └── GoldenScoreError                the bundle no longer gives the scores it was exported with
├── HubError (OSError)                  a bundle cannot be pulled or pushed
│   └── HubUnreachableError             … because the other side does not answer
├── MissingExtraError (ModuleNotFoundError)  an optional dependency is not installed
├── StandInError (ImportError)          bert-score is imported already, so nothing can take its place
├── DeviceError (RuntimeError)          the device asked for cannot run the model
├── EncodingError (RuntimeError)        the model gave something that is not a token vector
│   └── OutOfMemoryError (MemoryError)  … because not even a single text fits into memory
├── ClosedError (RuntimeError)          the scorer, or the batcher, was closed
│   └── DrainingError                   … or finishes what it has and takes no more
├── QueueFullError (RuntimeError)       more is waiting to be scored than was allowed
├── DeadlineError (TimeoutError)        no score in the time that was given
├── WorkerError (RuntimeError)          the thread that scored broke down
├── ForkError (RuntimeError)            a batcher was used in a process forked from its own
└── ExportError (RuntimeError)          a model cannot be exported
    ├── UnsupportedFamilyError          … because its architecture cannot be cut or traced
    └── VerificationError               the exported bundle does not give the model's own scores
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module


def one_line(message: object) -> str:
    """Return a message as one line without control characters, whatever a bundle or a library put into it."""
    line = " ".join(str(message).splitlines())
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


class BertScoreOnnxError(Exception):
    """Base of every error this library raises on purpose."""


class InputError(BertScoreOnnxError, ValueError):
    """Texts, files or options cannot be scored as given."""


class InputTypeError(InputError, TypeError):
    """A text or an option is of the wrong type."""


class IdfError(InputError):
    """The idf table would leave weights undefined, or all at zero."""


class UnknownModelError(BertScoreOnnxError, LookupError):
    """No model of this name is in the catalogue or among the exported bundles."""


class UnknownLayerError(BertScoreOnnxError, LookupError):
    """The model has no such layer, or nothing says which layer to take."""


class BaselineError(BertScoreOnnxError, LookupError):
    """No baseline exists for this model, layer and language."""


class BundleError(BertScoreOnnxError, ValueError):
    """A bundle cannot be used."""


class BundleNotFoundError(BundleError, FileNotFoundError):
    """No bundle lies where one was expected, or one of its files is missing."""


class ManifestError(BundleError):
    """The manifest is not JSON, or lacks or misstates a field."""


class FormatVersionError(BundleError):
    """The bundle was written in a format that this version does not read."""


class UnsafePathError(BundleError):
    """The manifest or the graph names a file outside the bundle's own folder."""


class DigestError(BundleError):
    """A file's SHA-256 differs from the one in the manifest."""


class TokenizerError(BundleError):
    """The bundle's `tokenizer.json` cannot be loaded."""


class GraphError(BundleError):
    """The graph cannot be loaded, or its inputs or output are not those the manifest describes."""


class GoldenScoreError(BundleError):
    """The golden sentences no longer get the scores they had at export."""


class HubError(BertScoreOnnxError, OSError):
    """A bundle cannot be pulled or pushed as things are: it is refused, does not fit, or something stands there."""


class HubUnreachableError(HubError):
    """The hub, or the store, cannot be reached or broke down; the same may work later."""


class MissingExtraError(BertScoreOnnxError, ModuleNotFoundError):
    """An optional dependency is needed and not installed."""


class StandInError(BertScoreOnnxError, ImportError):
    """The true bert-score was imported before its stand-in was installed."""


class DeviceError(BertScoreOnnxError, RuntimeError):
    """The device asked for cannot run the model."""


class EncodingError(BertScoreOnnxError, RuntimeError):
    """The model gave something other than finite token vectors."""


class OutOfMemoryError(EncodingError, MemoryError):
    """A single text does not fit into the device's memory."""


class ClosedError(BertScoreOnnxError, RuntimeError):
    """The scorer or the batcher was used after it was closed, or closed before it had answered."""


class DrainingError(ClosedError):
    """The batcher finishes what it has and takes nothing more."""


class QueueFullError(BertScoreOnnxError, RuntimeError):
    """As many items are waiting as the batcher allows."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """In how many seconds there is likely to be room, an estimate."""


class DeadlineError(BertScoreOnnxError, TimeoutError):
    """An item was not scored in the time it was given."""


class WorkerError(BertScoreOnnxError, RuntimeError):
    """The thread that scored the item broke down; another takes its place."""


class ForkError(BertScoreOnnxError, RuntimeError):
    """A batcher was used in a process forked from the one that made it; its threads are not there."""


class ExportError(BertScoreOnnxError, RuntimeError):
    """A model cannot be exported."""


class UnsupportedFamilyError(ExportError):
    """The model's architecture cannot be cut at a layer, or cannot be traced."""


class VerificationError(ExportError):
    """The exported bundle does not give the scores of the model it came from."""


# Packages that only some need: those of the extras, imported where they are used.


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Say what to install where a package that is imported in the block is missing, or one that it needs itself."""
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "bertscore_onnx"):
            raise
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed. Install it with "
            f"`pip install 'bertscore-onnx[{extra}]'`.",
            name=package,
        ) from error


def check_installed(packages: Iterable[str], extra: str, purpose: str) -> None:
    """Import packages that are needed later, so that a missing one is told before any work is done."""
    with needs_extra(extra, purpose):
        for package in packages:
            import_module(package)
