"""The audit: doubt accord, and your own algorithms, in three independent ways.

`accord audit` on the command line.

    found = audit.run(["affine"], ["mean"])            # exact and replay; runs=10_000 adds the empirical way
    found.passed, found.findings                       # worst first
    print(audit.check(algorithm, people, epsilon=1.0)) # of an algorithm for accord.sample

exact       every tiny table, neighbor and output, from probabilities: laws.py, exact.py; of the noise itself:
            noise_laws.py, source.py
replay      neighbors of real tables through the real engine, with the noise frozen: replay.py
empirical   many releases with real noise, and what they surely show: empirical.py
"""

from accord.lab.audit.findings import Audit, Finding, Seen
from accord.lab.audit.own import check
from accord.lab.audit.runner import ALPHA, run

__all__ = ["ALPHA", "Audit", "Finding", "Seen", "check", "run"]
