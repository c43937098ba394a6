from collections import Counter

import pytest

from benchmarks.attention import attention_kernels, describe_kernels, kernels_in
from bertscore_onnx.errors import EncodingError

PRINTED = """\x1b[36mOperator=Attention Node=Attention_0 DataType=fp16 SdpaKernel=CUDNN_FLASH_ATTENTION\x1b[0m
\x1b[36mOperator=Attention Node=Attention_1 DataType=fp16 SdpaKernel=MATH\x1b[0m
\x1b[36mOperator=Attention Node=Attention_2 DataType=fp16 SdpaKernel=MATH\x1b[0m
another line
\x1b[36mOperator=Attention Node=Attention_0 DataType=fp16 SdpaKernel=CUDNN_FLASH_ATTENTION\x1b[0m
"""


def test_each_node_counts_once_by_its_kernel():
    kernels = kernels_in(PRINTED)
    assert kernels == Counter({"MATH": 2, "CUDNN_FLASH_ATTENTION": 1})
    assert describe_kernels(kernels).startswith(
        "1 × CUDNN_FLASH_ATTENTION, 2 × MATH: attention is not fused"
    )
    assert describe_kernels({"CUDNN_FLASH_ATTENTION": 1}) == "1 × CUDNN_FLASH_ATTENTION"


def test_a_process_of_its_own_runs_the_bundle(tiny_bundle, tmp_path):
    assert attention_kernels(tiny_bundle, "cpu") == {}  # a CPU prints nothing
    with pytest.raises(EncodingError, match="no bundle"):
        attention_kernels(tmp_path, "cpu")
