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
            help="ORG/REPO, ORG/REPO@REVISION or ORG/REPO@REVISION/VARIANT on the Hugging Face hub, or the URL of a "
            "bundle's folder, such as https://… or s3://….",
        ),
    ],
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="REV", help="A branch, tag or commit.  [default: the default branch]"),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant", metavar="VARIANT", help="The variant, such as layer-17-slow-fp32.  [default: the only one]"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another bundle of this model and variant.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show a progress bar.  [default: on a terminal]")
    ] = False,
) -> None:
    """Download a bundle into the home folder.

    From then on, the name of its model selects it. An interrupted download resumes where it left off. Every file's
    digest is checked before the bundle appears. For private repositories, set HF_TOKEN. Needs the extra `hub`.

    Examples:
        # Download the only variant in a repository
        bertscore-onnx pull ORG/REPO
        # Download one variant at a revision
        bertscore-onnx pull ORG/REPO@REVISION --variant layer-17-slow-fp32
        # Download from a server
        bertscore-onnx pull https://example.org/roberta-large/layer-17-slow-fp32
    """
    from bertscore_onnx.hub import pull as pull_bundle

    folder = pull_bundle(source, revision=revision, variant=variant, force=force, progress=verbose or None)
    print(folder)
    echo(f"Score with it: bertscore-onnx score --model {shlex.quote(str(folder))} -c FILE -r FILE")
