"""Bundles from and to the Hugging Face hub, and from stores of one's own; needs the extra `hub`."""

from bertscore_onnx.hub.pulling import pull
from bertscore_onnx.hub.pushing import push

__all__ = ["pull", "push"]
