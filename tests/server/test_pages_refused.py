"""Pages where something is wrong: a table that cannot be read, one that nobody chose to be in, and requests that make no sense."""

from random import Random
from urllib.parse import urlencode

import browsing
import pytest
from browsing import ALL, GUARDED, Visitor
from serving import MARKER, SECRET, make_office, serving

from accord.errors import QueryError
from accord.server.pages.audits import Audits, Run
from accord.server.refusals import NotThereError

PATHS = (
    *(*ALL, *GUARDED, "/ask/plan", "/ask/release", "/withdraw", "/sign-in", "/requests/x", "/requests/x/cancel"),
    *("/history.csv", "/history.json", "/requests/x/receipt.json", "/audit/page.html", "/static/", "/static/%2e%2e/access.py"),
)  # fmt: skip
NAMES = (
    *("table", "statistic", "column", "other", "condition", "where", "by", "and_by", "p", "k", "cells", "text", "share"),
    *("mechanism", "low", "high", "std", "gap", "from", "kind", "actor", "since", "until", "start", "part0", "part1"),
    *("level1", "id", "purpose", "asked", "back", "key", "request", "decision", "revoked", "sure", "numbers", "next", "token"),
)  # fmt: skip
VALUES = (
    *("", "people", "hidden", "mean", "histogram", "sql", "stay", "ward", "secret", "note", "nan", "inf", "-1", "1e999"),
    *("0", "99" * 40, "'", "(" * 300, "[" * 5_000, "{}", "null", '{"question": {}}', "\x00", "\ud800", "ü", "2026-01-01"),
    *("all", "<script>", "{{7*7}}", "../..", "yes", "SELECT 1 FROM people"),
)  # fmt: skip


def test_a_table_that_cannot_be_read_closes_no_page(tmp_path):
    made = make_office(tmp_path)
    (tmp_path / "people.csv").unlink()
    with serving(made.office) as url:
        ada, olive = Visitor(url, made.tokens["ada"]), Visitor(url, made.tokens["olive"])
        assert "people cannot be read as it is described" in ada.get("/")
        assert "No table can be asked about with your token now" in ada.get("/ask")
        for path in ("/levels", "/budgets", "/history"):
            page = ada.get(path)
            assert 'href="/"' in page and str(tmp_path) not in page
        for path in ("/", "/approvals", "/person", "/description", "/access", "/audit"):
            olive.get(path)
        status, page, _ = olive("/board")
        assert status == 503 and str(tmp_path) not in page and 'href="/"' in page


def test_nobody_has_chosen_yet(tmp_path):
    """Levels are shown from published shares, and there is nothing to ask."""
    made = make_office(tmp_path)
    rows = "".join(f"p{k},1,A,out,x,1\n" for k in range(9))
    (tmp_path / "people.csv").write_text(f"id,stay,ward,tier,note,secret\n{rows}")
    with serving(made.office) as url:
        ada = Visitor(url, made.tokens["ada"])
        page = ada.get("/levels")
        assert "Supposed: the default of [J] (2015)." in page and "mean of stay" in page
        assert "No plan yet" in ada.get("/ask?statistic=mean&column=stay")


def test_forms_that_cannot_be_read(tmp_path):
    made = make_office(tmp_path)
    with serving(made.office) as url:
        ada, olive = Visitor(url, made.tokens["ada"]), Visitor(url, made.tokens["olive"])
        for asked in ("", "{", "[" * 5_000):
            status, page, _ = ada.post("/ask/release", table="people", key="k", asked=asked)
            assert status == 409 and "This form cannot be read. Open the page anew" in page, asked
        status, page, _ = ada("/history?" + "&".join(f"x{k}=1" for k in range(500)))
        assert status == 422 and "This form cannot be read. Open its page again" in page
        assert ada("/history?x=%ff")[0] == 422
        page = olive.post("/withdraw", id="\n", purpose="x", sure="yes")[1]
        assert "Give 1 to 1,000 ids, one on a line. Nothing was done." in page
        page = olive.post("/person", id="p1", purpose=" ")[1]
        assert "Say why: it is booked with your name. Nothing was done." in page
    assert [event["kind"] for event in made.office.ledger.history(kind="all")].count("person") == 0


def test_one_audit_at_a_time(tmp_path):
    audits = Audits()
    with pytest.raises(QueryError, match="there is no mechanism 'afine': did you mean 'affine'"):
        audits.start("afine", "mean")
    with pytest.raises(QueryError, match="the page audits no 'secret'"):
        audits.start("affine", "secret")
    with pytest.raises(NotThereError):
        audits.page()
    audits.newest = Run("affine", "mean", "2026-05-03T12:00:00+00:00")
    with pytest.raises(QueryError, match=r"an audit is running\. Wait for its end"):
        audits.start("affine", "mean")
    assert audits.newest.looks == []


def test_a_browser_that_is_not_there_fails_where_all_tests_are_run(monkeypatch):
    monkeypatch.setattr(browsing, "CHROMIUM", None)
    for everywhere, outcome in (("true", pytest.fail.Exception), ("", pytest.skip.Exception)):
        monkeypatch.setenv("CI", everywhere)
        with pytest.raises(outcome, match="Install it: apt-get install chromium"), browsing.browser():
            pass


def test_garbage_is_refused_and_tells_nothing(tmp_path):
    made, rng, told = make_office(tmp_path), Random(5), []
    with serving(made.office) as url:
        visitors = {name: Visitor(url, made.tokens[name]) for name in ("ada", "olive", "omar")}
        csrf = {name: visitor.csrf() for name, visitor in visitors.items()}
        for _ in range(400):
            name, path = rng.choice(sorted(visitors)), rng.choice(PATHS)
            fields = {rng.choice(NAMES): rng.choice(VALUES) for _ in range(rng.randrange(6))}
            sent, headers = (
                urlencode(fields, errors="surrogatepass"),
                rng.choice([{}, {"HX-Request": "true"}]),
            )
            if rng.random() < 0.5 and path != "/audit":  # which would be run
                sent = f"{sent}&csrf={csrf[name]}".encode()
                status, page, _ = visitors[name](path, sent, headers)
            else:
                status, page, _ = visitors[name](f"{path}?{sent}", headers=headers)
            assert status < 500, (path, sent, page)
            told.append(page)
    everything = "".join(told)
    assert len(set(told)) > 50  # it was not always the same refusal
    assert MARKER not in everything and str(int(SECRET)) not in everything and str(tmp_path) not in everything
    assert "Traceback" not in everything and "p17" not in everything and "<script>" not in everything
