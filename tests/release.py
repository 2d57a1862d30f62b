"""What is checked before a version is given to anybody. `make release` runs all of it, in order, and stops at the first fault.

    python tests/release.py                 on every Python from 3.11 on that is at hand
    python tests/release.py --only 3.12     on this one

1. Nothing is uncommitted, and the version is the same wherever it stands.
2. The wheel and the source archive build without a warning.
3. In a fresh environment for each Python, and in one with the oldest versions that pyproject.toml allows: the wheel installs, `accord demo`
   runs, and the first lines of the README give a number.
4. What a person does by hand is printed: tests, changes of a guarantee, the tag.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)
FIRST_NUMBER = """
import accord
people = accord.table("people.parquet", epsilon="epsilon")
answer = people.release(accord.mean("income", bounds=(0, 200_000), missing="none"))
low, high = answer.interval(0.95)
assert low < answer.value < high, answer
print(answer.value)
"""
BY_HAND = """\
By hand, before the tag:
- bash .ci/run passes on a clean clone.
- Each change of a guarantee since the last version stands under **Privacy** in CHANGELOG.md, with how to tell from a receipt.
- "(unreleased)" is replaced by the date there, and in CITATION.cff date-released is added.
- python -m accord.lab.audit.offered_page and `accord audit --deep` (an hour) find nothing.
- git tag -a v{version}"""


def step(what):
    print(f"— {what}", file=sys.stderr, flush=True)


def run(*command, cwd=ROOT, quiet=True):
    """A command that must succeed; what it prints."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode or not quiet:
        sys.stderr.write(done.stdout[-3_000:] + done.stderr[-3_000:])
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return done.stdout


def version():
    """The one that the package, the changelog and the citation agree on."""
    places = {
        "src/accord/__init__.py": r'^__version__ = "(.*)"$',
        "CHANGELOG.md": r"^## (\S+)",
        "CITATION.cff": r"^version: (.*)$",
    }
    said = {}
    for name, pattern in places.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        said[name] = found[1] if found else None
    if len(set(said.values())) != 1:
        raise SystemExit(f"the version is not the same everywhere: {said}")
    return said["CHANGELOG.md"]


def pythons():
    """Every Python that is at hand and new enough, by its version."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], 30)]
    kept = Path.home() / ".pyenv" / "versions"
    candidates = [sys.executable, *filter(None, map(shutil.which, names)), *kept.glob("*/bin/python")]
    by_version = {}
    for path in candidates:
        asked = [str(path), "-c", "import sys; print(*sys.version_info[:2])"]
        said = subprocess.run(asked, capture_output=True, text=True)
        if said.returncode == 0:  # a shim may stand for nothing
            by_version.setdefault(tuple(map(int, said.stdout.split())), path)
    return {key: path for key, path in sorted(by_version.items()) if key >= OLDEST}


def oldest_allowed():
    """The lowest versions of what the core and pictures need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["plot"]]
    return [one.replace(">=", "==") for one in needed]


def try_wheel(wheel, python, folder, pinned=()):
    """In a fresh environment, as somebody has it who has nothing but the wheel."""
    run(python, "-m", "venv", folder)
    inside = folder / "bin"
    run(inside / "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[plot]", *pinned)
    work = folder / "work"
    work.mkdir()
    run(inside / "accord", "demo", cwd=work)
    run(inside / "accord", "demo", "--save", "people.parquet", cwd=work)
    number = float(run(inside / "python", "-c", FIRST_NUMBER, cwd=work))
    by_command = [inside / "accord", "release", "people.parquet", "mean", "income", "--bounds", "0", "200000"]
    answer = json.loads(run(*by_command, "--epsilon", "epsilon", "--json", cwd=work))
    assert 0 < number < 200_000 and answer["schema"] == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="VERSION", help="such as 3.12")
    parser.add_argument("--uncommitted", action="store_true", help="try it on a work tree that is not clean")
    said = parser.parse_args()
    if not said.uncommitted and run("git", "status", "--porcelain"):
        raise SystemExit("something is not committed. Commit it, or say --uncommitted.")
    number = version()
    step(f"version {number}")
    at_hand = pythons()
    if said.only:
        wanted = tuple(map(int, said.only.split(".")))
        at_hand = {key: path for key, path in at_hand.items() if key == wanted}
    if not at_hand:
        raise SystemExit("no such Python is at hand")
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        run(sys.executable, "-W", "error", "-m", "hatchling", "build", "-d", out)
        (wheel,) = out.glob("*.whl")
        step(f"built {wheel.name} and {next(out.glob('*.tar.gz')).name}")
        for key, python in at_hand.items():
            step("the wheel on Python " + ".".join(map(str, key)))
            try_wheel(wheel, python, out / "-".join(map(str, key)))
        python = next(iter(at_hand.values()))
        step(f"with the oldest versions: {', '.join(oldest_allowed())}")
        try_wheel(wheel, python, out / "oldest", oldest_allowed())
    print(BY_HAND.format(version=number))


if __name__ == "__main__":
    main()
