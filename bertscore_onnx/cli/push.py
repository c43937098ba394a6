"""`bertscore-onnx push`: publishes a bundle on the hub."""

from typing import Annotated

import typer

from bertscore_onnx.cli.terminal import echo


def push(
    bundle: Annotated[
        str, typer.Argument(metavar="BUNDLE", help="The path of a bundle, or a model's name, as for `score`.")
    ],
    repo: Annotated[
        str,
        typer.Argument(metavar="ORG/REPO", help="A repository on the Hugging Face hub; created if it does not exist."),
    ],
    private: Annotated[bool, typer.Option("--private", help="Create the repository as a private one.")] = False,
) -> None:
    """Publish a bundle on the Hugging Face hub.

    Uploads the bundle in one commit, with a model card, into a folder named after its variant. Every file's digest is
    checked first. Set HF_TOKEN to a token with write permission. Needs the extra `hub`.

    Examples:
        # Publish a bundle in a private repository
        bertscore-onnx push BUNDLE ORG/REPO --private
    """
    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import push as push_bundle

    name = push_bundle(resolve_bundle(bundle, all_layers=None).path, repo, private=private)
    print(name)
    echo(f"Score with it: bertscore-onnx score --model {name} -c FILE -r FILE")
