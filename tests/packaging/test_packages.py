"""What is built and handed on: the wheel, the source archive, and what they say of themselves."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import accord

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IN_SOURCES = {
    ".ci", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "PKG-INFO", "README.md",
    "SECURITY.md", "bench", "constraints.txt", "docs", "pyproject.toml", "src", "tests",
}  # fmt: skip
NOT_CODE = {".css", ".svg", ".html", ".js", ".parquet", ".json", ".csv", ".txt", ".md", ""}
"""Endings of what lies beside the code in src: data, licences, and what the service's pages need."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Both, built from what git tracks; hatchling says nothing but their names."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).exists():  # else it is about to be removed
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    built = subprocess.run(
        [sys.executable, "-W", "error", "-m", "hatchling", "build", "-d", str(out)],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "warn" not in (built.stdout + built.stderr).lower()
    return tree, next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def test_the_wheel_holds_the_package_and_nothing_else(built):
    tree, wheel, _ = built
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    package = {name for name in names if name.startswith("accord/")}
    assert package == {
        path.relative_to(tree / "src").as_posix() for path in (tree / "src").rglob("*") if path.is_file()
    }
    about = f"accord-{accord.__version__}.dist-info"
    assert names - package == {
        f"{about}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    beside = Counter(Path(name).suffix for name in package if not name.endswith((".py", "py.typed")))
    assert set(beside) <= NOT_CODE


def test_the_source_archive_holds_what_it_takes_to_test_it(built):
    tree, _, archive = built
    prefix = f"accord-{accord.__version__}/"
    with tarfile.open(archive) as opened:
        names = {name.removeprefix(prefix) for name in opened.getnames()}
    assert {name.split("/")[0] for name in names} - {""} == IN_SOURCES
    tracked = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert names - {"PKG-INFO"} <= tracked
    left_out = {name.split("/")[0] for name in tracked - names}
    assert left_out <= {".github"}


def test_one_version_everywhere():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited and newest
    assert cited[1] == newest[1] == accord.__version__


def test_all_is_every_extra_that_a_user_may_want():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"accord\[(.*)\]", everything)
    assert named and set(named[1].split(",")) == set(extras) - {"all", "test", "docs"}


def test_every_python_that_is_named_is_run():
    """The classifiers are those of the hosted workflow, from the oldest that is allowed on."""
    named = [c.removeprefix("Programming Language :: Python :: ") for c in PROJECT["classifiers"]]
    named = [version for version in named if re.fullmatch(r"3\.\d+", version)]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow) == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_nothing_names_where_packages_come_from():
    for name in ("pyproject.toml", "constraints.txt", "Makefile", ".ci/run"):
        assert not re.search(r"index-url|://", (ROOT / name).read_text(encoding="utf-8")), name
