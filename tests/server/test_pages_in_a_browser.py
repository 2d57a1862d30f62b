"""What people do on the pages, in a real browser, and the pictures of them.

ACCORD_WRITE_SCREENSHOTS=1 writes the pictures of docs/service-pages.md.
"""

import os
from io import BytesIO
from pathlib import Path

import pytest
from browsing import QUESTION, Person
from PIL import Image
from serving import SIGNED, serving

from accord.ledger.tokens import ANALYST, OFFICER, OWNER
from accord.server.demo import make_demo
from accord.server.office import Office

pytestmark = pytest.mark.slow
PICTURES = Path(__file__).parents[2] / "docs" / "service"


# ---- what people do --------------------------------------------------------------------------------------


def test_a_refused_budget_names_the_next_step(people):
    ada = people("ada")
    ada.release(share="0.2")
    ada.heading("The answer")
    ada.go(f"{QUESTION}&share=0.25&fresh=1")
    for _ in range(4):
        ada.release(f"{QUESTION}&fresh=1", share="0.25")
        ada.page.get_by_role("heading", name="The answer").or_(
            ada.page.get_by_role("heading", name="Not released")
        ).wait_for()
    assert "Not released" in ada.text() and "is left. Ask for that, or wait for the next month." in ada.text()
    ada.page.get_by_role("link", name="Change the question").click()
    ada.heading("Mean of stay")
    assert ada.page.get_by_label("Share of everyone’s level").input_value() == "0.25"


def test_a_large_share_is_approved_while_its_analyst_waits(people):
    ada, olive = people("ada"), people("olive")
    ada.release(share="0.5", button="Ask for approval")
    ada.heading("Your request waits for approval")
    ada.see("Nothing is spent until then")
    olive.go("/")
    olive.page.get_by_role("link", name="Look at it").click()
    olive.see("ada asks for a share of 0.5 of people")
    olive.page.get_by_label("Why?").fill("it is worth it")
    olive.press("Approve")
    olive.see("It is approved")
    olive.see("Nothing waits for you.")
    ada.page.reload()
    ada.heading("The answer")
    ada.release(f"{QUESTION}&where=ward+%3D+'A'", share="0.4", button="Ask for approval")
    ada.press("Cancel it")
    ada.see("Nothing was spent.")
    olive.page.reload()
    olive.go("/history?kind=approval")
    olive.see("approved a share of 0.5 for ada")


def test_somebody_is_looked_up_and_leaves(people):
    people("ada").release()
    olive = people("olive")
    olive.go("/person")
    olive.page.get_by_label("Their id", exact=True).fill("p1")
    olive.page.get_by_label("Why?").first.fill("they asked")
    olive.press("Look up")
    olive.see("What was released about one person")
    olive.page.get_by_label("Their ids, one on a line").fill("p1\np5")
    olive.page.get_by_label("Why?").last.fill("they leave")
    olive.press("Withdraw them")
    olive.see("Tick that you are sure")
    assert olive.page.get_by_label("Their ids, one on a line").input_value() == "p1\np5"
    olive.page.get_by_label("I am sure").check()
    olive.press("Withdraw them")
    olive.see("2 people withdrew")


def test_a_wrong_token_and_a_revoked_one(people, office, chromium):
    made, url = office
    nobody = Person(chromium, url)
    nobody.go("/history")
    nobody.page.get_by_label("Your token").fill("accord_wrong")
    nobody.press("Sign in")
    nobody.see("There is no valid token with this text.")
    nobody.page.get_by_label("Your token").fill(made.tokens["bob"])
    nobody.press("Sign in")
    nobody.heading("History")  # where they wanted to go
    omar = people("omar")
    omar.go("/access")
    row = omar.page.get_by_role("row").filter(has_text="bob")
    row.locator("summary").click()
    row.get_by_label("Why?").fill("left")
    row.get_by_role("button", name="Revoke at once").click()
    row.get_by_text("revoked").wait_for()
    nobody.page.reload()
    nobody.heading("Sign in")


def test_who_has_signed_out_is_out_in_every_window(people):
    ada = people("ada")
    other = ada.context.new_page()
    other.goto(f"{ada.url}{QUESTION}")
    ada.press("Sign out")
    ada.heading("Sign in")
    other.get_by_role("button", name="Release the answer").click()
    other.get_by_role("heading", name="Sign in").wait_for()
    ada.page.go_back()
    ada.page.reload()
    ada.heading("Sign in")


def test_sliders_say_what_they_do(people):
    ada = people("ada")
    ada.go("/levels")
    ada.see("as before")
    ada.page.get_by_label("strict", exact=True).fill("100")
    ada.page.locator("#effects").get_by_text("larger").first.wait_for()
    assert ada.page.locator("output").nth(1).inner_text() == "100 %"
    ada.page.get_by_label("strict", exact=True).fill("5")
    ada.page.get_by_label("ε of strict").fill("4")
    ada.page.locator("#effects").get_by_text("smaller").first.wait_for()
    ada.page.get_by_role("link", name="Back to what was chosen").click()
    ada.see("as before")
    ada.page.get_by_label("Before anybody has chosen").select_option("harris_westin_2003")
    ada.press("Begin with these")
    ada.see("Supposed: US adults (2003).")


def test_an_audit_is_run_read_and_taken_along(people):
    olive = people("olive")
    olive.go("/audit")
    olive.see("No audit was run")
    olive.page.get_by_label("Mechanism").select_option("minimum")
    olive.page.get_by_label("Statistic").select_option("mean")
    olive.press("Run it")
    olive.see("running")
    olive.page.set_default_timeout(600_000)
    olive.see("nothing was found")
    assert "add-remove" in olive.text() and "exact" in olive.text()
    with olive.page.expect_download() as taken:
        olive.page.get_by_role("link", name="Take its page along").click()
    assert "minimum" in Path(taken.value.path()).read_text(encoding="utf-8")


def test_the_sheet_for_the_board_is_printed(people):
    people("ada").release(f"{QUESTION}&purpose=for+the+board")
    omar = people("omar")
    omar.go("/board")
    omar.see("Who chose what, and what it promises")
    while "for the board" not in omar.page.locator("article").inner_text():
        omar.page.reload()
    omar.page.emulate_media(media="print")
    assert not omar.page.get_by_role("navigation").is_visible()
    assert not omar.page.get_by_role("button", name="Sign out").is_visible()
    assert omar.page.locator("article").is_visible()
    assert omar.page.pdf().startswith(b"%PDF")


# ---- pictures for the docs -------------------------------------------------------------------------------


def test_the_pictures_of_the_docs(tmp_path, chromium):
    """Of the demonstration; every page that the docs show is there."""
    demo = make_demo(tmp_path)
    office = Office(demo.catalog)
    office.agree_first(SIGNED)
    with serving(office) as url:
        ada = Person(chromium, url, demo.tokens[ANALYST])
        asked = "/ask?table=people&statistic=mean&column=income"
        for question in (
            f"{asked}&by=filing_status",
            "/ask?statistic=histogram&column=age",
            f"{asked}&where=age+%3E%3D+65",
        ):
            ada.release(f"{question}&purpose=income+of+the+old", share="0.05")
            ada.heading("The answer")
        picture(ada, "answer", 560)
        ada.release(f"{asked}&purpose=the+yearly+report", share="0.3", button="Ask for approval")
        ada.heading("Your request waits")
        ada.go(f"{asked}&where=age+%3E%3D+65&purpose=income+of+the+old")
        picture(ada, "ask", 900)
        ada.go("/levels?table=people&part0=5&part1=10&part2=60&part3=25&level1=0.2")
        picture(ada, "levels", 760)
        for name, height in (("budgets", 760), ("history", 480)):
            ada.go(f"/{name}")
            picture(ada, name, height)
        olive, omar = (Person(chromium, url, demo.tokens[role]) for role in (OFFICER, OWNER))
        for who, name, height in (
            (olive, "approvals", 640),
            (olive, "person", 520),
            (omar, "access", 520),
            (omar, "board", 900),
            (omar, "audit", 420),
        ):
            who.go(f"/{name}")
            picture(who, name, height)
        assert [*ada.complaints, *olive.complaints, *omar.complaints] == []
    assert {path.stem for path in PICTURES.glob("*.png")} == {
        *("answer", "ask", "levels", "budgets", "history", "approvals", "person", "access", "board", "audit")
    }


def picture(person, name, height):
    person.page.set_viewport_size({"width": 1000, "height": height})
    person.loaded()
    taken = person.page.screenshot()
    if os.environ.get("ACCORD_WRITE_SCREENSHOTS"):
        PICTURES.mkdir(exist_ok=True)
        few_colors = Image.open(BytesIO(taken)).convert("RGB").quantize(96)
        few_colors.save(PICTURES / f"{name}.png", optimize=True)
