"""Arrays with the methods that programs call on the tensors of bert-score."""

import sys
from builtins import float as number  # where a method takes the name
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Extremes(NamedTuple):
    """The largest or smallest values along a dimension, and where they are."""

    values: "TensorArray"
    indices: "TensorArray"


class _Size(int):
    """The number of elements, as numpy has it; called, the shape, as PyTorch has it."""

    _shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> "_Size":
        size = super().__new__(cls, prod(shape))
        size._shape = shape
        return size

    def __call__(self, dim: int | None = None) -> Any:
        return self._shape if dim is None else self._shape[dim]


class TensorArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array with the methods of a PyTorch tensor that programs call on scores.

    Elements and reductions are arrays without dimensions, like those of a tensor. If numpy and PyTorch differ under one
    name, the method behaves like PyTorch's: `std` and `var` divide by n - 1, and `max` and `min` along a `dim` return
    values and indices; called by numpy's functions they behave like numpy's. `sort` and `argsort` behave like PyTorch's
    with a `dim` or with `descending`, otherwise like numpy's. PyTorch's functions take the array and return tensors.
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

    def half(self) -> "TensorArray":
        """Convert to float16."""
        return self.to(np.float16)

    @property
    def data(self) -> Any:
        """The array itself, which has no gradient."""
        return self

    @property
    def size(self) -> Any:
        """The number of elements; `size()` is the shape, and `size(dim)` the length of a dimension."""
        return _Size(self.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def view(self, *shape: Any, **options: Any) -> Any:
        """Return the same memory in another shape."""
        if shape and isinstance(shape[0], int | tuple):
            return self.reshape(*shape)
        return super().view(*shape, **options)

    def squeeze(self, dim: int | None = None, **options: Any) -> Any:  # type: ignore[override]
        """Remove the dimensions of length 1, or the given one if its length is 1."""
        if dim is None:
            return super().squeeze(**options)
        return super().squeeze(dim) if self.shape[dim] == 1 else self

    def unsqueeze(self, dim: int) -> "TensorArray":
        """Insert a dimension of length 1."""
        return TensorArray.of(np.expand_dims(np.asarray(self), dim))

    def abs(self) -> "TensorArray":
        """Return the absolute values."""
        return TensorArray.of(np.absolute(self))

    def isnan(self) -> "TensorArray":
        """Return whether each element is not a number."""
        return TensorArray.of(np.isnan(self))

    def clamp(
        self,
        min: number | None = None,  # noqa: A002 -- PyTorch's name
        max: number | None = None,  # noqa: A002
    ) -> "TensorArray":
        """Limit the values to a range."""
        return TensorArray.of(np.clip(np.asarray(self), min, max))

    def sum(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the sum of all elements, or along a dimension."""
        return super().sum(**{"axis": dim, "keepdims": keepdim, **options})

    def mean(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the mean of all elements, or along a dimension."""
        return super().mean(**{"axis": dim, "keepdims": keepdim, **options})

    def var(  # type: ignore[override]
        self, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int = 1, **options: Any
    ) -> Any:
        """Return the variance of all elements, or along a dimension; the divisor is n minus the correction."""
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

    def argmax(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the index of the largest element, of all or along a dimension."""
        return TensorArray.of(super().argmax(**{"axis": dim, "keepdims": keepdim, **options}))

    def argmin(self, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the index of the smallest element, of all or along a dimension."""
        return TensorArray.of(super().argmin(**{"axis": dim, "keepdims": keepdim, **options}))

    def median(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """Return the median, of two middle elements the lower one, or `Extremes` along a dimension."""
        if dim is None:
            return TensorArray.of(np.sort(np.asarray(self), axis=None)[(self.numel() - 1) // 2])
        places = np.argsort(np.asarray(self), axis=dim, kind="stable").take((self.shape[dim] - 1) // 2, axis=dim)
        return self._extremes(places, dim, keepdim)

    def sort(self, dim: int | None = None, descending: bool | None = None, **options: Any) -> Any:  # type: ignore[override]
        """Return `Extremes`: all values along a dimension in order, and where they were."""
        if dim is None and descending is None:
            return super().sort(**options)
        axis = -1 if dim is None else dim
        places = self.argsort(axis, bool(descending))
        return Extremes(TensorArray.of(np.take_along_axis(np.asarray(self), np.asarray(places), axis)), places)

    def argsort(self, dim: int = -1, descending: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Return the indices that sort the values along a dimension."""
        values = -np.asarray(self) if descending else np.asarray(self)
        return TensorArray.of(np.argsort(values, **{"axis": dim, "kind": "stable", **options}))

    def topk(self, k: int, dim: int = -1, largest: bool = True) -> Extremes:
        """Return the k largest or smallest values along a dimension, in order, and where they are."""
        values, places = self.sort(dim, largest)
        first = np.arange(k)
        return Extremes(values.take(first, axis=dim), places.take(first, axis=dim))

    def _extremes(self, indices: Any, dim: int, keepdim: bool) -> Extremes:
        places = np.expand_dims(np.asarray(indices), dim)
        values = np.take_along_axis(np.asarray(self), places, dim)
        if not keepdim:
            values, places = values.squeeze(dim), places.squeeze(dim)
        return Extremes(TensorArray.of(values), TensorArray.of(places))

    def __getattr__(self, name: str) -> Any:
        """Raise an error that names the way to the other methods of a tensor."""
        raise AttributeError(
            f"A score is a numpy array with the usual methods of a tensor, and has no {name!r}. `.numpy()` returns a "
            "plain array; if PyTorch is installed, `torch.tensor(score)` returns a tensor."
        )

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
        """Keep results of numpy in this class, even single numbers."""
        return TensorArray.of(array)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function of PyTorch, which must be imported already, with tensors."""
        return func(*_as_tensors(args), **{name: _as_tensors(value) for name, value in (kwargs or {}).items()})


def _as_tensors(value: Any) -> Any:
    """Copy the arrays in an argument to tensors."""
    if isinstance(value, TensorArray):
        return sys.modules["torch"].tensor(value.numpy())
    if isinstance(value, list | tuple):
        return [_as_tensors(one) for one in value]
    return value
