"""The types of arrays, by the type of their numbers.

Shapes stand in docstrings and comments, such as (texts, tokens).
"""

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
Int64Array = NDArray[np.int64]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
