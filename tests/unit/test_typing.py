"""What type checkers say to somebody who uses accord: in strict mode, and about every kind of answer."""

import re
import sys
from pathlib import Path

from mypy import api

import accord

ROOT = Path(__file__).parents[2]
ANSWERS = """
from datetime import date, datetime
from typing import Any, assert_type

import accord

people = accord.table("people.parquet", epsilon="epsilon")
mean = accord.mean("income", bounds=(0, 200_000))
assert_type(people.release(mean).value, float)
assert_type(people.plan(mean), accord.Plan[float])
assert_type(accord.plan(people.spec(), mean), accord.Plan[float])
assert_type(people.release(people.plan(mean)), accord.Release[float])
assert_type(people.release(accord.count(where="age >= 65")).value, float)
assert_type(people.release(accord.histogram("age", edges=[0, 50, 100])).value, dict[Any, float])
assert_type(people.release(accord.median("age", bounds=(0, 120))).value, float)
assert_type(people.release(accord.max("born", bounds=(date(1900, 1, 1), date(2026, 1, 1)))).value, date)
assert_type(people.release(accord.min("seen", bounds=(datetime(2025, 1, 1), datetime(2026, 1, 1)))).value, datetime)
assert_type(people.release(accord.regression("a", ["b"], bounds={"a": (0, 1)})).value, accord.Coefficients)
assert_type(people.release(accord.workload([mean])).value, list[Any])
assert_type(people.release(accord.count(by="sex", keys=["f", "m"])).value, list[dict[str, Any]])
assert_type(accord.sample(lambda rows, epsilon: "text", people).value, str)


def asked(by: str | None) -> None:
    assert_type(accord.count(by=by), accord.Query[Any])


accord.mean("income", bound=(0, 1))  # type: ignore[call-overload]
anything: accord.Release = people.release(mean)
"""


def test_the_readme_and_every_kind_of_answer_in_strict_mode(tmp_path, monkeypatch):
    """As in a project of a user's own, which has no settings."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "readme.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL)))
    (tmp_path / "answers.py").write_text(ANSWERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(Path(accord.__file__).parents[1]))
    version = f"--python-version={sys.version_info.major}.{sys.version_info.minor}"
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'users'}"
    said, faults, code = api.run(["--strict", "--config-file=", version, cache, "readme.py", "answers.py"])
    assert (code, faults) == (0, ""), said
