"""P, R and F as tensors.

They are PyTorch's own if it is installed, else arrays with a tensor's basic methods.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from bertscore_onnx.arrays import Float32Array
from bertscore_onnx.scores import Scores


def as_tensors(scores: Scores) -> tuple[Any, Any, Any]:
    """Return P, R and F, (candidates,) each, or (layers, candidates)."""
    return as_tensor(scores.P), as_tensor(scores.R), as_tensor(scores.F)


def as_tensor(values: Float32Array) -> Any:
    """Return an array as a tensor."""
    try:
        from torch import from_numpy  # noqa: TID251 -- only if the caller has it
    except ModuleNotFoundError:
        return TensorArray(values)
    return from_numpy(values)


class TensorArray(NDArrayOperatorsMixin):
    """An array with the methods of a tensor that programs call on scores.

    Operators and numpy's functions take it. Elements and means are arrays without dimensions, as of
    a tensor. Any other method is an error.
    """

    def __init__(self, values: Any) -> None:
        """Wrap an array or a number."""
        self._values = np.asarray(values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self._values.shape

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of a dimension."""
        return self.shape if dim is None else self.shape[dim]

    def cpu(self) -> "TensorArray":
        """Return the array itself, which is in the CPU's memory."""
        return self

    def detach(self) -> "TensorArray":
        """Return the array itself, which has no gradient."""
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the same memory as a numpy array."""
        return self._values

    def tolist(self) -> Any:
        """Return the values as a list, or as a number if there are no dimensions."""
        return self._values.tolist()

    def item(self) -> Any:
        """Return the only value as a number."""
        return self._values.item()

    def mean(
        self, dim: int | None = None, *, axis: int | None = None, **options: Any
    ) -> "TensorArray":
        """Return the mean of all values, or along a dimension.

        The other arguments are numpy's.
        """
        return TensorArray(self._values.mean(axis if dim is None else dim, **options))

    def __getattr__(self, name: str) -> Any:
        """Raise an error that names the way to the other methods of a tensor."""
        raise AttributeError(
            f"A score has no {name!r}, since PyTorch is not installed. `.numpy()` returns a numpy "
            "array; with PyTorch, scores are its tensors."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._values, dtype) if copy else np.asarray(self._values, dtype)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> "TensorArray":
        options["out"] = tuple(map(np.asarray, options.get("out") or ())) or None
        return TensorArray(getattr(ufunc, method)(*map(np.asarray, inputs), **options))

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, key: Any) -> "TensorArray":
        return TensorArray(self._values[key.numpy() if isinstance(key, TensorArray) else key])

    def __iter__(self) -> Iterator["TensorArray"]:
        return map(TensorArray, self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __format__(self, form: str) -> str:
        return format(self._values[()], form)

    def __repr__(self) -> str:
        return repr(self._values).replace("array", "tensor", 1)
