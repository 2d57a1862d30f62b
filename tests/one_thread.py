"""One thread for linear algebra in every process of the tests. Imported before NumPy is.

Threads of several processes that share the same cores wait for each other by spinning: figures of regressions took ten times as much of a processor.
Sums then also have one order, however many cores there are.
"""

import os

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", VECLIB_MAXIMUM_THREADS="1"
)
