"""A real browser for tests: Debian's Chromium, driven by playwright. And a visitor who has none."""

import html
import os
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
ALL = ("/", "/ask", "/levels", "/budgets", "/history")
GUARDED = ("/approvals", "/person", "/description", "/board", "/access", "/audit")
PATIENCE = 120_000
"""Milliseconds for what is waited for. It ends as soon as that is there."""
QUESTION = "/ask?table=people&statistic=mean&column=stay"
AXE = Path(__file__).parent / "server" / "axe" / "axe.min.js"
EVALUATE_AXE = "axe.run(document, {resultTypes: ['violations']})"


@contextmanager
def browser():
    """Chromium; a test without it is skipped, or fails where a machine runs all of them."""
    if CHROMIUM is None:
        why = "there is no Chromium. Install it: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS.split())
        try:
            yield chromium
        finally:
            chromium.close()


class Person:
    """Somebody at a browser of their own, who notices what it complains about."""

    def __init__(self, chromium, url, token=None, **settings):
        self.url, self.complaints = url, []
        self.context = chromium.new_context(viewport={"width": 1100, "height": 800}, **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.set_default_navigation_timeout(PATIENCE)
        self.page.on("console", self._noticed)
        self.page.on("pageerror", lambda fault: self.complaints.append(str(fault)))
        if token is not None:
            self.sign_in(token)

    def _noticed(self, message):
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            self.complaints.append(message.text)

    def sign_in(self, token):
        self.go("/sign-in")
        self.page.get_by_label("Your token").fill(token)
        self.press("Sign in")
        self.page.get_by_role("button", name="Sign out").wait_for()

    def go(self, path):
        self.page.goto(self.url + path)

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()

    def see(self, text):
        self.page.get_by_text(text).first.wait_for()

    def heading(self, name):
        self.page.get_by_role("heading", name=name).first.wait_for()

    def release(self, question=QUESTION, share="0.1", button="Release the answer"):
        """Plan a question, and press the button."""
        self.go(f"{question}&share={share}")
        self.press(button)

    def text(self):
        return self.page.locator("main").inner_text()

    def loaded(self):
        """Wait for the style sheet, too, before anything is measured."""
        self.page.wait_for_load_state("load")

    def width(self):
        self.loaded()
        return self.page.evaluate("document.documentElement.scrollWidth")

    def serious(self):
        """What axe finds on the page that keeps somebody out of it."""
        self.loaded()
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        violations = self.page.evaluate(EVALUATE_AXE)["violations"]
        return [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Visitor:
    """Somebody with cookies and without scripts."""

    def __init__(self, url, token=None):
        self.url, self.cookies = url, CookieJar()
        self._open = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self.cookies), _Stay()
        ).open
        if token is not None:
            assert self.send("/sign-in", token=token)[0] == 303

    def __call__(self, path, data=None, headers=None):
        """(status, text, headers)."""
        request = urllib.request.Request(self.url + path, data, {"Accept": "text/html", **(headers or {})})
        try:
            with self._open(request, timeout=120) as response:
                return response.status, response.read().decode(), response.headers
        except urllib.error.HTTPError as fault:
            return fault.code, fault.read().decode(), fault.headers

    def get(self, path):
        status, text, _ = self(path)
        assert status == 200, text
        return text

    def send(self, path, headers=None, **fields):
        return self(path, urllib.parse.urlencode(fields).encode(), headers)

    def csrf(self, path="/"):
        return re.search(r'name="csrf" value="([^"]+)"', self.get(path))[1]

    def post(self, path, **fields):
        """A form of a page that is open."""
        return self.send(path, csrf=self.csrf(), **fields)

    def asked(self, **fields):
        """The page with a plan, and what its button sends."""
        page = self.get("/ask?" + "&".join(f"{name}={value}" for name, value in fields.items()))
        form = re.search(r'<form method="post" action="/ask/release".*?</form>', page, re.DOTALL)
        assert form, page
        sent = re.findall(r'name="(\w+)" value="([^"]*)"', form[0])
        return {name: html.unescape(value) for name, value in sent}

    def answer(self, place):
        """The page of a request, once something has become of it."""
        while "This page shows the answer as soon as" in (page := self.get(place)):
            pass
        return page
