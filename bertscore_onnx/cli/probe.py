"""Tries each execution provider on a matrix product, the graph of `probe.onnx`."""

from importlib.resources import files

import numpy as np

from bertscore_onnx.encoding.providers import PROVIDERS, Provider, load_onnxruntime
from bertscore_onnx.encoding.session import open_session


def probe_providers() -> dict[str, str | None]:
    """Run a matrix product on the providers that scoring may use.

    Returns:
        For each of them that ONNX Runtime offers, why it does not work; None where it does.
    """
    offered = load_onnxruntime().get_available_providers()
    return {provider.name: _probe(provider) for provider in PROVIDERS if provider.name in offered}


def _probe(provider: Provider) -> str | None:
    options = load_onnxruntime().SessionOptions()
    options.log_severity_level = 4
    graph = files("bertscore_onnx.cli").joinpath("probe.onnx").read_bytes()
    session, failure = open_session(graph, options, provider)
    if session is None:
        return failure
    matrix = np.array([[1, 2], [3, 4]], dtype=np.float32)
    try:
        product = session.run(None, {"a": matrix, "b": matrix})[0]
    except Exception as error:  # ONNX Runtime raises bare RuntimeErrors and its own untyped exceptions
        return str(error)
    return None if np.array_equal(product, matrix @ matrix) else f"a matrix product came out as {product.tolist()}"
