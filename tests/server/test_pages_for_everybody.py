"""Pages for everybody: by keyboard, on a phone, in the dark, without scripts, and by axe, which finds nothing serious."""

import pytest
from browsing import QUESTION, Person
from serving import DESCRIPTION, make_office, serving

from accord.server.office import Office

pytestmark = pytest.mark.slow
PHONE = {"width": 360, "height": 720}


def test_all_of_it_by_keyboard(office, chromium):
    made, url = office
    ada = Person(chromium, url)
    ada.go("/sign-in")
    keys = ada.page.keyboard

    def to(selector):
        """Press Tab until something is focused."""
        for _ in range(80):
            keys.press("Tab")
            if ada.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = ada.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", selector
                return
        raise AssertionError(f"{selector} is not reached")

    to("a.skip")
    keys.press("Enter")
    assert ada.page.evaluate("document.activeElement.id") == "content"
    to("#token")
    keys.type(made.tokens["ada"])
    keys.press("Enter")
    ada.page.get_by_role("button", name="Sign out").wait_for()
    to('nav a[href="/ask"]')
    keys.press("Enter")
    ada.heading("The plan appears here")
    to("#column")
    keys.type("stay")
    ada.heading("Mean of stay")
    assert ada.page.evaluate("document.activeElement.id") in (
        "column",
        "",
    )  # the form is drawn anew beside it
    to("form.release button")
    keys.press("Enter")
    ada.heading("The answer")
    assert ada.complaints == []


def test_without_scripts(people):
    ada = people("ada", java_script_enabled=False)
    ada.go("/ask")
    ada.page.get_by_label("Of which column?").select_option("stay")
    ada.press("Show the plan")
    ada.heading("Mean of stay")
    ada.page.get_by_label("What would you like to know?").select_option("histogram")
    ada.press("Show the plan")
    ada.page.get_by_label("Of which column?").select_option("ward")
    ada.press("Show the plan")
    ada.press("Release the answer")
    ada.heading("The answer")
    ada.go("/levels")
    ada.page.get_by_label("ε of strict").fill("5")
    ada.press("Show what it does")
    ada.see("smaller")


def all_pages(made, url, chromium, **settings):
    """Everybody's pages with something on them, one after the other."""
    nobody = Person(chromium, url, **settings)
    nobody.go("/sign-in")
    yield "sign-in", nobody
    nobody.page.get_by_label("Your token").fill("wrong")
    nobody.press("Sign in")
    yield "wrong token", nobody
    ada = Person(chromium, url, made.tokens["ada"], **settings)
    for path in ("/", "/history", "/budgets", "/ask"):
        ada.go(path)
        yield f"empty {path}", ada
    ada.release()
    ada.heading("The answer")
    yield "answer", ada
    ada.release(f"{QUESTION}&by=ward", share="0.02")
    ada.heading("The answer")
    yield "answer by group", ada
    ada.release(share="0.5", button="Ask for approval")
    ada.heading("Your request waits")
    yield "waiting", ada
    paths = (
        "/",
        f"{QUESTION}&by=ward",
        "/ask?statistic=mean&column=stay&where=(",
        "/levels",
        "/history",
        "/budgets",
    )
    for path in (
        *paths,
        "/history?since=2100-01-01",
        "/nothing",
        "/ask?statistic=sql",
        "/ask?statistic=proportion",
    ):
        ada.go(path)
        for summary in ada.page.locator("main summary").all():
            summary.click()
        yield path, ada
    olive = Person(chromium, url, made.tokens["olive"], **settings)
    olive.go("/person")
    olive.page.get_by_label("Their id", exact=True).fill("p1")
    olive.page.get_by_label("Why?").first.fill("they asked")
    olive.press("Look up")
    olive.see("What was released about one person")
    yield "person", olive
    for path in (
        "/",
        "/ask",
        "/approvals",
        "/description",
        "/access",
        "/board",
        "/audit",
        "/history?kind=all",
        "/budgets",
    ):
        olive.go(path)
        yield path, olive
    for person in (nobody, ada, olive):
        assert person.complaints == []
        person.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(office, chromium, scheme):
    """axe finds nothing serious, in either light."""
    made, url = office
    found = {}
    for name, person in all_pages(made, url, chromium, color_scheme=scheme, reduced_motion="reduce"):
        if serious := person.serious():
            found[name] = serious
    assert found == {}


def test_whoever_is_kept_out_is_noticed(people):
    """What these checks are worth: a label that is not there, a line that is too long."""
    ada = people("ada")
    ada.go(QUESTION)
    assert ada.serious() == []
    ada.page.evaluate("document.querySelector('label[for=where]').remove()")
    assert "label" in [name for name, _ in ada.serious()]
    ada.page.evaluate("document.querySelector('h1').textContent = 'a'.repeat(500)")
    ada.page.set_viewport_size(PHONE)
    assert ada.width() > PHONE["width"]


def test_on_a_phone_nothing_is_cut_off(office, chromium):
    made, url = office
    wide = {}
    for name, person in all_pages(made, url, chromium):
        person.page.set_viewport_size(PHONE)
        if person.width() > PHONE["width"]:
            wide[name] = person.width()
    assert wide == {}


def test_the_dark_is_dark(people):
    def brightness(person):
        person.loaded()
        color = person.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in color.strip("rgb()").split(","))

    assert (
        brightness(people("ada", color_scheme="dark"))
        < 150
        < 600
        < brightness(people("ada", color_scheme="light"))
    )


def test_a_changed_description_is_agreed_to(tmp_path, chromium):
    made = make_office(tmp_path)
    (tmp_path / "accord.toml").write_text(DESCRIPTION.replace("[0, 60]", "[0, 70]"))
    with serving(Office(tmp_path / "accord.toml")) as url:
        olive = Person(chromium, url, made.tokens["olive"], color_scheme="dark")
        olive.page.get_by_role("link", name="Look at it, and agree").click()
        assert olive.serious() == []
        olive.page.get_by_label("Why is it right?").fill("wards report longer stays")
        olive.press("Agree to it")
        olive.see("is agreed to")
        assert olive.complaints == []
