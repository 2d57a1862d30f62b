"""The house plan, as rules on imports."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import accord

pytestmark = pytest.mark.xdist_group("imports")  # one process reads all modules, once
ROOT = Path(accord.__file__).parent
MODULES = {
    ".".join(("accord", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


@cache
def nodes(path):
    """All parts of a module, and the statements that run when it is loaded."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return list(ast.walk(tree)), tree.body


@cache
def imports(path, everywhere=True):
    """Names that a module imports; without `everywhere`, only when it is loaded and not for types alone."""
    everything, outermost = nodes(path)
    names = []
    for node in everything if everywhere else outermost:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def users_of(name, everywhere=True):
    return {
        module
        for module, path in MODULES.items()
        if any(i == name or i.startswith(name + ".") for i in imports(path, everywhere))
    }


def test_only_release_uses_noise():
    assert users_of("accord.noise.SECURE") == {"accord.release.release"}
    named = {module for module, path in MODULES.items() if "SECURE" in path.read_text(encoding="utf-8")}
    # the audit looks at the noise of releases, from a copy of its code, and records it in processes of its own
    assert named == {
        "accord.noise",
        "accord.release.release",
        "accord.lab.audit.noise_source",
        "accord.lab.audit.program_runs",
    }


def test_nothing_outside_the_lab_imports_the_lab():
    assert {m for m in users_of("accord.lab") if not m.startswith(("accord.lab", "accord.cli"))} == set()


def test_plans_cannot_reach_data():
    data = ("accord.people.table", "accord.people.reader", "accord.engines", "duckdb")
    rooms = ("accord.planning", "accord.mechanisms", "accord.statistics")
    parts = [module for module in MODULES if module.startswith(rooms)]
    assert len(parts) > 30
    for module in ("accord.theory", "accord.budget", "accord.spec", "accord.relation", *parts):
        reached = set(imports(MODULES[module]))
        assert not any(i.startswith(data) for i in reached), module


def test_what_is_derived_cannot_reach_data_or_noise():
    """Answers from answers are post-processing."""
    others = ("accord.people", "accord.engines", "accord.ledger", "accord.noise", "accord.sampling", "duckdb")
    for name in ("arithmetic", "derived", "joint", "numbers", "picking"):
        assert not any(i.startswith(others) for i in imports(MODULES[f"accord.release.{name}"])), name


def test_a_ledger_knows_tables_by_who_is_in_them():
    ledger = {module for module in MODULES if module.startswith("accord.ledger")}
    # (its annotations name the table, for people who read them)
    assert ledger.isdisjoint(users_of("accord.people.table", everywhere=False) | users_of("accord.engines"))


def test_nobody_reaches_into_a_ledger():
    """Neither its modules into each other, nor any other into them."""
    named = {"_asdict"}  # of named tuples, who have no other names
    for module, path in MODULES.items():
        private = {name for name in imports(path) if name.startswith("accord.ledger.") and "._" in name}
        for node in nodes(path)[0]:
            if (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.startswith("__")
            ):
                owner = node.value.id if isinstance(node.value, ast.Name) else None
                if owner in ("ledger", "books") or (module.startswith("accord.ledger") and owner != "self"):
                    private.add(node.attr)
        assert private <= named, module


def test_engines_know_encodings_and_no_statistics():
    """A further statistic touches no engine."""
    known = tuple(f"accord.statistics.{name}" for name in ("encoding", "where", "part", "keys"))
    for module in (m for m in MODULES if m.startswith("accord.engines")):
        used = {i for i in imports(MODULES[module]) if i.startswith("accord.statistics")}
        used -= {"accord.statistics"}  # of which only names in `known` are imported
        assert all(name.startswith(known) for name in used), module


def test_engines_are_imported_for_their_own_sources_only():
    assert {
        m for m in users_of("accord.engines.spark", everywhere=False) if not m.startswith("accord.lab")
    } == set()
    assert {
        m for m in users_of("accord.engines.postgres", everywhere=False) if not m.startswith("accord.lab")
    } == set()


def test_no_other_randomness_on_the_release_path():
    for module, path in MODULES.items():
        found = {
            i
            for i in imports(path)
            if i.split(".")[0] in ("random", "secrets") or i.startswith("numpy.random")
        }
        # keys and tokens are random as well, and the ids of requests; no release reads them
        draw = ("accord.noise", "accord.ledger.key", "accord.ledger.tokens", "accord.ledger.requests")
        others = ("accord.lab", "accord.server")
        assert module in draw or module.startswith(others) or not found, module
        assert "np.random" not in path.read_text(encoding="utf-8") or module.startswith("accord.lab")


def test_no_module_has_the_name_of_a_public_function():
    functions = {
        name
        for name in accord.__all__
        if callable(getattr(accord, name)) and not isinstance(getattr(accord, name), type)
    }
    assert not functions & {path.stem for path in ROOT.iterdir()}


def test_heavy_parts_are_imported_when_they_are_needed():
    """`import accord` costs NumPy and little else."""
    code = "import accord, sys; print([m for m in ('duckdb', 'pandas', 'pyarrow', 'polars', 'matplotlib', 'rich', 'click', 'sqlite3', 'psycopg') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_public_names_are_documented():
    for name in accord.__all__:
        assert getattr(accord, name).__doc__, name


def test_what_serves_reads_nothing_itself():
    """The service asks the office, and the office releases as anybody does: no engine, no noise, no SQL."""
    server = [module for module in MODULES if module.startswith("accord.server")]
    assert len(server) > 8
    for module in server:
        reached = set(imports(MODULES[module]))
        assert not any(
            i.startswith(("accord.noise", "accord.engines", "duckdb", "accord.lab")) for i in reached
        ), module
    outside = {m for m in users_of("accord.server") if not m.startswith(("accord.server", "accord.cli"))}
    # which reads its settings, and names its client
    assert outside == {"accord.catalogs", "accord"}


def test_the_web_is_imported_for_serving_only():
    web = {m for name in ("fastapi", "starlette", "uvicorn", "jinja2") for m in users_of(name)}
    assert all(module.startswith(("accord.server", "accord.cli.service")) for module in web)
