"""Settings of all tests: no test may fail by chance.

The noise of releases comes from the operating system, so that a test which looks at noisy answers would see others each time. Here `accord.noise` asks a
generator that is seeded by the test's own name; tests of where the noise comes from are marked `operating_system` and have the real one. Keys of ledgers and
seeds of audits are drawn by another such generator. Hypothesis draws the same examples each time. ACCORD_TEST_SEED=2 gives all of them other numbers, to see
how much luck is in them. tests/architecture/test_chance.py says what tests may not draw from.
"""

import os
import re
import secrets
import signal
from pathlib import Path

import one_thread  # noqa: F401  before NumPy
import pytest
from hypothesis import HealthCheck, settings
from noises import DRAWING_APART, SEED, SEEDED, SEEDED_APART
from servers import postgres_server, postgres_url, session  # noqa: F401  fixtures of all tests
from tiers import leave_to_slow

import accord.noise

settings.register_profile(  # a busy machine is no failure
    "patient", deadline=None, derandomize=SEED is None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


OWN_SETTINGS = re.compile(
    r"COLUMNS|LINES|NO_COLOR|FORCE_COLOR|MPLBACKEND|PYTHONWARNINGS|PG[A-Z]+|ACCORD_(LEDGER|CATALOG).*"
)
"""Of whoever runs the tests: a terminal's width and colors, servers, keys and catalogs. They would decide texts, and what is opened."""


def pytest_configure(config):
    """Tests that press Ctrl-C can, also where a shell has started them in the background and lets them ignore it."""
    for name in filter(OWN_SETTINGS.fullmatch, list(os.environ)):
        del os.environ[name]
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Before -m chooses. All that needs Spark goes to one process, because a cluster takes long to start."""
    leave_to_slow(items, Path(__file__).parent)
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="module", autouse=True)
def seeded_module(request):
    """For fixtures that tests of a module share."""
    seed(request.node)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(accord.noise, "secrets", SEEDED)
        for module in DRAWING_APART:
            patched.setattr(module, "secrets", SEEDED_APART)
        yield


@pytest.fixture(autouse=True)
def seeded_test(request, seeded_module, monkeypatch):
    seed(request.node)
    if request.node.get_closest_marker("operating_system"):
        monkeypatch.setattr(accord.noise, "secrets", secrets)


def seed(node):
    SEEDED.seed(node.nodeid)
    SEEDED_APART.seed(f"apart {node.nodeid}")
