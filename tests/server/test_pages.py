"""The pages as a person sees them: one journey through a real browser; and, without one, who gets in and what is never shown."""

import csv
import html
import json
import re
from io import StringIO

import pytest
from browsing import ALL, GUARDED, Person, Visitor, browser
from serving import MARKER, PEOPLE, SECRET, SIGNED, make_office, serving

import accord
from accord.ledger import tokens
from accord.server.office import Office

SIGNED_IN = Visitor


# ---- a journey -------------------------------------------------------------------------------------------


def test_an_analyst_plans_releases_and_finds_it_again(tmp_path):
    made = make_office(tmp_path)
    with serving(made.office) as url, browser() as chromium:
        ada = Person(chromium, url)
        ada.go("/ask")  # which asks who it is, and goes on to it
        ada.page.get_by_label("Your token").fill(made.tokens["ada"])
        ada.press("Sign in")
        ada.heading("The plan appears here")
        ada.page.get_by_label("Of which column?").select_option("stay")
        ada.heading("Mean of stay")
        assert "column=stay" in ada.page.url
        ada.page.get_by_label("Of whom only?").fill("stay >")
        ada.heading("No plan yet")
        ada.page.get_by_label("Of whom only?").fill("ward = 'A'")
        ada.page.get_by_label("Why is it asked?").fill("to see")
        ada.page.locator('input[name=asked][value*="to see"]').wait_for(state="attached")
        ada.heading("Mean of stay where ward = 'A'")
        ada.press("Release the answer")
        ada.heading("The answer")
        assert "with 95 % confidence between" in ada.text()
        ada.page.get_by_role("link", name="History").first.click()
        ada.see("mean of stay where ward = 'A'")
        ada.see("to see")
        ada.press("Sign out")
        ada.heading("Sign in")
        assert ada.complaints == []
    (event,) = made.office.ledger.history()
    assert (event["actor"], event["purpose"], event["state"]) == ("ada", "to see", "released")


# ---- without scripts -------------------------------------------------------------------------------------


def test_forms_alone_will_do(fresh):
    made, visitors, _ = fresh
    ada = visitors["ada"]
    form = ada.asked(statistic="mean", column="stay", by="ward", share=0.1, purpose="to+see")
    assert json.loads(form["asked"]) == {
        "question": {"statistic": "mean", "column": "stay", "by": "ward"},
        "share": 0.1,
        "purpose": "to see",
    }
    places = {ada.send("/ask/release", **form)[2]["location"] for _ in range(3)}
    assert len(places) == 1  # one key, one request, one charge
    page = ada.answer(places.pop())
    assert "The answer" in page and page.count('<th scope="row">') >= 4
    assert len(made.office.ledger.history()) == 1
    assert ada.get("/budgets").count("0.9") >= 1
    rows = list(csv.DictReader(StringIO(ada.get("/history.csv"))))
    assert [row["of"] for row in rows] == ["A", "B"] and all(row["low"] for row in rows)
    assert [event["purpose"] for event in json.loads(ada.get("/history.json"))["history"]] == ["to see"]
    assert "Nothing was done that fits" in ada.get("/history?since=2100-01-01")
    receipt = json.loads(
        ada.get(
            f"/requests/{made.office.requests(made.office.signed_in(made.tokens['ada']))[0]['id']}/receipt.json"
        )
    )
    assert receipt["state"] == "done"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("statistic=mean&column=stay&share=nothing", "share: 'nothing' is not a number. Write it with digits, such as 0.05."),
        ("statistic=mean&column=stay&where=stay+>", "No plan yet"),
        ("statistic=everything", "the page does not ask for 'everything'. Choose one of its list."),
        ("statistic=histogram&column=stay&cells=5000", "A page draws 1 to 200 cells, and 5000 are asked for."),
        ("statistic=mean&column=stay&low=0&high=99", "bounds of 'stay' are declared as [0, 60]"),
        ("statistic=mean", "Choose a column."),
        ("statistic=proportion", "Choose what people meet."),
        ("statistic=sql&text=DROP+TABLE+people", "No plan yet"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_told_beside_the_form(served, asked, told):
    _, visitors, _ = served
    status, page, _ = visitors["ada"](f"/ask?{asked}")
    assert told.lower() in html.unescape(page).lower() and (status == 200 or "everything" in asked)


@pytest.mark.parametrize(
    "asked",
    [
        "statistic=sum&column=stay&low=0&high=60",
        "statistic=count",
        "statistic=count&where=stay>3&by=ward",
        "statistic=proportion&condition=stay>3",
        "statistic=median&column=stay",
        "statistic=quantile&column=stay&p=0.9",
        "statistic=histogram&column=ward",
        "statistic=histogram&column=stay&cells=4",
        "statistic=std&column=stay",
        "statistic=min&column=stay",
        "statistic=max&column=stay",
        "statistic=top&column=ward&k=1",
        "statistic=mean&column=stay&by=ward",
        "statistic=mean&column=stay&mechanism=minimum&std=10&gap=2",
        "statistic=sql&text=SELECT+ward,+AVG(stay)+AS+days+FROM+people+GROUP+BY+ward&one_row_each=1",
    ],
)
def test_whatever_the_page_offers_is_answered(served, asked):
    _, visitors, _ = served
    fields = dict(pair.split("=", 1) for pair in asked.split("&"))
    form = visitors["ada"].asked(
        **{name: value.replace(">", "%3E") for name, value in fields.items()}, share=0.001
    )
    status, page, headers = visitors["ada"].send("/ask/release", **form)
    assert status == 303, page
    assert "The answer" in visitors["ada"].answer(headers["location"])


# ---- what is never shown ---------------------------------------------------------------------------------


def test_what_is_forbidden_and_what_is_not_there_look_alike(fresh):
    made, visitors, _ = fresh
    ada, bob = visitors["ada"], visitors["bob"]
    place = ada.send("/ask/release", **ada.asked(statistic="mean", column="stay", share=0.1))[2]["location"]
    ada.answer(place)
    pages = [
        bob(path)
        for path in (
            *(place, f"{place}/receipt.json", f"/requests/{'0' * 32}", "/nothing", "/ask?table=hidden"),
            *("/ask?table=nothing", "/levels?table=hidden", "/levels?table=nothing", "/static/../access.py"),
            *GUARDED,
            *("/board?table=hidden", "/audit/page.html", "/history?kind=token"),
        )
    ]
    pages += [bob.post("/audit", mechanism="affine", statistic="mean")]
    pages += [bob.post(path, request="x", id="p1", purpose="x") for path in GUARDED[:5] if path != "/board"]
    assert {status for status, *_ in pages} == {404}
    texts = {re.sub(r' aria-current="page"|value="[^"]*"', "", page) for _, page, _ in pages}
    assert len(texts) == 1
    assert "This page is not here" in texts.pop()
    assert visitors["omar"]("/person")[0] == 404 and visitors["omar"]("/approvals")[0] == 404
    assert len(made.office.ledger.history()) == 1


def test_pages_bring_no_script_or_style_but_files(served):
    made, visitors, url = served
    by_role = {"ada": ALL, "olive": (*ALL, *GUARDED), "omar": (*ALL, "/board", "/access", "/audit")}
    seen = [Visitor(url).get("/sign-in"), visitors["ada"].get("/ask?statistic=mean&column=stay")]
    seen += [visitors[name].get(path) for name, paths in by_role.items() for path in paths]
    for page in seen:
        assert not re.search(r'<style|\sstyle=|\son\w+=|javascript:|<script(?! src="/static/)', page)
        assert not re.search(r'(src|href)="https?:', page)
        for label in re.findall(r'<label for="([^"]+)"', page):
            assert page.count(f'id="{label}"') == 1, label
    everything = "".join(seen)
    assert MARKER not in everything and str(int(SECRET)) not in everything
    assert str(made.folder) not in everything and "p17" not in everything
    assert not any(text in everything for text in made.tokens.values())


def test_a_page_that_fails_says_nothing_of_why(fresh, monkeypatch):
    made, visitors, _ = fresh

    def broken(*_):
        raise ZeroDivisionError(MARKER)

    monkeypatch.setattr(made.office, "accounts", broken)
    status, page, _ = visitors["ada"]("/budgets")
    assert status == 500 and "This failed for a reason that nobody thought of." in page
    assert MARKER not in page and 'href="/"' in page


def test_static_files_are_there_with_their_licences(served):
    url = served[2]
    for name, kind in (
        ("page.css", "text/css"),
        ("page.js", "javascript"),
        ("htmx.min.js", "javascript"),
        ("accord.svg", "image/svg"),
    ):
        status, _, headers = Visitor(url)(f"/static/{name}")
        assert status == 200 and kind in headers["content-type"], name
        assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "Zero-Clause BSD" in Visitor(url).get("/static/htmx-LICENSE.txt")


def test_an_error_says_for_whom_it_is(served):
    """What is shown large is for as many as might be meant, so that the page says so beside it."""
    ada = served[1]["ada"]
    page = ada.get("/ask?statistic=mean&column=stay&where=ward+%3D+'A'")
    told = re.search(r'<ul class="caveats">.*?</ul>', page, re.DOTALL)[0]
    assert "errors are predicted as if everyone were a member" in told.lower().replace("\n", " ")
    assert "levels do not go with values" in told
    grouped = ada.get("/ask?statistic=mean&column=stay&by=ward")
    assert "For groups of the same size" in grouped


def test_names_and_reasons_are_only_text(tmp_path):
    """A column, a group, a tier and a purpose that would be markup, a template or a formula elsewhere."""
    column, group = "<script>alert(1)</script>", "{{7*7}}"
    description = f"""\
schema = 1
ledger = "accord.db"
[service]
title = "<b>&{{{{7*7}}}}"
[tables.people]
source = "people.csv"
user = "id"
epsilon = "tier"
tiers = {{ "<i>strict" = 0.5, standard = 4 }}
[tables.people.columns."{column}"]
bounds = [0, 60]
about = "<img src=x onerror=alert(2)>"
[tables.people.columns.ward]
keys = ["{group}", "B"]
"""
    made = None

    def write(path):
        rows = [f'p{k},{k % 50},"{group}",{("<i>strict", "standard")[k % 2]}' for k in range(PEOPLE)]
        path.write_text("\n".join((f'id,"{column}",ward,tier', *rows)) + "\n")

    write(tmp_path / "people.csv")
    (tmp_path / "accord.toml").write_text(description)
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(accord.catalog(tmp_path / "accord.toml")["people"], "people")
    grants = {"people": tokens.Grant(1_000_000, "month")}
    name = "<u>ada{{7*7}}"
    token = tokens.add(ledger.books, name, "analyst", grants, 30, SIGNED)[1]
    officer = tokens.add(ledger.books, "=1+1", "officer", {}, 30, SIGNED)[1]
    made = Office(tmp_path / "accord.toml")
    made.agree_first(SIGNED)
    with serving(made) as url:
        ada, olive = Visitor(url, token), Visitor(url, officer)
        quoted = column.replace("<", "%3C").replace(">", "%3E").replace("/", "%2F")
        form = ada.asked(
            statistic="mean", column=quoted, by="ward", share=0.05, purpose="%3Cscript%3E%7B%7B7*7%7D%7D"
        )
        assert json.loads(form["asked"])["purpose"] == "<script>{{7*7}}"
        place = ada.send("/ask/release", **form)[2]["location"]
        pages = [ada.answer(place), *(ada.get(path) for path in (*ALL, "/history?kind=release"))]
        pages += [olive.get(path) for path in (*GUARDED, "/history?kind=all")]
        pages += [
            ada(f"/ask?table=people&statistic={quoted}")[1],
            olive.post("/person", id=column, purpose=group)[1],
        ]
        everything = "".join(pages)
        assert (
            "&lt;script&gt;" in everything
            and "{{7*7}}" in everything
            and "49" not in re.sub(r'value="[^"]*"|\d*[.,]?\d*49\d*[.,]?\d*', "", everything)
        )
        assert not re.search(r"<script>|<script(?! src)|<i>|<u>|<b>|<img", everything)
        assert "'=1+1" in olive.get("/history.csv?kind=all")
