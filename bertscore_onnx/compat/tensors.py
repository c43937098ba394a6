"""Arrays that answer what programs ask of the tensors that bert-score returns."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Extremes(NamedTuple):
    """The largest or smallest values along a dimension, and where they are."""

    values: "TensorArray"
    indices: "TensorArray"


class TensorArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array with those methods of a PyTorch tensor that programs call on scores.

    Elements and reductions are arrays without dimensions, as a tensor's are. Where numpy and PyTorch differ under one
    name the answer is PyTorch's: `std` and `var` divide by n - 1, and `max` and `min` along a `dim` return values and
    indices; called by numpy's functions they do as numpy. PyTorch's functions take the array and return tensors.
    """

    @classmethod
    def of(cls, values: Any) -> "TensorArray":
        """View an array or a number as one of these."""
        return np.asarray(values).view(cls)

    def cpu(self) -> "TensorArray":
        """Return the array itself, which is in the CPU's memory."""
        return self

    def detach(self) -> "TensorArray":
        """Return the array itself, which has no gradient."""
        return self

    def clone(self) -> "TensorArray":
        """Return a copy."""
        return self.copy()

    def numpy(self, *, force: bool = False) -> NDArray[Any]:
        """Return the same memory as a plain array."""
        return np.asarray(self)

    def to(self, *targets: object, **options: object) -> "TensorArray":
        """Convert to the dtypes among the targets, PyTorch's or numpy's; devices change nothing."""
        result = self
        for target in (*targets, *options.values()):
            if str(target).startswith("torch."):
                result = TensorArray.of(result.astype(str(target).removeprefix("torch.")))
            elif isinstance(target, np.dtype | type):
                result = TensorArray.of(result.astype(target))
        return result

    def float(self) -> "TensorArray":
        """Convert to float32."""
        return self.to(np.float32)

    def double(self) -> "TensorArray":
        """Convert to float64."""
        return self.to(np.float64)

    def numel(self) -> int:
        """Return the number of elements."""
        return self.size

    def sum(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the sum of all elements, or along a dimension."""
        return super().sum(**{"axis": dim, "keepdims": keepdim, **options})

    def mean(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the mean of all elements, or along a dimension."""
        return super().mean(**{"axis": dim, "keepdims": keepdim, **options})

    def var(  # type: ignore[override]
        self, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int = 1, **options: Any
    ) -> Any:
        """Return the variance of all elements, or along a dimension; the divisor is n less the correction."""
        ddof = correction if unbiased else 0
        return super().var(**{"axis": dim, "keepdims": keepdim, "ddof": ddof, **options})

    def std(  # type: ignore[override]
        self, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int = 1, **options: Any
    ) -> Any:
        """Return the standard deviation, the root of `var`."""
        ddof = correction if unbiased else 0
        return super().std(**{"axis": dim, "keepdims": keepdim, "ddof": ddof, **options})

    def max(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the largest element, or `Extremes` along a dimension."""
        if dim is None:
            return super().max(**options)
        return self._extremes(self.argmax(dim), dim, keepdim)

    def min(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the smallest element, or `Extremes` along a dimension."""
        if dim is None:
            return super().min(**options)
        return self._extremes(self.argmin(dim), dim, keepdim)

    def _extremes(self, indices: Any, dim: int, keepdim: bool) -> Extremes:
        places = np.expand_dims(np.asarray(indices), dim)
        values = np.take_along_axis(np.asarray(self), places, dim)
        if not keepdim:
            values, places = values.squeeze(dim), places.squeeze(dim)
        return Extremes(TensorArray.of(values), TensorArray.of(places))

    def __getitem__(self, key: Any) -> Any:
        """Return a part; an element has no dimensions."""
        return TensorArray.of(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        """Yield the parts along the first dimension."""
        return (self[position] for position in range(len(self)))

    def __round__(self, digits: int = 0) -> "TensorArray":
        """Round to decimals."""
        return self.round(digits)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Keep what numpy computes an array of this kind, also where it is a single number."""
        return TensorArray.of(array)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Let a function of PyTorch, which is imported since it calls, compute with tensors."""
        return func(*_as_tensors(args), **{name: _as_tensors(value) for name, value in (kwargs or {}).items()})


def _as_tensors(value: Any) -> Any:
    """Copy the arrays in an argument to tensors."""
    if isinstance(value, TensorArray):
        return sys.modules["torch"].tensor(value.numpy())
    if isinstance(value, list | tuple):
        return [_as_tensors(one) for one in value]
    return value
