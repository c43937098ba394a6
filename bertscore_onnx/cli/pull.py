"""`bertscore-onnx pull`: brings a bundle into the store."""

import shlex
from typing import Annotated

import typer

from bertscore_onnx.cli.terminal import tell


def pull(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="ORG/REPO, ORG/REPO@REVISION or ORG/REPO@REVISION/VARIANT on the Hugging Face hub, or the URL of a "
            "bundle's folder, such as https://… or s3://….",
        ),
    ],
    revision: Annotated[
        str | None, typer.Option(metavar="REV", help="A branch, tag or commit.  [default: the default branch]")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(metavar="VARIANT", help="Such as layer-17-slow-fp32.  [default: the only one there]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another bundle of this model and variant.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show a progress bar.  [default: on a terminal]")
    ] = False,
) -> None:
    """Bring a bundle into the home folder, where its model's name finds it.

    What was broken off goes on where it stopped. Every file is checked by its digest before the bundle appears. For
    repositories that are not public, set HF_TOKEN. It takes the extra `hub`.
    """
    from bertscore_onnx.hub import pull as pull_bundle

    folder = pull_bundle(source, revision=revision, variant=variant, force=force, progress=verbose or None)
    print(folder)
    tell(f"Score with it: bertscore-onnx score --model {shlex.quote(str(folder))} -c FILE -r FILE")
