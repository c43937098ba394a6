import onnx

from bertscore_onnx.matching.on_device import GRAPH
from bertscore_onnx_export.graph.matching import matching_graph


def test_the_graph_of_the_runtime_is_the_one_written_here():
    """Write it again by `python -m bertscore_onnx_export.graph.matching
    bertscore_onnx/matching/greedy.onnx`.
    """
    assert onnx.load(GRAPH) == matching_graph()
