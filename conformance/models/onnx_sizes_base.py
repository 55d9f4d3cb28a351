"""What the cases of onnx_sizes.py share: their list, and inputs that are drawn."""

import numpy as np

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


class Drawn:
    """Random inputs that are the same each time."""

    def __init__(self, seed=3):
        self.random = np.random.default_rng(seed)

    def floats(self, *dims):
        return self.random.standard_normal(dims).astype(np.float32)

    def ints(self, most, *dims):
        return self.random.integers(0, most, dims).astype(np.int64)
