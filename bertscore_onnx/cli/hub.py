"""`bertscore-onnx pull` and `push`: bundles from and to the hub."""

import shlex
from typing import Annotated

import typer

from bertscore_onnx.cli.terminal import echo


def pull(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="ORG/REPO, ORG/REPO@REVISION or ORG/REPO@REVISION/VARIANT on the Hugging Face "
            "hub. A revision is a branch, tag or commit.  [default: the default branch, and its "
            "only variant]",
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace another bundle of this model and variant.")
    ] = False,
) -> None:
    """Download a bundle into the home folder.

    From then on, the name of its model selects it. Every file's digest is checked before the bundle
    appears. For private repositories, set HF_TOKEN. Needs the extra `hub`.

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


def push(
    bundle: Annotated[
        str,
        typer.Argument(
            metavar="BUNDLE", help="The path of a bundle, or a model's name, as for `score`."
        ),
    ],
    repo: Annotated[
        str,
        typer.Argument(
            metavar="ORG/REPO",
            help="A repository on the Hugging Face hub; created if it does not exist.",
        ),
    ],
    private: Annotated[
        bool, typer.Option("--private", help="Create the repository as a private one.")
    ] = False,
) -> None:
    """Publish a bundle on the Hugging Face hub.

    Uploads the bundle in one commit, with a model card, into a folder named after its variant.
    Every file's digest is checked first. Set HF_TOKEN to a token with write permission. Needs the
    extra `hub`.

    Examples:
        # Publish a bundle in a private repository
        bertscore-onnx push BUNDLE ORG/REPO --private
    """
    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import push as push_bundle

    name = push_bundle(resolve_bundle(bundle, all_layers=None).path, repo, private=private)
    print(name)
    echo(f"Score with it: bertscore-onnx score --model {name} -c FILE -r FILE")
