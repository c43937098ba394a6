"""What a score answers like a tensor, with PyTorch's answers beside it."""

import copy
import pickle

import numpy as np
import pytest
import torch

from bertscore_onnx.compat.tensors import TensorArray

VALUES = np.array([0.25, 0.5, 0.875, 0.125], dtype=np.float32)
TABLE = np.array([[0.25, 0.5], [0.875, 0.125], [0.75, 0.625]], dtype=np.float32)

CALLS = {
    "detach().cpu().tolist()": lambda x: x.detach().cpu().tolist(),
    "to(device).float()": lambda x: x.to("cpu").float(),
    "to(torch.float64)": lambda x: x.to(torch.float64),
    "to(device, dtype)": lambda x: x.to(torch.device("cpu"), torch.float64),
    "to(dtype=)": lambda x: x.to(dtype=torch.float16),
    "double()": lambda x: x.double(),
    "clone()": lambda x: x.clone(),
    "mean().item()": lambda x: x.mean().item(),
    "mean(dim=0)": lambda x: x.mean(dim=0),
    "mean(0)": lambda x: x.mean(0),
    "mean(dim=-1, keepdim=True)": lambda x: x.mean(dim=-1, keepdim=True),
    "sum(dim=0)": lambda x: x.sum(dim=0),
    "std()": lambda x: x.std(),
    "std(unbiased=False)": lambda x: x.std(unbiased=False),
    "std(dim=0, correction=0)": lambda x: x.std(dim=0, correction=0),
    "var(dim=0)": lambda x: x.var(dim=0),
    "max(dim=0).values": lambda x: x.max(dim=0).values,
    "max(dim=0).indices": lambda x: x.max(dim=0).indices,
    "max(0, keepdim=True)[0]": lambda x: x.max(0, keepdim=True)[0],
    "min(dim=-1)[1]": lambda x: x.min(dim=-1)[1],
    "numel()": lambda x: x.numel(),
    "size()": lambda x: tuple(x.size()),
    "size(0)": lambda x: x.size(0),
    "size(dim=-1)": lambda x: x.size(dim=-1),
    "dim()": lambda x: x.dim(),
    "min().cpu().item()": lambda x: x.min().cpu().item(),
    "data.cpu().numpy()": lambda x: x.data.cpu().numpy(),
    "half()": lambda x: x.half(),
    "view(-1)": lambda x: x.view(-1),
    "view(-1, 1)": lambda x: x.view(-1, 1),
    "view((2, -1))": lambda x: x.view((2, -1)),
    "unsqueeze(-1)": lambda x: x.unsqueeze(-1),
    "squeeze()": lambda x: x.squeeze(),
    "squeeze(0)": lambda x: x.squeeze(0),
    "abs()": lambda x: (x - 0.5).abs(),
    "isnan().any().item()": lambda x: x.isnan().any().item(),
    "clamp(0.2, 0.6)": lambda x: x.clamp(0.2, 0.6),
    "clamp(min=0.3)": lambda x: x.clamp(min=0.3),
    "argmax().item()": lambda x: x.argmax().item(),
    "argmax(dim=-1, keepdim=True)": lambda x: x.argmax(dim=-1, keepdim=True),
    "argmin(dim=0)": lambda x: x.argmin(dim=0),
    "median().item()": lambda x: x.median().item(),
    "median(dim=0).values": lambda x: x.median(dim=0).values,
    "median(-1)[1]": lambda x: x.median(-1)[1],
    "sort(descending=True)": lambda x: list(x.sort(descending=True)),
    "sort(dim=0)[0]": lambda x: x.sort(dim=0)[0],
    "sort(0).indices": lambda x: x.sort(0).indices,
    "argsort()": lambda x: x.argsort(),
    "argsort(dim=0, descending=True)": lambda x: x.argsort(dim=0, descending=True),
    "topk(2).values": lambda x: x.topk(2).values,
    "topk(k=1, largest=False).indices": lambda x: x.topk(k=1, largest=False).indices,
    "topk(2, dim=0)[0]": lambda x: x.topk(2, dim=0)[0],
    "len": len,
    "shape": lambda x: tuple(x.shape),
    "[0].mean().item()": lambda x: x[0].mean().item(),
    "[x > 0.3]": lambda x: x[x > 0.3],
    "the elements": lambda x: [one.mean().item() for one in x],
    "1 - x": lambda x: 1 - x,
    "x * x + 2": lambda x: x * x + 2,
    "abs(x - x.mean()).max()": lambda x: abs(x - x.mean()).max(),
    "float()": lambda x: float(x.mean()),
    "bool": lambda x: bool(x.max() > 0.8),
    "torch.stack": lambda x: torch.stack([x, x]),
    "torch.cat": lambda x: torch.cat((x, x), dim=0),
    "torch.mean": lambda x: torch.mean(x, dim=0),
    "tensor + x": lambda x: torch.ones(1) + x,
    "np.mean": lambda x: np.mean(np.asarray(x)),
    "copy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("values", [VALUES, TABLE], ids=["vector", "table"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_gives_what_a_tensor_gives(call, values):
    ours, theirs = call(TensorArray.of(values)), call(torch.from_numpy(values.copy()))
    if isinstance(theirs, torch.Tensor):
        assert np.shape(ours) == tuple(theirs.shape)
        assert str(theirs.dtype).removeprefix("torch.") == str(ours.dtype).removeprefix("torch.")
    np.testing.assert_allclose(*(x.tolist() if hasattr(x, "tolist") else x for x in (ours, theirs)), rtol=1e-6)


def test_it_prints_and_rounds_as_a_number():
    mean = TensorArray.of(VALUES).mean()
    assert f"{mean:.4f}" == f"{torch.from_numpy(VALUES.copy()).mean():.4f}" == "0.4375"
    assert round(mean, 2) == np.float32(0.44)


@pytest.mark.parametrize("call", [np.mean, np.std, np.var, np.max, np.min, np.sum, np.median, np.sort, np.argmax])
@pytest.mark.parametrize("options", [{}, {"axis": 0}])
def test_numpys_functions_treat_it_as_an_array(call, options):
    if call is np.sort and not options:
        options = {"axis": -1}
    assert np.array_equal(call(TensorArray.of(TABLE), **options), call(TABLE, **options))


def test_numpy_and_pandas_take_it_as_an_array():
    import pandas as pd

    array = TensorArray.of(TABLE)
    assert np.array_equal(np.unique(array), np.unique(TABLE))
    assert np.array_equal(np.argsort(array, axis=0), np.argsort(TABLE, axis=0))
    assert array.size == TABLE.size
    assert array.view(np.int32).dtype == np.int32
    assert np.squeeze(TensorArray.of(TABLE[None]), axis=0).shape == TABLE.shape
    vector = TensorArray.of(VALUES)
    assert np.shares_memory(vector.cpu().detach().numpy(), VALUES)
    assert pd.DataFrame({"F1": vector})["F1"].tolist() == VALUES.tolist()


def test_a_method_that_it_lacks_is_refused_with_advice():
    with pytest.raises(AttributeError, match=r"'softmax'.*numpy\(\)"):
        TensorArray.of(VALUES).softmax(dim=0)
