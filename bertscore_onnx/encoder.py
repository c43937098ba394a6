"""Token ids to unit token embeddings, on ONNX Runtime."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.batching import MAX_BATCH_TOKENS, plan_batches
from bertscore_onnx.bundle import Bundle
from bertscore_onnx.device import choose_providers, load_onnxruntime, open_session, usable_cpus
from bertscore_onnx.embeddings import TokenEmbeddings
from bertscore_onnx.errors import ClosedError, DeviceError, EncodingError, GraphError

_log = logging.getLogger(__name__)
_creation = threading.Lock()  # sessions created side by side race inside ONNX Runtime


class Encoder:
    """The graph of one bundle on one device; threads may share it."""

    def __init__(self, bundle: Bundle, *, device: object = None, num_threads: int | None = None) -> None:
        """Load the graph.

        Args:
            bundle: the bundle whose graph to run.
            device: None, "cpu", "cuda" or "cuda:N", as in `choose_providers`.
            num_threads: CPU threads a run may use; None for all that this process may keep busy.

        Raises:
            MissingExtraError: ONNX Runtime is not installed.
            DeviceError: the device cannot run the graph.
            GraphError: the graph's inputs or output are not those of the manifest.
        """
        self._manifest = bundle.manifest
        self._session: Any = _create_session(bundle, device, num_threads or usable_cpus())
        self.provider: str = self._session.get_providers()[0]
        """The execution provider in use."""
        self._check_graph()

    def encode(
        self,
        sequences: Sequence[NDArray[np.int64]],
        *,
        max_tokens: int = MAX_BATCH_TOKENS,
        max_items: int | None = None,
        advance: Callable[[int], object] = lambda texts: None,
    ) -> TokenEmbeddings:
        """Encode token sequences in batches of similar length.

        Args:
            sequences: the ids of each text, (tokens,), at least one id each.
            max_tokens, max_items: the size of a batch, as in `plan_batches`.
            advance: called after each batch with the number of texts in it.

        Returns:
            The embeddings, text i being `sequences[i]`.

        Raises:
            EncodingError: the model gave something other than finite vectors of the manifest's size.
            ClosedError: the encoder was closed.
        """
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        starts = np.zeros_like(lengths)
        layers = len(self._manifest.layers)
        vectors = np.empty((layers, lengths.sum(), self._manifest.hidden_size), np.float32)  # (layers, tokens, hidden)
        ids = np.empty(lengths.sum(), dtype=np.int64)  # (tokens,)
        filled = 0
        for batch in plan_batches(lengths, max_tokens, max_items, padding=self._manifest.padding):
            input_ids, mask = self._pad([sequences[text] for text in batch], lengths[batch])
            output = self._run(input_ids, mask)  # (layers, batch, tokens, hidden)
            end = filled + lengths[batch].sum()
            vectors[:, filled:end] = output[:, mask]
            ids[filled:end] = input_ids[mask]
            starts[batch] = filled + np.cumsum(lengths[batch]) - lengths[batch]
            filled = end
            advance(len(batch))
        return TokenEmbeddings(vectors, ids, starts, lengths)

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._session = None

    def _pad(
        self, sequences: Sequence[NDArray[np.int64]], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        mask = np.arange(lengths.max()) < lengths[:, None]  # (batch, tokens)
        input_ids = np.full(mask.shape, self._manifest.pad_id, dtype=np.int64)  # (batch, tokens)
        input_ids[mask] = np.concatenate(sequences)
        return input_ids, mask

    def _run(self, input_ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        session = self._session
        if session is None:
            raise ClosedError("The scorer was closed. Make a new one.")
        values = {"input_ids": input_ids, "attention_mask": mask.astype(np.int64)}
        feed = {name: values[name] for name in self._manifest.inputs}
        output: NDArray[np.float32] = session.run([self._manifest.output], feed)[0]
        expected = (*self._layers_axis(), *mask.shape, self._manifest.hidden_size)
        if output.shape != expected:
            raise EncodingError(f"The model gave vectors of shape {output.shape}; expected {expected}. Export again.")
        if not np.isfinite(output[..., mask, :]).all():
            raise EncodingError(
                f"The model gave infinite or undefined vectors on {self.provider} for a batch of shape {mask.shape}. "
                "Its weights may be damaged: run `bertscore-onnx inspect` on the bundle."
            )
        return output if self._manifest.all_layers else output[None]

    def _layers_axis(self) -> tuple[int, ...]:
        """Return the shape that stands before the batch in the graph's output."""
        return (len(self._manifest.layers),) if self._manifest.all_layers else ()

    def _check_graph(self) -> None:
        manifest = self._manifest
        inputs = [node.name for node in self._session.get_inputs()]
        if sorted(inputs) != sorted(manifest.inputs) or not {*inputs} <= {"input_ids", "attention_mask"}:
            raise GraphError(
                f"The graph takes the inputs {inputs}; the manifest says {manifest.inputs}, and the runtime can give "
                "input_ids and attention_mask. Export the model again."
            )
        outputs = {node.name: node.shape for node in self._session.get_outputs()}
        if manifest.output not in outputs:
            raise GraphError(f"The graph gives {sorted(outputs)}, not {manifest.output!r}. Export the model again.")
        shape = outputs[manifest.output]
        expected = [*self._layers_axis(), "batch", "tokens", manifest.hidden_size]
        if len(shape) != len(expected) or (shape[:-3], shape[-1]) != (expected[:-3], expected[-1]):
            raise GraphError(f"The graph gives vectors of shape {shape}; expected {expected}. Export the model again.")


def _create_session(bundle: Bundle, device: object, num_threads: int) -> Any:
    """Create a session on the first provider that works; a provider that was asked for by name must."""
    options = load_onnxruntime().SessionOptions()
    options.intra_op_num_threads = num_threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # patterns are kept for every shape ever seen, and shapes vary here
    options.log_severity_level = 3
    providers = choose_providers(device)
    with _creation:
        for provider in providers:
            session, failure = open_session(str(bundle.graph_path), options, provider)
            if session is not None:
                return session
            if provider is not providers[-1]:
                _log.warning("%s cannot be used, going on without it: %s", provider[0], failure)
    raise DeviceError(
        f"{providers[-1][0]} cannot run {bundle.graph_path}: {failure}. Run `bertscore-onnx doctor` to see what this "
        "machine offers."
    )
