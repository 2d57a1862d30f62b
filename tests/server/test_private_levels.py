"""The service with a table whose levels are private: releases, what is left, and what is refused of single people."""

import pytest
from serving import COUNT, DESCRIPTION, MEAN, Caller, make_office, serving

PRIVATE = (
    DESCRIPTION.partition("[tables.hidden]")[0]
    .replace(', out = 0 }\n\n[tables.people.columns.stay]', ', out = 0 }\nlevels = "private"\n\n[tables.people.columns.stay]')
    .replace("[tables.people.columns.stay]", "[tables.people.expected]\nstrict = 30\nstandard = 30\npublic = 3\n\n[tables.people.columns.stay]", 1)
)  # fmt: skip


@pytest.fixture
def caller_of(tmp_path):
    served = make_office(tmp_path, PRIVATE)
    with serving(served.office) as url:
        yield lambda name: Caller(url, served.tokens[name])


def test_a_table_with_private_levels_is_served(caller_of):
    ada, olive = caller_of("ada"), caller_of("olive")
    spec = ada.get("/api/tables/people/spec")
    assert spec["people"] is None and spec["opted_out"] is None
    for question in (MEAN, COUNT):
        done = ada.answer(question)
        assert done["state"] == "done", done
    left = ada.get("/api/tables/people/remaining")["left"]
    assert left[0]["left"] < "0.5"
    accounts = olive.get("/api/accounts")["accounts"]
    assert [account["people"] for account in accounts] == [None] * 3
    status, document, _ = olive("POST", "/api/person", {"id": "p1", "purpose": "asked"})
    assert status != 200 and "does not know who is in its tables" in str(document)
    status, document, _ = olive("POST", "/api/withdraw", {"ids": ["p1"], "purpose": "asked"})
    assert status != 200 and "does not know who is in its tables" in str(document)
