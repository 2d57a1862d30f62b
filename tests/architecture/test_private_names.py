"""No module uses another module's private names, in src and in tests."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
)
NOT_OURS = {
    *("_replace", "_asdict", "_fields", "_field_defaults"),  # of named tuples, whose public names these are
    *(
        "_exit",
        "_getframe",
        "_processes",
        "_sysrand",
    ),  # of the standard library, which has no other names for them
    *("_repr_html_", "_repr_png_"),  # of Jupyter, which knows them by these names
    *("_active_spark_context", "_gateway"),  # of PySpark
}

LOOKED_AT = (ast.FunctionDef, ast.ClassDef, ast.Attribute, ast.Name, ast.ImportFrom, ast.Call)


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_"


def own_names(nodes):
    """What a module defines: functions, classes, fields, attributes that it sets, parameters and variables."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def reach_ins(source):
    """Private names of others that a module uses, with their lines."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, LOOKED_AT)]
    own = set(own_names(nodes)) | NOT_OURS
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            name, patches = node.args[1].value, getattr(node.func, "attr", "") in ("setattr", "object")
            if patches and isinstance(name, str) and is_private(name) and name not in own:
                yield node.lineno, name  # monkeypatch.setattr(module, "_name", …)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_uses_anothers_private_names(path):
    assert list(reach_ins(path.read_text(encoding="utf-8"))) == []


def test_a_reach_in_is_seen():
    assert list(reach_ins("import a\na._b")) == [(2, "_b")]
    assert list(reach_ins("from a import _b")) == [(1, "_b")]
    assert list(reach_ins("patched.setattr(a, '_b', 1)")) == [(1, "_b")]
    assert list(reach_ins("class A:\n    def _b(self): return self._b")) == []
