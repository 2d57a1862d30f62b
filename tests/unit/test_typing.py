"""What type checkers say to somebody who uses accord: in strict mode, and about every kind of answer."""

import re
import sys
from pathlib import Path

import pytest
from mypy import api

import accord

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "typed" / "answers.py"


@pytest.mark.slow
def test_the_readme_and_every_kind_of_answer_in_strict_mode(tmp_path, monkeypatch):
    """As in a project of a user's own, which has no settings.

    `make lint` checks the same answers with the settings of this one, in a fraction of the time.
    """
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/start.md")]
    examples = re.findall(r"```python\n(.*?)```", "\n".join(pages), re.DOTALL)
    (tmp_path / "readme.py").write_text("\n".join(examples))
    (tmp_path / "answers.py").write_text(ANSWERS.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(Path(accord.__file__).parents[1]))
    version = f"--python-version={sys.version_info.major}.{sys.version_info.minor}"
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'users'}"
    said, faults, code = api.run(["--strict", "--config-file=", version, cache, "readme.py", "answers.py"])
    assert (code, faults) == (0, ""), said
