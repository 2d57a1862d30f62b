"""Fixtures of the tests that drive a real browser."""

import pytest
from browsing import Person, browser
from serving import make_office, serving


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture
def office(tmp_path):
    made = make_office(tmp_path)
    with serving(made.office) as url:
        yield made, url


@pytest.fixture
def people(office, chromium):
    """Who is asked for, signed in at a browser of their own, which has nothing to complain about in the end."""
    made, url = office
    signed_in = []

    def somebody(name, **settings):
        signed_in.append(Person(chromium, url, made.tokens[name], **settings))
        return signed_in[-1]

    yield somebody
    for person in signed_in:
        assert person.complaints == []
        person.context.close()
