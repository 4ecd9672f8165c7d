"""Types of numpy arrays."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ShortIntegers = NDArray[np.int32]
Indices = NDArray[np.intp]
