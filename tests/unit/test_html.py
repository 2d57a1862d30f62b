"""What notebooks show: whole HTML, whatever anything is called, with pictures that say what they show."""

import re
from math import inf
from xml.etree import ElementTree

import numpy as np
import pytest

import accord
from accord.lab.audit import Audit
from accord.lab.audit.findings import Finding, Look
from accord.report import svg

EVIL = "<script>alert('x')</script>\"&amp;"
N = 120
TIERS = {f"open{EVIL}": inf, f"usual{EVIL}": 2.0, f"strict{EVIL}": 0.5, f"out{EVIL}": 0}


def rows(change=False):
    names = list(TIERS)
    age = np.arange(N) % 80 + 10.0
    sex = [EVIL, "m"] * (N // 2)
    if change:
        age[5], sex[5] = np.nan, "nothing that is declared"
    return {
        "id": np.arange(N) + 7_000_000,
        EVIL: age,
        "sex" + EVIL: sex,
        "ward": ["a", EVIL] * (N // 2),
        "tier" + EVIL: [names[k % 4] for k in range(N)],
    }


def opened(change=False):
    return accord.table(rows(change), epsilon="tier" + EVIL, tiers=TIERS, user="id")


GROUPS = {"by": "sex" + EVIL, "keys": [EVIL, "m", "nobody"]}
QUESTIONS = {
    "mean": accord.mean(EVIL, bounds=(0, 100)),
    "groups": accord.mean(EVIL, bounds=(0, 100), **GROUPS),
    "public groups": accord.mean(
        EVIL, bounds=(0, 100), by="ward", keys=["a", EVIL, "nobody"], membership="public"
    ),
    "histogram": accord.histogram("sex" + EVIL, categories=[EVIL, "m"], missing=f"none{EVIL}"),
    "median": accord.median(EVIL, bounds=(0, 100)),
    "quantiles": accord.quantile(EVIL, [0.25, 0.5, 0.75], bounds=(0, 100)),
    "regression": accord.regression(
        EVIL, ["sex" + EVIL], bounds={EVIL: (0, 100)}, categories={"sex" + EVIL: ["m", EVIL]}
    ),
    "workload": accord.workload(
        [accord.mean(EVIL, bounds=(0, 100)), accord.histogram("sex" + EVIL, categories=[EVIL, "m"])]
    ),
}
WITHOUT_PICTURE = ("mean", "median")


def checked(html):
    """As a tree, in which nothing runs and nothing is fetched."""
    tree = ElementTree.fromstring(f"<body>{html}</body>")
    for element in tree.iter():
        assert element.tag in {"body", "div", "p", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"} | {
            "svg", "title", "desc", "text", "rect", "path", "circle"
        }  # fmt: skip
        assert not any(
            name.startswith("on") or name in ("href", "src", "id", "class") for name in element.attrib
        )
        assert "url(" not in element.get("style", "")
    for picture in tree.iter("svg"):
        assert picture.get("role") == "img"
        assert picture.find("title").text == picture.get("aria-label")
        assert picture.find("desc").text
    return tree


def text_of(tree):
    return " ".join("".join(tree.itertext()).split())


def test_a_table_and_its_levels():
    people = opened()
    tree = checked(people._repr_html_())
    assert "The levels have not been read yet" in text_of(tree)
    assert not list(tree.iter("svg"))
    people.spec()
    tree = checked(people._repr_html_())
    assert f"usual{EVIL}" in text_of(tree)
    assert len(list(tree.iter("svg"))) == 1
    assert text_of(checked(people.spec()._repr_html_())) in text_of(tree)


@pytest.mark.parametrize("name", QUESTIONS)
def test_plans_and_releases(name):
    people = opened()
    plan = people.plan(QUESTIONS[name])
    release = people.release(plan)
    for shown, has_picture in ((plan, True), (release, name not in WITHOUT_PICTURE)):
        tree = checked(shown._repr_html_())
        assert bool(list(tree.iter("svg"))) == has_picture
        for word in re.findall(r"[\d.,]{4,}", str(shown)):  # every number of the text is there
            assert word.strip(".,") in text_of(tree)
        assert EVIL in text_of(tree)


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_public_is_the_same_for_neighbors(name):
    one, other = opened(), opened(change=True)
    assert one.plan(QUESTIONS[name])._repr_html_() == other.plan(QUESTIONS[name])._repr_html_()
    assert one._repr_html_() == other._repr_html_()
    assert one.spec()._repr_html_() == other.spec()._repr_html_()


def test_many_levels_and_columns_stay_small():
    columns = {f"c{k}": np.zeros(400) for k in range(200)}
    people = accord.table({**columns, "level": np.arange(1, 401) / 100}, epsilon="level")
    plan = people.plan(accord.mean("c1", bounds=(0, 1)))
    for shown in (people, people.spec(), plan, people.release(plan)):
        checked(shown._repr_html_())
        assert len(shown._repr_html_()) < 60_000
    assert "… 141 more columns" in people._repr_html_()


def test_a_ledger_shows_accounts_and_nobody(tmp_path):
    people, ledger = opened(), accord.Ledger(tmp_path / f"{'<script>'.replace('/', '')}.db")
    assert "No table is registered yet" in text_of(checked(ledger._repr_html_()))
    ledger.register(people, f"people{EVIL}")
    people.release(QUESTIONS["mean"], "minimum", 0.5, ledger=ledger)
    tree = checked(ledger._repr_html_())
    assert f"people{EVIL}, strict{EVIL}: 50%" in tree.find(".//desc").text
    assert "70000" not in ledger._repr_html_()
    (tmp_path / "<script>.db").write_bytes(b"damaged")
    assert "ledger" in text_of(checked(ledger._repr_html_()))


def test_an_audit():
    look = Look("exact", "affine", "mean", "replace", "1", 1.0, 2.0, evidence=EVIL)
    tree = checked(
        Audit((Finding("affine", "mean", "replace", "1", {"exact": look}),), 1, 0, 0.1, 0, 1.0)._repr_html_()
    )
    assert "VIOLATED" in text_of(tree)
    assert EVIL in text_of(tree)


def test_what_a_table_tells_from_the_second_release_on():
    people = opened()
    people.release(QUESTIONS["mean"])
    assert "No ledger keeps account: 2 releases" in text_of(
        checked(people.release(QUESTIONS["mean"])._repr_html_())
    )


def test_bars_below_zero_end_at_zero():
    """All numbers negative: zero is in the picture, on the right, and no bar begins left of where its label ends."""
    picture = svg.bars("slopes", [svg.Mark("a", -2.0, "-2"), svg.Mark("b", -1.0, "-1")])
    bars = [
        (float(x), float(width))
        for x, width in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', picture)
    ]
    (first, longer), (second, shorter) = bars
    assert longer == pytest.approx(2 * shorter, abs=0.2)
    assert first + longer == pytest.approx(second + shorter, abs=0.2)
    assert first >= 190 and first + longer <= 640 - 90
