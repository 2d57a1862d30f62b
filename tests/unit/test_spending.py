"""What releases without a ledger have charged everyone is told, and warned of once."""

import warnings
from math import inf

import numpy as np
import pytest

import accord
from accord.errors import PrivacyWarning

MEAN = accord.mean("age", bounds=(0, 100))
BY_SEX = accord.count(by="sex", keys=["f", "m"], membership="public")
ROWS = {
    "age": np.arange(60.0),
    "level": np.array([0.5, 1.0, 2.0] * 20),
    "sex": ["f", "m"] * 30,
    "ward": ["a"] * 12 + ["b"] * 48,
}


def opened(**options):
    return accord.table(ROWS, epsilon="level", **options)


def told(release):
    """{level: charge} that a release tells of."""
    charged = release.unbooked.charged
    return dict(zip((charged.levels / 1e6).tolist(), (charged.charges / 1e6).tolist(), strict=True))


def test_the_first_release_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = opened().release(MEAN)
    assert release.unbooked is None
    assert "ledger" not in str(release)


def test_the_second_release_warns_once_and_all_of_them_tell():
    people = opened()
    people.release(MEAN, "proportional", 0.5)
    with pytest.warns(PrivacyWarning) as warned:
        second = people.release(MEAN, "proportional", 0.25)
    assert [w.filename for w in warned] == [__file__]
    assert str(warned[0].message) == (
        "this is the second release of this table in this process. Charges add up, and without a ledger nothing refuses the next one. To keep "
        "account: ledger = accord.Ledger('accord.db'), ledger.register(table, 'name'), table.release(…, share=…, ledger=ledger)."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        third = people.release(MEAN, "proportional", 0.5)
    assert told(second) == {0.5: 0.375, 1.0: 0.75, 2.0: 1.5}
    assert told(third) == {0.5: 0.625, 1.0: 1.25, 2.0: 2.5}
    assert " ".join(str(third).split()).endswith(
        "No ledger keeps account: 3 releases of this table in this process have charged level 0.5 with 0.625, level 1 with 1.25, level 2 with 2.5."
    )


def test_tiers_are_told_by_name_and_many_levels_by_their_ends():
    tiers = {"strict": 0.1, "public": inf}
    people = accord.table(
        {"age": [1.0, 2, 3], "tier": ["strict", "public", "public"]}, epsilon="tier", tiers=tiers
    )
    question = accord.mean("age", bounds=(0, 10))
    people.release(question, "minimum", 0.5)
    text = " ".join(str(people.release(question, "minimum", 0.5)).split())
    assert "2 releases of this table in this process have charged strict with 0.1, public with 0.1." in text
    people = accord.table({"age": np.arange(40.0), "level": np.arange(1, 41) / 10}, epsilon="level")
    people.release(question, "proportional", 0.5)
    text = " ".join(str(people.release(question, "proportional", 0.5)).split())
    assert "have charged 40 levels from 0.1 to 4: 0.1 … 4." in text


def test_what_reads_nothing_is_no_release():
    people = opened()
    people.release(accord.count())
    people.release(accord.count())
    assert people.release(MEAN).unbooked is None


def test_a_failed_algorithm_is_remembered():
    people = opened()

    def fails(rows, epsilon):
        raise ValueError

    for _ in range(2):
        with pytest.raises(accord.errors.QueryError, match="raised a ValueError"):
            accord.sample(fails, people, columns=["age"], share=0.5)
    assert told(accord.sample(lambda rows, epsilon: 1.0, people, columns=["age"], share=0.5)) == {
        0.5: 0.75,
        1.0: 1.5,
        2.0: 3.0,
    }


def test_what_a_ledger_books_is_not_told_here(tmp_path):
    people = accord.table({**ROWS, "id": np.arange(60)}, epsilon="level", user="id")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert people.release(MEAN, share=0.1, ledger=ledger).unbooked is None


def test_people_of_public_groups_pay_for_their_own():
    """Against a dictionary of people: nobody has spent more than is told, and somebody of each level has spent it."""
    people, paid = opened(), np.zeros(60)
    level, sex, ward = ROWS["level"], np.array(ROWS["sex"]), np.array(ROWS["ward"])
    release = people.release(MEAN, "proportional", 0.125)
    paid += level / 8
    release = people.release(
        accord.mean("age", bounds=(0, 100), by="sex", keys=["f", "m"], membership="public"),
        "proportional",
        0.25,
    )
    paid += level / 4
    groups = people.groups(accord.count(by="ward", keys=["a", "b"], membership="public").part)
    release = groups["a"].release(MEAN, "proportional", 0.5)
    paid += np.where(ward == "a", level / 2, 0)
    for x in (0.5, 1.0, 2.0):
        assert told(release)[x] == paid[(level == x) & (ward == "a")].max()
    release = people.groups(BY_SEX.part)["m"].release(MEAN, "proportional", 0.5)
    paid += np.where(sex == "m", level / 2, 0)
    release = people.release(MEAN, "proportional", 0.125)
    paid += level / 8
    assert release.unbooked.is_bound
    assert release.unbooked.releases == 5
    for x in (0.5, 1.0, 2.0):
        assert told(release)[x] == paid[level == x].max()
    assert "have charged, at most, level 0.5 with 0.75" in " ".join(str(release).split())


def test_under_add_remove_it_is_told_of_the_roster():
    people = opened(
        neighbors="add-remove", roster=accord.Spec.from_groups({0.5: 30, 1.0: 30, 2.0: 30, 4.0: 1})
    )
    people.release(MEAN, "proportional", 0.5)
    assert told(people.release(MEAN, "proportional", 0.5)) == {0.5: 0.5, 1.0: 1.0, 2.0: 2.0, 4.0: 4.0}
