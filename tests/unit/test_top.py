"""accord.top: the k largest groups, what is said about them, and what is refused."""

import json
from math import inf
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import accord
from accord.batches import read_batch
from accord.cli import main
from accord.errors import QueryError

KEYS = [f"k{j}" for j in range(80)]
SIZES = {f"k{j}": 10 * (j + 1) for j in range(12)}
"""Of those that have people; the others are empty."""
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def people(level=inf, **options):
    words = [key for key, size in SIZES.items() for _ in range(size)]
    data = {"w": words, "id": np.arange(len(words)), "e": np.full(len(words), level)}
    return accord.table(data, epsilon="e", user="id", **options)


def test_the_largest_come_first():
    release = people().release(accord.top("w", k=3, keys=KEYS))
    assert [(row["w"], row["value"]) for row in release.value] == [("k11", 120), ("k10", 110), ("k9", 100)]
    assert release.suppressed == 77 and release.groups_together == 80
    assert list(release.interval()) == ["k11", "k10", "k9"]
    assert release.others_at_most() == 90 and release["k10"].value == 110


def test_of_equally_large_ones_the_earlier_key_is_shown():
    data = {"w": ["b", "a", "c"] * 40, "e": [inf] * 120}
    release = accord.table(data, epsilon="e").release(accord.top("w", 2, keys=["c", "b", "a"]))
    assert [row["w"] for row in release.value] == ["c", "b"]


def test_groups_that_may_be_empty_are_no_largest_ones():
    """Of 80 keys 12 have people: no more are shown, unless that is asked for."""
    assert len(people().release(accord.top("w", k=20, keys=KEYS)).value) == 12
    everything = people().release(accord.top("w", k=20, keys=KEYS, suppress=False))
    assert len(everything.value) == 20 and everything.value[-1]["value"] == 0
    assert len(people().release(accord.top("w", k=5, keys=KEYS[:40], suppress=True)).value) == 5
    text = " ".join(str(people().release(accord.top("w", k=20, keys=KEYS))).split())
    assert (
        "8 fewer than asked for, because the others may be empty (suppress=False, --no-suppress, shows"
        in text
    )


def test_intervals_hold_for_all_groups_together():
    release = people(4.0).release(accord.top("w", k=3, keys=KEYS), "minimum")
    for row in release.value:
        low, high = release.interval(0.9)[row["w"]]
        half = 2 / 4.0 * np.log(80 / 0.1)
        assert (high - row["value"], row["value"] - low) == pytest.approx((half, half), rel=1e-3)
    alone = people(4.0).release(accord.count(by="w", keys=KEYS, suppress=False), "minimum").interval(0.9)
    assert alone["k3"][1] - alone["k3"][0] < high - low
    others = sorted((float(x) for (x,) in release.released), reverse=True)[3:]
    assert release.others_at_most(0.9) == pytest.approx(release.plan.spec.total * others[0] + half, rel=1e-3)


def test_a_ledger_gives_it_out_for_a_count_by_the_same_keys(tmp_path):
    """All of it was released, and is paid for."""
    table, ledger = people(1.0), accord.Ledger(tmp_path / "accord.db")
    ledger.register(table, "people")
    counted = table.release(accord.count(by="w", keys=KEYS, suppress=False), share=0.5, ledger=ledger)
    largest = table.release(accord.top("w", k=3, keys=KEYS, suppress=False), share=0.5, ledger=ledger)
    assert counted.repeated is None and largest.repeated is not None
    sizes = sorted(counted.value, key=lambda row: -row["value"])[:3]
    assert largest.value == sizes and set(largest.charges.values()) == {0.0}
    assert ledger.remaining(table).levels == (0.5,)


def test_private_people_and_several_groups():
    roster = accord.Spec.from_groups({1.0: 1_000})
    plan = people(1.0, neighbors="add-remove", roster=roster).plan(accord.top("w", k=3, keys=KEYS))
    assert plan.times == 1
    plan = people(1.0).plan(accord.top("w", k=3, keys=KEYS, at_most=4, where="w <> 'k1'"))
    assert plan.chooses_first and plan.times == 1 and set(plan.charges.values()) == {1.0}
    assert plan.query.label == "count of people where w <> 'k1' by w (each in up to 4), the 3 largest"
    plan = people(1.0).plan(accord.top("w", k=4, keys=KEYS, at_most=3))
    assert not plan.chooses_first and plan.times == 6 and set(plan.charges.values()) == {0.999996}


def test_what_is_predicted_is_told():
    plan = people(1.0).plan(accord.top("w", k=3, keys=KEYS), "minimum")
    ratio, b = np.log(80 / 3), 2.0
    assert plan.rmse_here == pytest.approx(b * 2**0.5, rel=1e-3)
    assert plan.largest.rmse_here_at_most == pytest.approx(b * (2 + 2 * ratio + ratio**2) ** 0.5, rel=1e-3)
    assert plan.largest.missed_at_most == pytest.approx(2 * b * np.log(80 / 0.05), rel=1e-3)
    text = " ".join(str(plan).split())
    assert (
        "error: of each size, before the largest are chosen. Of those that are chosen, together, it is at most 8.797"
        in text
    )
    assert "with 95 % no group that is left out has over 29.51 people more than one that is shown" in text
    assert people(1.0).plan(accord.count(by="w", keys=KEYS)).largest is None
    assert plan.describe()["top"] == {
        "rmse_here_at_most": plan.largest.rmse_here_at_most,
        "missed_at_most": plan.largest.missed_at_most,
    }


def test_answers_are_told_in_every_form(tmp_path):
    release = people(8.0).release(accord.top("w", k=3, keys=KEYS))
    text = " ".join(str(release).split())
    assert "count of people by w, the 3 largest" in text
    assert (
        "Shown are the largest noisy sizes of 80 groups. 95 %: the intervals of all 80 groups hold together"
        in text
    )
    assert (
        "and none of the 77 others has over" in text
        and "Sizes that are shown for being large lean upward" in text
    )
    assert "lean upward" in release._repr_html_()
    frame = release.to_pandas()
    assert frame["w"].tolist() == [row["w"] for row in release.value] and frame.attrs["suppressed"] == 77
    for name, document in (("receipt", release.receipt()), ("plan", release.plan.describe())):
        schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        document = json.loads(json.dumps(document))
        assert not list(jsonschema.Draft202012Validator(schema).iter_errors(document))
    assert release.receipt()["query"]["top"] == 3 and release.receipt()["others_at_most"] > 80
    figure = release.plot()
    bars = [bar.get_width() for bar in figure.axes[0].patches]
    assert bars == [row["value"] for row in release.value][::-1]
    assert release.plot(tmp_path / "top.png").exists()


def test_the_largest_alone_has_no_number():
    assert accord.top("w", k=1, keys=KEYS).label == "count of people by w, the largest"


def test_where_no_data_are_read_nothing_is_among_the_largest():
    data = {"w": ["a", "b"], "e": [0.01, 0.01]}
    release = accord.table(data, epsilon="e").release(accord.top("w", 1, keys=["a", "b"]))
    assert release.mechanism == "midpoint" and release.value == [] and release.suppressed == 2
    assert "No data are read, so that nothing tells which groups are the largest." in " ".join(
        str(release).split()
    )
    assert release.others_at_most() == 2 and release.to_pandas().empty


BAD = {
    "none": ({"k": 0}, "k=0 is not a number of groups to show. Give a whole number from 1 on."),
    "a part": ({"k": 2.5}, "k=2.5 is not a number of groups to show"),
    "a truth": ({"k": True}, "k=True is not a number of groups to show"),
    "a text": ({"k": "3"}, "k='3' is not a number of groups to show"),
    "more than keys": (
        {"k": 81},
        r"k=81 is more than the 80 keys. Give at most as many, or ask accord.count\(by='w', keys=…\) for all",
    ),
    "mixed keys": ({"k": 1, "keys": ["a", 1]}, "keys= are of several kinds"),
    "no column": ({"column": 3, "k": 1}, "a column is named by a text, and 3 is not one"),
    "too many": (
        {"k": 1, "keys": list(map(str, range(200_001)))},
        "keys= has 200,001 groups, and the largest of at most 200,000 are looked for at once. Declare fewer",
    ),
    "a key twice": ({"k": 1, "keys": ["a", "a"]}, "has 2 groups, 1 of them different"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_before_anything_is_read(name):
    given, words = BAD[name]
    with pytest.raises(QueryError, match=words):
        accord.top(**{"column": "w", "keys": KEYS, **given})


def test_without_keys_it_is_the_table_that_says_which():
    with pytest.raises(QueryError, match="by='w' needs keys=, the groups to answer about: declared"):
        people().plan(accord.top("w", k=1))


def test_who_is_left_out_cannot_be_picked():
    release = people().release(accord.top("w", k=1, keys=KEYS))
    with pytest.raises(
        QueryError, match="w = 'k3' is left out of the answer, because it is not among the largest, as"
    ):
        release["k3"]


def test_as_a_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{key},inf" for key, size in SIZES.items() for _ in range(size)]
    Path("people.csv").write_text("\n".join(["w,e", *lines]), encoding="utf-8")
    Path("codes.txt").write_text("\n".join(KEYS), encoding="utf-8")

    def asked(*words):
        return CliRunner().invoke(main, ["release", "people.csv", "top", *words, "--epsilon", "e", "--json"])

    done = asked("w", "--k", "2", "--keys", "@codes.txt")
    assert [row["w"] for row in json.loads(done.stdout)["value"]] == ["k11", "k10"]
    for words, refusal in {
        ("w", "--keys", "@codes.txt"): "top needs --k, such as --k 10.",
        ("--k", "2", "--keys", "@codes.txt"): "top needs a COLUMN",
        ("w", "e", "--k", "2", "--keys", "@codes.txt"): "top takes one COLUMN, and 2 are named.",
        ("w", "--k", "2", "--by", "w", "--keys", "A"): "top is by the COLUMNs that it names. Leave --by out.",
        ("w", "--k", "2", "--keys", "A,B", "--membership", "public"): "--membership has no meaning for top.",
        ("w", "--k", "2", "--keys", "A,B", "--rest", "other"): "--rest has no meaning for top.",
    }.items():
        done = asked(*words)
        assert done.exit_code == 2 and refusal in done.stderr
    done = asked("w", "--k", "0", "--keys", "A")
    assert done.exit_code == 1 and "--k 0 is not a number of groups to show" in done.output
    done = CliRunner().invoke(
        main, ["release", "people.csv", "count", "--k", "2", "--by", "w", "--keys", "A", "--epsilon", "e"]
    )
    assert done.exit_code == 2 and "--k has no meaning for count." in done.stderr


def test_in_described_tables_and_files_of_questions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("\n".join(["w,e", *["a,inf"] * 60, *["b,inf"] * 90]), encoding="utf-8")
    Path("accord.toml").write_text(
        'schema = 1\n[tables.people]\nsource = "people.csv"\nepsilon = "e"\n[tables.people.columns.w]\nkind = "text"\n'
        'keys = ["a", "b", "c"]\n',
        encoding="utf-8",
    )
    table = accord.catalog("accord.toml")["people"]
    assert table.release(accord.top("w", k=1)).value[0]["w"] == "b"
    Path("q.toml").write_text(
        'schema = 1\ntable = "people"\nshare = 1.0\n[[questions]]\nstatistic = "top"\ncolumn = "w"\nk = 2\n'
        '[[questions]]\nstatistic = "top"\ncolumn = "w"\nk = 1\nname = "one"\nkeys = ["a", "c"]\n',
        encoding="utf-8",
    )
    batch = read_batch("q.toml")
    first, second = table.release(batch.asked_of(table)).value
    assert [row["w"] for row in first] == ["b", "a"] and [row["w"] for row in second] == ["a"]
    done = CliRunner().invoke(main, ["run", "q.toml"])
    assert done.exit_code == 0, done.output
    Path("q.toml").write_text(Path("q.toml").read_text().replace("k = 2", "k = 2.5"), encoding="utf-8")
    with pytest.raises(QueryError, match=r"line 4: k=2\.5 is not a number of groups to show"):
        read_batch("q.toml")


def test_a_simulation_is_about_all_groups():
    population, spec = accord.lab.populations.uniform(), accord.Spec.of([1.0] * 9)
    with pytest.raises(
        QueryError, match=r"simulations are about all groups, and not about the largest\. Ask accord"
    ):
        accord.lab.simulate("affine", accord.top("w", k=1, keys=KEYS), spec, population, runs=2, seed=1)


def test_keys_that_public_people_have_are_accepted_as_they_are():
    """A key that a public person has is public: who is looked at is charged inf, and nobody else anything."""
    data = {"w": list("aabbc") * 40, "g": [1.5] * 200, "id": range(200), "e": ([inf, 1.0] * 3)[:5] * 40}
    table = accord.table(data, epsilon="e", user="id")
    look = table.public("w")
    assert dict(look.charges) == {1.0: 0.0, inf: inf} and look.keys == ("a", "b", "c")
    assert accord.top("w", k=1, keys=look) == accord.top("w", k=1, keys=look.keys)
    query = accord.crosstab("w", "g", keys={"w": look, "g": [1]}, rest={"w": "other"})
    assert query.part.keys[0] == ("a", "b", "c", "other")
    with pytest.raises(
        QueryError,
        match=r"keys= are those that public people have in 'w', and by= is 'g'. Look at that column",
    ):
        accord.count(by="g", keys=look)
    with pytest.raises(QueryError, match=r"public people suggest no keys of 'g': .*\. Declare them: keys="):
        accord.count(by="g", keys=table.public("g"))


def test_a_number_that_was_taken_for_being_large_says_an_error_for_whichever_is_taken():
    """Not that of a size that was named beforehand: noise decided which is taken."""
    release = people(1.0).release(accord.top("w", k=3, keys=KEYS, suppress=False), "minimum")
    ratio, b = np.log(80), 2.0
    taken = release[release.value[0]["w"]] + 0
    assert taken.rmse_here == pytest.approx(b * (2 + 2 * ratio + ratio**2) ** 0.5, rel=1e-3)
    assert "its rmse is for whichever group is taken" in " ".join(str(taken).split())
    named = people(1.0).release(accord.count(by="w", keys=KEYS, suppress=False), "minimum")["k3"]
    assert named.rmse_here == pytest.approx(b * 2**0.5, rel=1e-3)
