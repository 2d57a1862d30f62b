"""Pages that show how something is done run, in the order in which they are read, and the site is built from all of docs/."""

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from reading import blocks, values_shown

from accord.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    DOCS / "index.md",
    DOCS / "gap.md",
    *sorted(
        page
        for folder in ("concepts", "howto")
        for page in (DOCS / folder).glob("*.md")
        if page.name != "index.md"
    ),
]


def number_in(comment):
    """The number that a comment begins with."""
    said = re.match(r"\d[\d_.]*", comment)
    return None if said is None else float(said[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_pages_run_and_numbers_are_what_they_say(page, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.parquet").symlink_to(folder / "people.parquet")
    text, names = page.read_text(encoding="utf-8"), {}
    examples = blocks("python", text)
    assert examples
    for block in examples:
        for code, value, comment in values_shown(block, names):
            if isinstance(value, bool) and comment.startswith(("True", "False")):
                assert comment.startswith(str(value)), code
            elif isinstance(value, float) and (said := number_in(comment)) is not None:
                assert value == pytest.approx(said, rel=0.005), code
    for block in blocks("sh", text):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            done = CliRunner().invoke(main, words[1:])
            assert words[0] == "accord" and done.exit_code == 0, done.output


def test_the_table_of_odds():
    """What is printed beside a level is not less than what somebody may find out."""
    from math import ceil, exp, floor, log

    rows = re.findall(
        r"\| ([\d.]+) \| ([\d.]+) times \| ([\d.]+) % \|", (DOCS / "concepts/levels.md").read_text()
    )
    assert len(rows) == 6
    for level, times, surest in (map(float, row) for row in rows):
        assert times == pytest.approx(exp(level), rel=0.005)
        assert surest == ceil(1000 / (1 + exp(-level))) / 10
    rows = re.findall(r"\| ([\d.]+) % \| ([\d.]+) \|", (DOCS / "howto/levels.md").read_text())
    assert len(rows) == 6
    for surest, level in (map(float, row) for row in rows):
        assert level == floor(1000 * log(surest / (100 - surest))) / 1000


def test_every_page_is_in_a_table_of_contents():
    """So that no page is written that nobody finds."""
    listed = set()
    pages = {path for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    for page in pages:
        for tree in blocks(r"\{toctree\}", page.read_text(encoding="utf-8")):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            for entry in entries:
                target = re.sub(r".*<(.*)>", r"\1", entry)
                found = [path for path in page.parent.glob(f"{target}.*") if path.suffix in (".md", ".ipynb")]
                assert found, (page, entry)
                listed.update(path.resolve() for path in found)
    assert pages - listed == {DOCS / "index.md"}


class Fetched(HTMLParser):
    """What a page fetches as it is opened."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(given.get("src") or "")
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.addresses.append(given.get("href") or "")


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path):
    """As `make docs` builds it, with all tutorials run."""
    site = tmp_path / "site"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            "-d",
            tmp_path / "tree",
            DOCS,
            site,
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=1_500,
    )
    assert done.returncode == 0, done.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50 and (site / "searchindex.js").exists()
    for page in pages:
        fetched = Fetched()
        fetched.feed(page.read_text(encoding="utf-8"))
        assert not [address for address in fetched.addresses if "//" in address], page
