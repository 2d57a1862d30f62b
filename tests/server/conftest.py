"""A real service for each test or module, and who is signed in to it: callers of the API, visitors of pages, or a browser."""

import pytest
from browsing import Person, browser
from serving import make_office, serving


def everybody(request, made, url):
    """Each person of the office by their name, as what the module calls SIGNED_IN."""
    return {name: request.module.SIGNED_IN(url, text) for name, text in made.tokens.items()}


@pytest.fixture(scope="module")
def served(request, tmp_path_factory):
    made = make_office(tmp_path_factory.mktemp("office"), quota=1_000)
    with serving(made.office) as url:
        yield made, everybody(request, made, url), url


@pytest.fixture
def fresh(request, tmp_path):
    """An office for tests that leave something behind."""
    made = make_office(tmp_path)
    with serving(made.office) as url:
        yield made, everybody(request, made, url), url


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
