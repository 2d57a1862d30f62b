"""Noises for tests: put in at the seam `accord.release.answer`, or given to a mechanism's method.

And the randomness that accord has in tests (conftest.py).
"""

import os
from fractions import Fraction
from random import Random

import numpy as np

import accord.lab.audit.algorithm_check
import accord.lab.audit.examples
import accord.lab.audit.runner
import accord.ledger.key
import accord.ledger.requests
import accord.ledger.tokens
from accord.noise import MILLION


class Fixed:
    """Draws what it is told (zeros by default), and remembers every scale that was asked for."""

    def __init__(self, *draws):
        self.draws = list(draws)
        self.scales = []

    def laplace(self, scale):
        assert isinstance(scale, Fraction)
        self.scales.append(scale)
        return self.draws[len(self.scales) - 1] if len(self.scales) <= len(self.draws) else 0

    def box(self, spans, scale=MILLION):
        """What it is told, a whole vector; the spans are remembered as scales are."""
        assert isinstance(scale, Fraction) and all(isinstance(span, int) for span in spans)
        self.scales.append(tuple(spans))
        return self.draws[len(self.scales) - 1] if len(self.scales) <= len(self.draws) else (0,) * len(spans)

    def choose(self, scores, scale, times=None):
        """The best, and the first of them."""
        return int(scores.argmax())

    def ordered(self, weights, ps, scale, parts, times=None):
        """Where the weight first reaches each fraction."""
        up_to = np.cumsum(weights)
        return [int(np.searchsorted(up_to, float(p) * float(up_to[-1]))) for p in ps]

    def keep(self, chances):
        """Everyone."""
        return np.ones(chances.size, dtype=bool)


SEED = os.environ.get("ACCORD_TEST_SEED")


class SeededSecrets:
    """What accord asks of `secrets`, by a generator that can be seeded."""

    def __init__(self):
        self._random = Random(0)

    def seed(self, name):
        self._random.seed(f"{SEED or 1} {name}")

    def randbelow(self, exclusive_upper_bound):
        return self._random.randrange(exclusive_upper_bound)

    def randbits(self, k):
        return self._random.getrandbits(k)

    def token_bytes(self, nbytes):
        return self._random.randbytes(nbytes)

    def token_hex(self, nbytes):
        return self._random.randbytes(nbytes).hex()

    def token_urlsafe(self, nbytes):
        return self._random.randbytes(nbytes).hex()


SEEDED = SeededSecrets()
"""In the place of the `secrets` of the noise; a test may draw its own numbers from it, too."""
DRAWING_APART = (
    accord.ledger.key,
    accord.ledger.requests,
    accord.ledger.tokens,
    accord.lab.audit.algorithm_check,
    accord.lab.audit.examples,
    accord.lab.audit.runner,
)
"""What draws from `secrets`, beside the noise."""
SEEDED_APART = SeededSecrets()
"""In the place of their `secrets`, so that a key that is drawn moves no noise."""
