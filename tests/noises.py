"""Noises for tests, put in at the seam `release._answer` or a mechanism's `answer`."""

from fractions import Fraction

import numpy as np


class Fixed:
    """Draws what it is told (zeros by default), and remembers every scale that was asked for."""

    def __init__(self, *draws):
        self.draws = list(draws)
        self.scales = []

    def laplace(self, scale):
        assert isinstance(scale, Fraction)
        self.scales.append(scale)
        return self.draws[len(self.scales) - 1] if len(self.scales) <= len(self.draws) else 0

    def choose(self, scores, scale):
        """The best, and the first of them."""
        return int(scores.argmax())

    def keep(self, chances):
        """Everyone."""
        return np.ones(chances.size, dtype=bool)
