"""What a score answers like a tensor, with PyTorch's answers beside it, which it is where that is
installed.
"""

import pickle
import sys

import numpy as np
import pytest
import torch

from bertscore_onnx.compat.tensors import TensorArray, as_tensors
from bertscore_onnx.scores import Scores

VALUES = np.array([0.25, 0.5, 0.875, 0.125], dtype=np.float32)
TABLE = np.array([[0.25, 0.5], [0.875, 0.125], [0.75, 0.625]], dtype=np.float32)

CALLS = {
    "detach().cpu().tolist()": lambda x: x.detach().cpu().tolist(),
    "numpy()": lambda x: x.numpy(),
    "mean().item()": lambda x: x.mean().item(),
    "mean(dim=0)": lambda x: x.mean(dim=0),
    "mean(-1)": lambda x: x.mean(-1),
    "size()": lambda x: tuple(x.size()),
    "size(0)": lambda x: x.size(0),
    "shape": lambda x: tuple(x.shape),
    "len": len,
    "[0].mean().item()": lambda x: x[0].mean().item(),
    "[x > 0.3]": lambda x: x[x > 0.3],
    "the elements": lambda x: [element.mean().item() for element in x],
    "1 - x": lambda x: 1 - x,
    "abs(x * x + 2)": lambda x: abs(x * x + 2),
    "float()": lambda x: float(x.mean()),
    "bool": lambda x: bool(x.mean() > 0.8),
    "np.mean": lambda x: np.mean(np.asarray(x)),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("values", [VALUES, TABLE], ids=["vector", "table"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_gives_what_a_tensor_gives(call, values):
    ours, theirs = call(TensorArray(values)), call(torch.from_numpy(values.copy()))
    if isinstance(theirs, torch.Tensor):
        assert np.shape(ours) == tuple(theirs.shape)
    np.testing.assert_allclose(
        *(x.tolist() if hasattr(x, "tolist") else x for x in (ours, theirs)), rtol=1e-6
    )


def test_it_prints_as_a_number():
    mean = TensorArray(VALUES).mean()
    assert f"{mean:.4f}" == f"{torch.from_numpy(VALUES.copy()).mean():.4f}" == "0.4375"


@pytest.mark.parametrize(
    "call", [np.mean, np.std, np.max, np.sum, np.median, np.sort, np.argmax, np.unique]
)
def test_numpys_functions_treat_it_as_an_array(call):
    assert np.array_equal(call(TensorArray(TABLE), axis=0), call(TABLE, axis=0))


def test_pandas_takes_it_as_a_column():
    import pandas as pd

    assert pd.DataFrame({"F1": TensorArray(VALUES)})["F1"].tolist() == VALUES.tolist()


@pytest.mark.parametrize("name", ["sort", "std", "softmax", "repeat", "nonzero"])
def test_any_other_method_is_refused_with_advice(name):
    with pytest.raises(AttributeError, match=rf"'{name}'.*numpy\(\)"):
        getattr(TensorArray(VALUES), name)


def test_scores_are_pytorchs_tensors_if_it_is_installed(monkeypatch):
    scores = Scores(VALUES, VALUES, VALUES, np.zeros(4, dtype=np.int64))
    assert torch.equal(as_tensors(scores)[2], torch.tensor(VALUES))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert isinstance(as_tensors(scores)[2], TensorArray)
