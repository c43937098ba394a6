"""`bertscore-onnx pull`: downloads a bundle."""

import shlex
from typing import Annotated

import typer

from bertscore_onnx.cli.terminal import echo


def pull(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="ORG/REPO, ORG/REPO@REVISION or ORG/REPO@REVISION/VARIANT on the Hugging Face hub. A revision is a "
            "branch, tag or commit.  [default: the default branch, and its only variant]",
        ),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace another bundle of this model and variant.")] = False,
) -> None:
    """Download a bundle into the home folder.

    From then on, the name of its model selects it. Every file's digest is checked before the bundle appears. For
    private repositories, set HF_TOKEN. Needs the extra `hub`.

    Examples:
        # Download the only variant in a repository
        bertscore-onnx pull ORG/REPO
        # Download one variant at a revision
        bertscore-onnx pull ORG/REPO@REVISION/layer-17-slow-fp32
    """
    from bertscore_onnx.hub import pull as pull_bundle

    folder = pull_bundle(source, force=force)
    print(folder)
    echo(f"Score with it: bertscore-onnx score --model {shlex.quote(str(folder))} -c FILE -r FILE")
