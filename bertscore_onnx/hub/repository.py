"""A repository of the Hugging Face hub at one commit.

It is read by huggingface_hub, whose errors become ours.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from bertscore_onnx import errors
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import (
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    InputError,
    shown_names,
)
from bertscore_onnx.hub.source import HubSource


class Repository:
    """The files of a repository at one commit; later pushes are not seen."""

    def __init__(self, source: HubSource, token: str | None = None) -> None:
        """Request the commit and the list of files.

        Without a token, huggingface_hub uses its own.
        """
        self.source = source
        self.name = str(HubSource(source.repo, source.revision))
        client = load_client()
        self.api = client.HfApi(token=token, library_name="bertscore-onnx")
        with hub_errors(self.name):
            timeout = client.constants.HF_HUB_DOWNLOAD_TIMEOUT
            info = self.api.model_info(source.repo, revision=source.revision, timeout=timeout)
            self.commit: str = info.sha
            self.is_private = bool(info.private)
            self.files: list[str] = [file.rfilename for file in info.siblings or []]
        folders = []
        for file in self.files:
            path = PurePosixPath(file)
            if path.name == MANIFEST:
                folder = str(path.parent)
                folders.append("" if folder == "." else folder)
        self.folders = sorted(folders)
        """The folders that hold a bundle; an empty string if the repository itself does."""

    def folder(self) -> str:
        """Return the folder of the variant that the source names.

        Without a variant it is the only folder that holds a bundle.
        """
        variant = self.source.variant
        names = shown_names([folder or "(the repository itself)" for folder in self.folders])
        if variant in self.folders:
            return str(variant)
        if not self.folders:
            raise BundleNotFoundError(
                f"{self.name} holds no bundle: no folder of it has a {MANIFEST}."
            )
        if variant is not None:
            raise BundleNotFoundError(
                f"{self.name} has no variant {variant!r}. Its variants are: {names}."
            )
        if len(self.folders) > 1:
            example = f"{self.name}/{errors.shortened(self.folders[-1], 100)}"
            raise InputError(
                f"{self.name} has several variants: {names}. Name one, such as {example}."
            )
        return self.folders[0]

    def download(self, paths: Iterable[str], root: Path) -> None:
        """Download files by their paths in the repository.

        These become their paths below a folder.
        """
        with hub_errors(self.name):
            for path in paths:
                self.api.hf_hub_download(
                    self.source.repo, path, revision=self.commit, local_dir=root
                )


def load_client() -> Any:
    """Import huggingface_hub.

    Raise a MissingExtraError if it is not installed.
    """
    with errors.needs_extra("hub", "Pulling and pushing bundles"):
        import huggingface_hub
    import huggingface_hub.constants
    import huggingface_hub.errors

    return huggingface_hub


@contextmanager
def hub_errors(name: str) -> Iterator[None]:
    """Turn the errors of huggingface_hub and its HTTP library into ours.

    They name the repository.
    """
    client = load_client().errors
    try:
        yield
    except errors.BertScoreOnnxError:
        raise
    except client.RevisionNotFoundError as error:
        raise BundleNotFoundError(
            f"{name} does not exist: the repository has no such revision."
        ) from error
    except client.GatedRepoError as error:
        raise HubError(
            f"{name} is gated. Request access on the repository's page, and set HF_TOKEN."
        ) from error
    except client.RepositoryNotFoundError as error:  # a hub does not reveal private repositories
        raise BundleNotFoundError(
            f"There is no repository {name}, or it is private: then set HF_TOKEN to a token with "
            "access."
        ) from error
    except (client.LocalEntryNotFoundError, client.OfflineModeIsEnabled) as error:
        raise HubUnreachableError(f"{name} cannot be reached: {_cause(error)}.") from error
    except client.EntryNotFoundError as error:
        raise BundleNotFoundError(f"{name} lacks a file of its bundle: {_cause(error)}.") from error
    except client.HfHubHTTPError as error:
        status = error.response.status_code
        kind = HubUnreachableError if status == 429 or status >= 500 else HubError
        raise kind(f"{name} refused the request ({status}): {_cause(error)}.") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise HubError(f"{name} did not answer as a hub does: {_cause(error)}.") from error
    except Exception as error:
        if (
            isinstance(error, OSError)
            and error.errno is not None
            and not isinstance(error, ConnectionError)
        ):
            raise  # of the disk
        raise HubUnreachableError(
            f"{name} cannot be reached: {_cause(error)}. Try again."
        ) from error


def _cause(error: BaseException) -> str:
    """Return the message of the first error in a chain.

    HTTP libraries wrap errors many times.
    """
    while (first := error.__cause__ or error.__context__) is not None:
        error = first
    return errors.shortened(errors.one_line(error).rstrip(".") or type(error).__name__, 300)
