"""No test may fail by chance: what tests may not draw from.

conftest.py seeds what accord draws from the operating system. Here the code of tests, and of what they run, is read for the other ways in which a run can
differ from the last one: generators without a seed, or that many tests share, so that what one sees depends on which ran before; and Python's hashes, which
differ from process to process. Ruff looks for moments in the time zone of a machine (DTZ) and for NumPy's global generator (NPY002).
"""

import ast
from pathlib import Path

import pytest
from noises import DRAWING_APART

import accord.noise

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
SYSTEM = {"secrets", "urandom", "uuid1", "uuid4", "SystemRandom", "getrandom"}
GENERATORS = {"default_rng", "Random", "SeedSequence"}
SEEDED_BY_CONFTEST = {
    f"src/{module.__name__.replace('.', '/')}.py" for module in (accord.noise, *DRAWING_APART)
}
KNOWN = {
    "src/accord/people/table.py": "a name for a table, which is compared with itself alone",
    "src/accord/lab/audit/noise_source.py": "looks where the noise comes from, and decides nothing by what it draws",
    "src/accord/server/access.py": "cookies and secrets of forms, which are compared with themselves alone",
    "src/accord/server/pages/asking.py": "keys of requests, of which two are the same once in 2¹²⁸ times",
    "src/accord/server/client.py": "keys of requests, which are compared with themselves alone",
    "tests/conftest.py": "gives tests that are marked operating_system the real noise",
    "tests/planted.py": "bugs that are planted in the source of the noise",
    "tests/servers.py": "names of databases, of which two are the same once in 2⁶⁴ times",
    "tests/engines/test_postgres.py": "the same",
}
"""Files that may name what draws from the operating system, and why no test depends on it."""
SET_ANEW = {"tests/lab/test_check.py"}
"""Where a generator of the module is seeded again for each test."""


class Code:
    """A module, taken apart once."""

    def __init__(self, text):
        self.tree = ast.parse(text)
        self.nodes = list(ast.walk(self.tree))

    def of(self, *kinds):
        return (node for node in self.nodes if isinstance(node, kinds))

    def unseeded(self):
        """Generators that are made without a seed, and calls of the generator that all users of `random` share."""
        has_module = any(alias.name == "random" for node in self.of(ast.Import) for alias in node.names)
        for call in self.of(ast.Call):
            seeds = [*call.args, *(word.value for word in call.keywords if word.arg in ("seed", "x"))]
            is_seeded = bool(seeds) and getattr(seeds[0], "value", ...) is not None
            if name_of(call.func) in GENERATORS and not is_seeded:
                yield call.lineno, name_of(call.func)
            of_module = has_module and getattr(getattr(call.func, "value", None), "id", "") == "random"
            if of_module and call.func.attr not in GENERATORS:
                yield call.lineno, f"random.{call.func.attr}"

    def shared(self):
        """Generators of a whole module that functions draw from."""
        made = {
            name_of(target)
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
            if name_of(node.value.func) in GENERATORS
        }
        functions = self.of(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda) if made else ()
        return made & {name_of(node) for function in functions for node in ast.walk(function)}

    def system(self):
        """What draws from the operating system, by its name."""
        for node in self.of(ast.Import, ast.ImportFrom):
            names = {getattr(node, "module", ""), *(alias.name for alias in node.names)}
            yield from ((node.lineno, name) for name in sorted(names & SYSTEM))
        for node in self.of(ast.Attribute):
            if node.attr in SYSTEM - {"secrets"}:  # a field may have that name
                yield node.lineno, node.attr

    def hashes(self):
        """Calls of `hash` that are not the hash of an object."""
        methods = (method for method in self.of(ast.FunctionDef) if method.name == "__hash__")
        own = {node for method in methods for node in ast.walk(method)}
        return [call.lineno for call in self.of(ast.Call) if name_of(call.func) == "hash" and call not in own]


def name_of(node):
    """The last part of a dotted name: `default_rng` of `np.random.default_rng`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def chances(path, name):
    """By what a run of this file can differ from the last one."""
    code = Code(path.read_text(encoding="utf-8"))
    yield from code.unseeded()
    if name not in SET_ANEW:
        yield from (("shared by functions", generator) for generator in code.shared())
    if name not in KNOWN and name not in SEEDED_BY_CONFTEST:
        yield from (("not seeded by conftest.py", *found) for found in code.system())
    if path in SOURCES:
        yield from ((line, "hash, which differs from process to process") for line in code.hashes())


def test_nothing_is_drawn_without_a_seed():
    files = {str(path.relative_to(ROOT)): path for path in (*TESTS, *SOURCES)}
    found = {name: list(chances(path, name)) for name, path in files.items()}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_what_is_known_is_there():
    assert [name for name in (*KNOWN, *SET_ANEW, *SEEDED_BY_CONFTEST) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("np.random.default_rng()", [(1, "default_rng")]),
        ("np.random.default_rng(None)", [(1, "default_rng")]),
        ("np.random.default_rng(seed=1)", []),
        ("from random import Random\nRandom()", [(2, "Random")]),
        ("import random\nrandom.shuffle(rows)\nrandom.Random(1).shuffle(rows)", [(2, "random.shuffle")]),
        ("def test(random):\n    random.shuffle(rows)", []),  # a generator by that name
    ],
)
def test_a_generator_without_a_seed_is_seen(code, seen):
    assert list(Code(code).unseeded()) == seen


def test_other_chances_are_seen():
    assert Code(
        "A = default_rng(1)\nB = default_rng(2)\nx = B.random()\ndef f(): return A.random()"
    ).shared() == {"A"}
    assert Code("A = default_rng(1)\nF = {'a': lambda n: A.random(n)}").shared() == {"A"}
    code = "import secrets\nfrom uuid import uuid4\nfrom secrets import token_hex\nos.urandom(4)"
    assert list(Code(code).system()) == [(1, "secrets"), (2, "uuid4"), (3, "secrets"), (4, "urandom")]
    code = "hash(x)\nclass A:\n    def __hash__(self):\n        return hash(self.x)"
    assert Code(code).hashes() == [1]
