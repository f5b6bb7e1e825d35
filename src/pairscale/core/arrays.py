"""The two kinds of NumPy arrays that signatures name, and up to which size NumPy alone is used."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

WITHOUT_SCIPY = 64
"""Up to this many items NumPy is used where SciPy could be: its import was a third of what a short command took."""
