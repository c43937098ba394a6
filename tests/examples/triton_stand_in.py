"""A stand-in for a Triton server, for want of one: it serves a model repository by KServe's
protocol over gRPC.

The configuration is read by Triton's own protobuf. A request has to be what that says, the graph is
run on it by ONNX Runtime, and has to give what that says; the answer has the shapes of the
configuration.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import onnxruntime
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

DTYPES = {"INT64": np.int64, "FP32": np.float32}


class Server(service_pb2_grpc.GRPCInferenceServiceServicer):
    """Serves the models of a repository."""

    def __init__(self, repository: Path) -> None:
        self.shapes: list[tuple[int, ...]] = []
        """Of the first input of each request."""
        self._models = {folder.name: Model(folder) for folder in repository.iterdir()}

    def ModelConfig(self, request, context):  # noqa: N802 -- the protocol's name
        return service_pb2.ModelConfigResponse(config=self._model(request.name, context).config)

    def ModelInfer(self, request, context):  # noqa: N802 -- likewise
        model = self._model(request.model_name, context)
        self.shapes.append(tuple(request.inputs[0].shape))
        try:
            return model.infer(request)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _model(self, name, context):
        if name not in self._models:
            context.abort(grpc.StatusCode.NOT_FOUND, f"unknown model: {name}")
        return self._models[name]


class Model:
    """One model of a repository."""

    def __init__(self, folder: Path) -> None:
        self.config = text_format.Parse(
            (folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig()
        )
        assert (self.config.name, self.config.backend) == (folder.name, "onnxruntime")
        assert self.config.dynamic_batching.max_queue_delay_microseconds > 0
        graph = folder / "1" / self.config.default_model_filename
        self._session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        assert {node.name for node in self._session.get_inputs()} == {
            node.name for node in self.config.input
        }

    def infer(self, request):
        arrays = {}
        for tensor, raw in zip(request.inputs, request.raw_input_contents, strict=True):
            arrays[tensor.name] = np.frombuffer(raw, DTYPES[tensor.datatype]).reshape(tensor.shape)
        if arrays.keys() != {node.name for node in self.config.input}:
            raise ValueError(f"other inputs than expected: {[*arrays]}")
        [size] = {len(array) for array in arrays.values()}
        if not 1 <= size <= self.config.max_batch_size:
            raise ValueError(f"a batch of {size}")
        for node in self.config.input:
            check(arrays[node.name], node, node.dims)
        names = [node.name for node in self.config.output]
        answer = service_pb2.ModelInferResponse(model_name=request.model_name)
        for node, array in zip(self.config.output, self._session.run(names, arrays), strict=True):
            check(array, node, node.reshape.shape if node.HasField("reshape") else node.dims)
            answer.outputs.add(name=node.name, datatype=type_of(node), shape=[size, *node.dims])
            answer.raw_output_contents.append(array.tobytes())
        return answer


def type_of(node) -> str:
    return model_config_pb2.DataType.Name(node.data_type).removeprefix("TYPE_")


def check(array, node, dims) -> None:
    """Check an array, without its batch axis, against the configuration."""
    fits = [expected in (-1, size) for expected, size in zip(dims, array.shape[1:], strict=True)]
    if array.dtype != DTYPES[type_of(node)] or not all(fits):
        raise ValueError(
            f"{node.name} is {array.dtype} {array.shape}, expected {type_of(node)} {dims}"
        )


@contextmanager
def serving(repository: str) -> Iterator[tuple[str, Server]]:
    """Serve a repository; yields the address for gRPC, and the server."""
    with ThreadPoolExecutor(4) as threads:
        server, servicer = grpc.server(threads), Server(Path(repository))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}", servicer
        finally:
            server.stop(grace=None).wait()
