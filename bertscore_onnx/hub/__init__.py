"""Bundles from and to the Hugging Face hub; needs the extra `hub`."""

from bertscore_onnx.hub.download import local_path, pull
from bertscore_onnx.hub.upload import push

__all__ = ["local_path", "pull", "push"]
