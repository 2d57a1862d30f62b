"""Who gets to the pages, by which cookie and which form; and what the officer and the owner do there."""

import pytest
from browsing import ALL, GUARDED, Visitor
from serving import DESCRIPTION, SIGNED, make_office, serving

from accord.ledger import tokens
from accord.server import access
from accord.server.access import FormError, Session, Sessions, refuse_from_elsewhere
from accord.server.office import Office

SIGNED_IN = Visitor


# ---- who gets in -----------------------------------------------------------------------------------------


def test_nobody_sees_a_page_without_a_token(served):
    made, _, url = served
    nobody = Visitor(url)
    for path in (*ALL[1:], *GUARDED, "/history.csv", "/requests/x"):
        status, _, headers = nobody(path)
        assert (status, headers["location"]) == (303, f"/sign-in?next=%2F{path[1:].replace('/', '%2F')}"), (
            path
        )
    assert nobody("/")[2]["location"] == "/sign-in"
    for wrong in ("", "accord_1_2", made.tokens["ada"][:-1]):
        status, page, _ = nobody.send("/sign-in", token=wrong)
        assert status == 401 and "There is no valid token with this text." in page
        assert wrong == "" or wrong not in page
    assert not nobody.cookies
    assert nobody.send("/ask/release", csrf="x")[0] == 303
    assert nobody("/ask/plan", headers={"HX-Request": "true"})[2]["hx-redirect"] == "/sign-in"


def test_the_way_on_after_signing_in_stays_here(served):
    made, _, url = served
    for given, then in (
        ("/history?kind=all", "/history?kind=all"),
        ("https://evil.example", "/"),
        ("//evil.example", "/"),
    ):
        visitor = Visitor(url)
        assert visitor.send("/sign-in", token=made.tokens["ada"], next=given)[2]["location"] == then


def test_a_cookie_is_kept_from_scripts_and_from_other_sites(served):
    made, _, url = served
    port = url.rsplit(":", 1)[1]
    cookie = Visitor(url).send("/sign-in", token=made.tokens["ada"])[2]["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Max-Age=28800" in cookie
    assert "Secure" not in cookie  # without TLS, on this machine alone
    assert not access.is_secure(f"127.0.0.1:{port}", False) and access.is_secure("statistics.example", False)
    assert access.is_secure("localhost", True)


def test_a_form_is_sent_from_a_page_of_the_same_session(fresh):
    made, visitors, url = fresh
    ada, bob = visitors["ada"], visitors["bob"]
    form = ada.asked(statistic="mean", column="stay", share=0.1)
    for csrf in ("", "x", bob.csrf(), None):
        sent = {name: value for name, value in (form | {"csrf": csrf}).items() if value is not None}
        status, page, _ = ada.send("/ask/release", **sent)
        assert status == 422 and "this form is not from a page that you have open here" in page.replace(
            "This", "this"
        )
    status, page, _ = ada.send("/ask/release", {"Sec-Fetch-Site": "cross-site"}, **form)
    assert status == 422
    assert Visitor(url).send("/sign-in", {"Sec-Fetch-Site": "cross-site"}, token=made.tokens["ada"])[0] == 422
    for path in ("/approvals", "/person", "/withdraw", "/description"):
        assert visitors["olive"].send(path, id="p1", purpose="x", sure="yes")[0] == 422
    assert visitors["omar"].send("/access", revoked="x", purpose="x")[0] == 422
    assert visitors["omar"].send("/sign-out")[0] == 422
    assert made.office.ledger.history(kind="all")[-1]["kind"] == "description"  # and nothing since
    with pytest.raises(FormError, match="Open the page again, and send it from there"):
        refuse_from_elsewhere({"sec-fetch-site": "same-site"})


def test_who_signs_out_or_is_revoked_is_out(fresh):
    made, visitors, url = fresh
    ada = visitors["ada"]
    stolen = Visitor(url)
    stolen.cookies = ada.cookies
    cookie = next(iter(ada.cookies)).value
    assert ada.post("/sign-out")[0] == 303
    assert ada("/ask")[0] == 303
    assert Visitor(url)("/ask", headers={"Cookie": f"accord={cookie}"})[0] == 303
    number = made.tokens["bob"].split("_")[1]
    assert visitors["bob"]("/ask")[0] == 200
    assert visitors["omar"].post("/access", revoked=number, purpose="left")[0] == 303
    assert visitors["bob"]("/ask")[0] == 303
    assert "revoked" in visitors["omar"].get("/access")


def test_sessions_end(fresh):
    made, _, _ = fresh
    now = [1_000.0]
    sessions = Sessions(lambda: now[0])
    by_id = made.office.tokens.by_id
    ada = made.office.signed_in(made.tokens["ada"])
    idle, busy = sessions.begin(ada), sessions.begin(ada)
    assert idle != busy and sessions.find(idle, by_id)[1] == ada
    assert sessions.find("guessed", by_id) is None
    for _ in range(8):
        now[0] += access.IDLE * 0.99
        assert sessions.find(busy, by_id) is not None
    assert sessions.find(idle, by_id) is None
    now[0] += access.IDLE * 0.9
    assert sessions.find(busy, by_id) is None  # however busy, after a working day
    for _ in range(access.MOST + 5):
        last = sessions.begin(ada)
    assert sessions.find(last, by_id) is not None
    tokens.revoke(made.office.ledger.books, ada.id, SIGNED)
    assert sessions.find(last, made.office.tokens.by_id) is None
    assert "csrf" not in repr(Session("a", "secret", 0.0, 0.0))


def test_signing_in_is_throttled_on_pages_too(fresh):
    made, _, url = fresh
    visitor = Visitor(url)
    statuses = [visitor.send("/sign-in", token=f"accord_{k}_x")[0] for k in range(11)]
    assert statuses == [401] * 10 + [429]
    assert "Wait a minute." in visitor.send("/sign-in", token="accord_11_x")[1]
    assert visitor.send("/sign-in", token=made.tokens["ada"])[0] == 303  # nobody keeps others out by failing


# ---- for the officer and the owner -----------------------------------------------------------------------


def test_a_large_share_waits_for_the_officer(fresh):
    _, visitors, _ = fresh
    ada, olive = visitors["ada"], visitors["olive"]
    form = ada.asked(statistic="mean", column="stay", share=0.5, purpose="a+large+one")
    place = ada.send("/ask/release", **form)[2]["location"]
    assert "Large shares are looked at" in ada.get(place) and "Cancel it" in ada.get(place)
    page = olive.get("/approvals")
    assert (
        "a large one" in page and "Mean of stay" in page and "ada asks for a share of 0.5 of people" in page
    )
    assert "1 request waits" in olive.get("/")
    number = place.rsplit("/", 1)[1]
    assert olive.post("/approvals", request=number, decision="approve", purpose="")[0] in (409, 422)
    assert olive.post("/approvals", request=number, decision="approve", purpose="it is right")[0] == 303
    assert "The answer" in ada.answer(place)
    status, page, _ = olive.post("/approvals", request=number, decision="approve", purpose="again")
    assert status == 409 and "in another state" in page
    place = ada.send("/ask/release", **ada.asked(statistic="count", where="stay%3E3", share=0.4))[2][
        "location"
    ]
    number = place.rsplit("/", 1)[1]
    assert olive.post("/approvals", request=number, decision="decline", purpose="too much")[0] == 303
    assert "Nothing was spent" in ada.get(place)
    assert "declined a share of 0.4 for ada" in olive.get("/history?kind=approval")


def test_people_are_looked_up_and_withdrawn(fresh):
    made, visitors, _ = fresh
    olive = visitors["olive"]
    assert olive.post("/person", id="p1", purpose="")[0] == 409
    status, page, _ = olive.post("/person", id="p1", purpose="they asked")
    assert status == 200 and "What was released about one person" in page and str(made.folder) not in page
    status, page, _ = olive.post("/person", id="nobody", purpose="they asked")
    assert status == 409 and str(made.folder) not in page
    assert "give the id of one person" in olive.post("/person", id="p1\np2", purpose="x")[1].replace(
        "Give", "give"
    )
    assert "tick that you are sure" in olive.post("/withdraw", id="p1", purpose="x")[1].replace(
        "Tick", "tick"
    )
    assert "no whole numbers" in olive.post("/withdraw", id="p1", purpose="x", sure="yes", numbers="yes")[1]
    page = olive.post("/withdraw", id="p1\np5", purpose="they left", sure="yes")[1]
    assert "2 people withdrew" in page
    kinds = [event["kind"] for event in made.office.ledger.history(kind="all")]
    assert kinds.count("person") == 2 and kinds.count("withdraw") == 1


def test_a_changed_description_is_agreed_to_on_its_page(tmp_path):
    make_office(tmp_path)
    changed = DESCRIPTION.replace("bounds = [0, 60]", "bounds = [0, 70]")
    made = make_again(tmp_path, changed)
    with serving(made) as url:
        ada, olive = (Visitor(url, tokens.add(made.ledger.books, *who, 30, SIGNED)[1]) for who in (
            ("eve", "analyst", {"people": tokens.Grant(1_000_000, "month")}), ("otto", "officer", {})))  # fmt: skip
        assert "The description of the tables has changed" in ada.get("/")
        assert "Nothing is released until you agree" in olive.get("/description")
        form = ada.asked(statistic="mean", column="stay", share=0.1)
        status, page, _ = ada.send("/ask/release", **form)
        assert status == 409 and "has not agreed to it" in page and "Change the question" in page
        assert olive.post("/description", purpose="longer stays")[0] == 303
        assert "is agreed to" in olive.get("/description")
        assert ada.send("/ask/release", **form)[0] == 303


def make_again(folder, description):
    """The office of a folder, described anew, without anybody's agreement."""
    (folder / "accord.toml").write_text(description)
    return Office(folder / "accord.toml")


def test_a_quota_that_is_spent_is_told_kindly(tmp_path):
    made = make_office(tmp_path, quota=0.1)
    with serving(made.office) as url:
        ada = Visitor(url, made.tokens["ada"])
        form = ada.asked(statistic="mean", column="stay", share=0.1)
        ada.answer(ada.send("/ask/release", **form)[2]["location"])
        status, page, _ = ada.send(
            "/ask/release", **ada.asked(statistic="mean", column="stay", share=0.05, fresh=1)
        )
        assert status == 409 and "of your 0.1 a month of this table, 0 is left" in page
        assert (
            'href="/ask?table=people&amp;statistic=mean&amp;column=stay&amp;share=0.05&amp;fresh=1"' in page
        )


def test_levels_are_supposed_and_nothing_is_changed(served):
    made, visitors, _ = served
    ada = visitors["ada"]
    before = len(made.office.ledger.entries())
    page = ada.get("/levels")
    assert page.count("as before") >= 3 and "people by ward" in page
    moved = ada.get("/levels?table=people&part0=0&part1=0&part2=100&part3=0&level1=0.5&level2=8")
    assert "smaller" in moved and "answered by" in moved
    assert "The default of [J]".lower() in ada.get("/levels?start=jorgensen_2015").lower()
    nobody = ada.get("/levels?part0=0&part1=0&part2=0&part3=0")
    assert "Nobody is left in any tier. Move a slider to the right." in nobody
    assert "is no number from 0 to 100" in ada.get("/levels?part1=x")
    assert len(made.office.ledger.entries()) == before


def test_the_sheet_for_the_board(served):
    _, visitors, _ = served
    page = visitors["omar"].get("/board")
    assert "Who chose what, and what it promises" in page and "accord.db" not in page
