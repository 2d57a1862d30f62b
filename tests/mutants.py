"""Change the code where privacy is decided, one small change at a time, and see whether a test fails.

    make mutants                                              # a sample of 300, the same each time
    python tests/mutants.py --only src/accord/noise.py        # every mutant of a file, or of a line: noise.py:71
    python tests/mutants.py --count 100 --seed 2 --jobs 2     # another sample, two at a time
    python tests/mutants.py --list                            # which there are

A *mutant* is the package with one change (mutations.py): `<` for `<=`, a constant one larger, a check left out. A
mutant that no test notices has *survived*: a test is missing, or the change makes no difference (docs/audit.md).

First every test file is run once, and the examples in docstrings, with `coverage`, to know which tests run which
line and how long each takes (kept in .mutants.json until src or the file changes). Then each mutant gets the tests
that run its line, quickest first, until one fails. Lines that run when a module is imported are tried by all tests of the module.

Nothing here touches the tree: mutants live in a copy of it. This process imports what tests need, but not accord;
each mutant is a fork of it that imports accord from its copy: it starts at once, and leaves nothing to the next.
The exit code is 1 if the unchanged code fails, else 0: survivors are for reading, not for a gate.
"""

import argparse
import contextlib
import difflib
import functools
import gc
import hashlib
import json
import os
import pkgutil
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a fork keeps no threads

import coverage
import hypothesis
import pytest
from mutations import mutants

for name in (
    "click.testing",
    "duckdb",
    "numpy",
    "pandas",
    "polars",
    "pyarrow.parquet",
    "rich.table",
    "scipy.stats",
):
    __import__(name)  # once, instead of once for each mutant

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / ".mutants.json"
ROOMS = (
    "noise.py", "budget.py", "relation.py", "spec.py", "numerals.py", "dates.py", "key_files.py", "catalogs.py", "catalog_tables.py",
    "sampling.py", "ordered.py",
    "planning", "mechanisms", "release", "ledger", "engines", "statistics", "people",
)  # fmt: skip
LEFT_OUT = (  # no cluster, nothing that starts many processes, and not what is about the lab, texts or names
    "architecture", "docs", "lab", "engines/test_spark.py", "ledger/test_concurrency.py", "ledger/test_crash.py",
    "statistical/test_auditors.py",
)  # fmt: skip
KILLED, TIMED_OUT, SURVIVED, NO_TEST = "killed", "timed out", "survived", "no test"


# ---- in a fork: running tests ------------------------------------------------------------------------------------


class Chosen:
    """A plugin of pytest: only these tests, in this order, each with a limit of time; examples are not shrunk."""

    def __init__(self, seconds, killer):
        self.seconds, self.killer = seconds, killer

    def pytest_sessionstart(self):
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", hypothesis.settings(), phases=phases)
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.seconds if test in found]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(2))
        signal.alarm(round(30 + 10 * self.seconds[item.nodeid]))
        yield
        signal.alarm(0)
        return True

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.killer.write_text(report.nodeid)


class Mapping:
    """A plugin of pytest: which test runs which line, and how long it takes."""

    def __init__(self, tree):
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=map(str, files_of_rooms(tree))
        )
        self.seconds, self.cached = {}, []
        self.coverage.start()
        import accord

        for module in pkgutil.walk_packages(accord.__path__, "accord."):  # so that no test is the first to
            if module.name.split(".")[1] in {room.removesuffix(".py") for room in ROOMS}:
                __import__(module.name)

    def pytest_collection_finish(self):
        cached = [f for f in gc.get_objects() if isinstance(f, type(functools.cache(len)))]
        self.cached = [f for f in cached if str(f.__module__).startswith("accord")]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        for function in self.cached:  # or else only the first test would run its lines
            function.cache_clear()
        self.coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        self.coverage.switch_context("")
        return True


def run_pytest(tree, file, plugin):
    options = ["-x", "-m", "not slow and not spark", "-p", "no:cacheprovider", "--tb=short"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are imported already
    return pytest.main([*options, f"--rootdir={tree}", f"--basetemp={tree}/temporary", file], [plugin])


def map_file(tree, file):
    """Write down which tests of a file run which lines."""
    plugin = Mapping(tree)
    if run_pytest(tree, file, plugin) not in (0, 5):
        return 1
    plugin.coverage.stop()
    data, tests = plugin.coverage.get_data(), sorted(plugin.seconds)
    number, lines = {test: i for i, test in enumerate(tests)}, {}
    for path in data.measured_files():
        lines[str(Path(path).relative_to(tree))] = {
            line: [number[test] for test in contexts if test]
            for line, contexts in data.contexts_by_lineno(path).items()
        }
    result = {"tests": [(test, plugin.seconds[test]) for test in tests], "lines": lines}
    (tree / "result").write_text(json.dumps(result))
    return 0


def try_tests(tree, sessions):
    """Whether a test fails, in any of several sessions of {test: seconds} of one file."""
    for tests in sessions:
        if run_pytest(tree, file_of(next(iter(tests))), Chosen(tests, tree / "killer")) not in (0, 5):
            return 1
    return 0


def in_fork(tree, job, *arguments):
    """The process in which job(tree, …) runs, with `accord` from a copy of the tree."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        os.chdir(tree)
        resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
        log = os.open(tree / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ["PYTHONPATH"] = str(tree / "src")
        sys.path.insert(0, str(tree / "src"))
        assert "accord" not in sys.modules
        code = job(tree, *arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# ---- the whole ---------------------------------------------------------------------------------------------------


def in_turn(jobs, trees):
    """Yield (name, tree, exit code, seconds) of jobs {name: start}, as many at a time as there are trees.

    start(tree) gives a process.
    """
    waiting, running, free = list(jobs), {}, list(trees)
    while waiting or running:
        while waiting and free:
            name, tree = waiting.pop(0), free.pop()
            running[jobs[name](tree)] = name, tree, time.monotonic()
        time.sleep(0.02)
        for pid, (name, tree, start) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            seconds = time.monotonic() - start
            if done or seconds > 1200:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)  # with all that it has started
            if done:
                del running[pid]
                free.append(tree)
                yield name, tree, os.waitstatus_to_exitcode(status), seconds


def files_of_rooms(tree):
    rooms = [tree / "src/accord" / room for room in ROOMS]
    return [path for room in rooms for path in ([room] if room.is_file() else sorted(room.rglob("*.py")))]


def refuse_failure(code, tree):
    if code:
        sys.exit(f"The unchanged code fails:\n{(tree / 'log').read_text()[-3000:]}")


def map_tests(trees, only):
    """{file of src: {line: {test: seconds}}}, from what was kept or from new runs."""
    tests, shared = ROOT / "tests", hashlib.sha256()
    for path in sorted([*(ROOT / "src").rglob("*.py"), *tests.glob("*.py"), *tests.rglob("conftest.py")]):
        if path.name not in ("mutants.py", "mutations.py"):
            shared.update(path.read_bytes())
    left_out = [tests / name for name in LEFT_OUT]
    digests = {}
    examples = [path for path in files_of_rooms(ROOT) if ">>>" in path.read_text(encoding="utf-8")]
    for path in sorted([*examples, *tests.rglob("test_*.py")]):
        asked = not only or any(path.is_relative_to(Path(folder).resolve()) for folder in only)
        if asked and not any(path.is_relative_to(name) for name in left_out):
            digest = hashlib.sha256(shared.digest() + path.read_bytes()).hexdigest()
            digests[str(path.relative_to(ROOT))] = digest
    kept = json.loads(MAP.read_text()) if MAP.exists() else {}
    jobs = {
        file: lambda tree, file=file: in_fork(tree, map_file, file)
        for file, digest in digests.items()
        if kept.get(file, {}).get("digest") != digest
    }
    for file, tree, code, seconds in in_turn(jobs, trees):
        refuse_failure(code, tree)
        kept[file] = {**json.loads((tree / "result").read_text()), "digest": digests[file]}
        MAP.write_text(json.dumps(kept))
        print(f"  {file}: {len(kept[file]['tests'])} tests, {seconds:.0f} s", file=sys.stderr)
    by_line = defaultdict(lambda: defaultdict(dict))
    for file in digests:
        for path, lines in kept[file]["lines"].items():
            for line, numbers in lines.items():
                by_line[path][int(line)].update(kept[file]["tests"][number] for number in numbers)
    return by_line


def tests_of(lines, first, last, most):
    """{test: seconds} of tests that run a line, up to so many seconds in all.

    First the quickest case of every test: other cases of one test seldom see more.
    """
    run = [lines[line] for line in range(first, last + 1) if line in lines]
    if run and not any(run):  # it runs when it is imported
        run = lines.values()
    seconds = {test: s for tests in run for test, s in tests.items()}
    quickest = {test.partition("[")[0]: test for test in sorted(seconds, key=seconds.get, reverse=True)}
    chosen = {}
    for test in sorted(seconds, key=lambda test: (test != quickest[test.partition("[")[0]], seconds[test])):
        if sum(chosen.values()) + seconds[test] <= most or not chosen:
            chosen[test] = seconds[test]
    return chosen


def in_sessions(tests, kills):
    """Those that have killed a mutant of the same file before come first, then file by file, quickest first."""
    before = sorted((test for test in tests if kills[test]), key=lambda test: -kills[test])[:8]
    sessions = defaultdict(dict)
    for test in (*before, *sorted(tests, key=tests.get)):
        if (True, file_of(test)) not in sessions or test not in sessions[True, file_of(test)]:
            sessions[test in before, file_of(test)][test] = tests[test]
    return list(sessions.values())


def file_of(test):
    return test.partition("::")[0]


def outcomes(every, trees, by_line, most):
    """[outcome of each mutant], and the tests that failed."""
    outcome, jobs, kills = [NO_TEST] * len(every), {}, defaultdict(Counter)
    for i, (path, first, last, source) in enumerate(every):
        tests = tests_of(by_line.get(path, {}), first, last, most)

        def start(tree, i=i, path=path, source=source, tests=tests):
            (tree / "killer").unlink(missing_ok=True)
            (tree / path).write_bytes(source)
            os.utime(tree / path, (i + 1, i + 1))  # so that no compiled file is taken for another's
            return in_fork(tree, try_tests, in_sessions(tests, kills[path]))

        if tests:
            jobs[i] = start
    for done, (i, tree, code, seconds) in enumerate(in_turn(jobs, trees), 1):
        path, first, *_ = every[i]
        shutil.copy2(ROOT / path, tree / path)
        outcome[i] = {0: SURVIVED, 2: TIMED_OUT, -signal.SIGKILL: TIMED_OUT}.get(code, KILLED)
        print(f"  {done}/{len(jobs)} {path}:{first} {outcome[i]} ({seconds:.0f} s)", file=sys.stderr)
        if outcome[i] == SURVIVED:
            print(difference(*every[i]), flush=True)
        if outcome[i] == KILLED and (tree / "killer").exists():
            kills[path][(tree / "killer").read_text()] += 1
    return outcome, {test: 60.0 for tests in kills.values() for test in tests}


def difference(path, first, last, source):
    """A mutant as a reader sees it."""
    old, new = (ROOT / path).read_text(encoding="utf-8").splitlines(), source.decode().splitlines()
    return "\n".join([f"{path}:{first}", *list(difflib.unified_diff(old, new, lineterm="", n=0))[3:], ""])


def report(every, outcome):
    for mutant, came_of_it in zip(every, outcome, strict=True):
        if came_of_it == NO_TEST:
            print(f"no test runs {difference(*mutant)}")
    kinds, counts = (KILLED, TIMED_OUT, SURVIVED, NO_TEST), defaultdict(Counter)
    for (path, *_), came_of_it in zip(every, outcome, strict=True):
        counts[path][came_of_it] += 1
        counts["together"][came_of_it] += 1
    print(f"{'':40}" + "".join(f"{kind:>10}" for kind in kinds))
    for path, count in counts.items():
        print(f"{path.removeprefix('src/accord/'):40}" + "".join(f"{count[kind]:>10}" for kind in kinds))


def is_asked_for(path, first, last, only):
    for asked in only or [""]:
        part, _, lines = asked.partition(":")
        begin, _, end = lines.partition("-")
        if part.strip("/") in path and (not lines or (first <= int(end or begin) and int(begin) <= last)):
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", action="append", metavar="PATH[:LINE[-LINE]]", help="of these files or lines"
    )
    parser.add_argument("--count", type=int, help="a sample of so many (default: 300, or all of --only)")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--tests", action="append", metavar="PATH", help="only with these tests")
    parser.add_argument("--seconds", type=float, default=60, help="of tests for each mutant, at most")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    options = parser.parse_args()

    every = []
    for file in files_of_rooms(ROOT):
        path = str(file.relative_to(ROOT))
        every += [(path, *m) for m in mutants(file.read_bytes()) if is_asked_for(path, *m[:2], options.only)]
    count = options.count or (len(every) if options.all or options.only else 300)
    every = random.Random(options.seed).sample(every, min(count, len(every)))
    every.sort(key=lambda mutant: mutant[:2])
    if options.list:
        print("\n".join(difference(*mutant) for mutant in every))
        return
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".data", ".hypothesis")
    with tempfile.TemporaryDirectory(prefix="accord-mutants-") as folder:
        trees = [Path(shutil.copytree(ROOT, f"{folder}/{i}", ignore=ignored)) for i in range(options.jobs)]
        outcome, killers = outcomes(every, trees, map_tests(trees, options.tests), options.seconds)
        report(every, outcome)
        # what failed must pass where nothing is changed, run in the same way
        sessions = in_sessions(killers, Counter())
        for _, tree, code, _ in in_turn(
            {"unchanged": lambda tree: in_fork(tree, try_tests, sessions)}, trees
        ):
            refuse_failure(code, tree)


if __name__ == "__main__":
    main()
