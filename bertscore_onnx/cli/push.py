"""`bertscore-onnx push`: publishes a bundle on the hub."""

from typing import Annotated

import typer

from bertscore_onnx.cli.terminal import tell


def push(
    bundle: Annotated[str, typer.Argument(help="The path of a bundle, or a model's name, as `score` takes it.")],
    repo: Annotated[
        str, typer.Argument(metavar="ORG/REPO", help="On the Hugging Face hub; it is made where it is not there.")
    ],
    private: Annotated[
        bool, typer.Option("--private", help="Let only the organisation see a repository that is made.")
    ] = False,
) -> None:
    """Publish a bundle on the Hugging Face hub.

    It goes into a folder of the repository that is named after its variant, in one commit, with a model card. Every
    file is checked by its digest first. Set HF_TOKEN to a token that may write. It takes the extra `hub`.
    """
    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import push as push_bundle

    name = push_bundle(resolve_bundle(bundle, all_layers=None).path, repo, private=private)
    print(name)
    tell(f"Score with it: bertscore-onnx score --model {name} -c FILE -r FILE")
