"""Missing values: left out by default, privately, whatever else is asked; declared where there are none.

What is answered without noise is compared with plain Python, for every statistic and every word of `missing=`, with
`where=`, `by=`, public groups, many rows a person, under both relations, in a workload and with a ledger.
"""

import json
from datetime import date
from math import inf, isnan, nan

import numpy as np
import pytest
from click.testing import CliRunner
from noises import Fixed

import accord
from accord import relation
from accord.cli import main
from accord.errors import QueryError
from accord.planning import Plan
from accord.release.release import carry_out
from accord.statistics import target_and_moves

X = [3.0, nan, 9.0, 12.0, nan, -inf, 5.0, 7.0, nan, 0.0, 4.0, 6.0]
Z = [1.0, 0.5, nan, 0.0, 1.0, 0.2, 0.4, nan, nan, 0.9, 0.6, 0.1]
G = [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 9, 9]
GRID = {"bounds": (2, 10), "step": 1}
MIDDLE = 6.0
SPEC = accord.Spec.of([1.0] * len(X))
ASKED = {
    "mean": lambda **of: accord.mean("x", **GRID, **of),
    "sum": lambda **of: accord.sum("x", **GRID, **of),
    "variance": lambda **of: accord.variance("x", **GRID, **of),
    "std": lambda **of: accord.std("x", **GRID, **of),
    "proportion": lambda **of: accord.proportion("x >= 5 AND x < 9", **of),
    "min": lambda **of: accord.min("x", **GRID, **of),
    "max": lambda **of: accord.max("x", **GRID, **of),
    "histogram": lambda **of: accord.histogram("x", edges=[2, 5, 7, 10], **of),
}
WORDS = {
    "default": {},
    "none": {"missing": "none"},
    "middle": {"missing": "middle"},
    "number": {"missing": 9},
}
PARTS = {
    "everyone": {},
    "where": {"where": "g = 1"},
    "by": {"by": "g", "keys": [2, 1]},
    "public where": {"where": "g = 1", "membership": "public"},
    "public by": {"by": "g", "keys": [2, 1], "membership": "public"},
}


def people(neighbors="replace", rows=1, **columns):
    """One row a person; or several, of which the second ones have no value."""
    x = np.array(columns.get("x", X))
    repeated = {"x": np.concatenate([x] + [np.full(x.size, nan)] * (rows - 1))}
    repeated |= {name: np.tile(values, rows) for name, values in (("z", Z), ("g", G), ("id", range(len(X))))}
    roster = SPEC if neighbors == "add-remove" else None
    columns = repeated | {"e": np.ones(len(X) * rows)}
    return accord.table(
        columns, epsilon="e", user="id" if rows > 1 else None, neighbors=neighbors, roster=roster
    )


def without_noise(table, query, mechanism="minimum"):
    """The answer of a release whose noise is 0."""
    plan = table.plan(query, mechanism)
    if not plan.is_grouped:
        return carry_out(table.reader, plan, Fixed()).value
    tables = table.groups(plan.query.part)
    by_key = {k: carry_out(tables[k].reader, part, Fixed()).value for k, part in plan.plans.items()}
    return (
        [{"g": key, "value": value} for key, value in by_key.items()] if plan.query.part.by else by_key[None]
    )


def in_python(statistic, word, group=None):
    """What must come out, of everyone or of a group."""
    counts_as = {"none": MIDDLE, "middle": MIDDLE, "number": 9.0}.get(word)
    values = [x if np.isfinite(x) else counts_as for x, g in zip(X, G, strict=True) if group in (None, g)]
    present = [min(10.0, max(2.0, x)) for x in values if x is not None]
    match statistic:
        case "proportion":  # a stray missing value counts as not meeting it
            own = [x for x, g in zip(X, G, strict=True) if group in (None, g)]
            return np.mean([5 <= x < 9 for x in own if word == "none" or np.isfinite(x)])
        case "mean":
            return np.mean(present)
        case "sum":
            return sum(present)
        case "variance":
            return np.var(present)
        case "std":
            return np.std(present)
        case "histogram":
            cells = [
                sum(x < 5 for x in present),
                sum(5 <= x < 7 for x in present),
                sum(x >= 7 for x in present),
            ]
            return dict(zip(("[2, 5)", "[5, 7)", "[7, 10]"), cells, strict=True))
    return present


@pytest.mark.parametrize("rows", [1, 2], ids=["one row each", "user="])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("statistic", ["mean", "sum", "variance", "std", "proportion", "histogram"])
def test_without_noise_it_is_what_python_makes_of_those_who_have_a_value(
    statistic, word, part, neighbors, rows
):
    if (neighbors == "add-remove" and part.startswith("public")) or (statistic, word) in (
        ("histogram", "number"),
        ("proportion", "number"),
        ("proportion", "middle"),
    ):
        return
    value = without_noise(people(neighbors, rows), ASKED[statistic](**WORDS[word], **PARTS[part]))
    expected = [(key, in_python(statistic, word, key)) for key in (2, 1)]
    if "by" not in PARTS[part]:
        value, expected = (
            [{"g": 1, "value": value}],
            [(1, in_python(statistic, word, 1 if PARTS[part] else None))],
        )
    for row, (key, there) in zip(value, expected, strict=True):
        assert row["g"] == key and row["value"] == pytest.approx(there)


@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "proportional", "affine", "mix", "sample"])
def test_every_mechanism_that_can_leaves_them_out(mechanism):
    """With everyone at one level, which keeps everyone, all of them have the mean of those who have a value."""
    assert without_noise(people(), ASKED["mean"](), mechanism) == pytest.approx(in_python("mean", "default"))


@pytest.mark.parametrize(
    ("neighbors", "rows"), [("replace", 1), ("replace", 2), ("add-remove", 1), ("add-remove", 2)]
)
def test_a_regression_leaves_out_whoever_lacks_any_of_its_columns(neighbors, rows):
    """The moments are those of the others, and so is their number."""
    query = accord.regression("x", ["z"], bounds={"x": (2, 10), "z": (0, 1)})
    ((*sums, count),) = people(neighbors, rows).reader.summary(query).rows()
    kept = [(x, z) for x, z in zip(X, Z, strict=True) if np.isfinite(x) and not isnan(z)]
    codes = [(round((min(10, max(2, x)) - 6) / 4 * 512), round((z - 0.5) * 1024)) for x, z in kept]
    assert count == len(kept) == 6
    assert sums[:2] == [512 * sum(y for y, _ in codes), 512 * sum(z for _, z in codes)]
    assert sums[2:] == [sum(y * z for y, z in codes), sum(z * z for _, z in codes)]
    target, moves = target_and_moves(query, relation.REPLACE)
    assert target.about_members and moves == 1


def test_in_a_workload_and_with_a_ledger(tmp_path):
    table, ledger = people(rows=2), accord.Ledger(tmp_path / "a.db", key="k" * 16)
    ledger.register(table, "people")
    asked = accord.workload([ASKED["mean"](), accord.median("x", **GRID), ASKED["sum"](missing="none")])
    release = table.release(asked, share=0.5, ledger=ledger)
    assert [part.plan.query.describe()["missing"] for part in release.parts] == ["exclude", "exclude", "none"]
    assert [part.plan.target.about_members for part in release.parts] == [True, True, False]
    assert ledger.remaining(table).levels == (0.5,)
    plan = accord.plan(ledger.remaining(table), ASKED["mean"]())
    assert table.release(plan, ledger=ledger).receipt()["query"]["missing"] == "exclude"


def test_nobody_is_told_how_many_lack_a_value():
    """Plans, charges and texts are the same whoever has one."""
    some, nobody = people(), people(x=[5.0] * len(X))
    for query in (
        *(ask() for ask in ASKED.values()),
        ASKED["mean"](by="g", keys=[1, 2], membership="public"),
    ):
        assert str(some.plan(query)) == str(nobody.plan(query))
        assert some.plan(query).describe() == nobody.plan(query).describe()


# ---- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "word", "says"),
    [
        (accord.mean("x", (0, 10)), "exclude", "people without a value are left out; how many is private"),
        (accord.sum("x", (5, 10)), "exclude", "a missing value counts as 0"),
        (
            accord.mean("x", (0, 10), missing="none"),
            "none",
            "no value is missing, as declared; a stray one would",
        ),
        (
            accord.mean("x", (0, 10), missing="middle"),
            "5",
            "counts as 5, the middle of the bounds; many of them",
        ),
        (accord.mean("x", (0, 10), step=1, missing=3), "3", "a missing value counts as 3"),
        (
            accord.median("d", (date(2020, 1, 1), date(2020, 1, 3)), missing="none"),
            "none",
            "middle (2020-01-02)",
        ),
        (accord.histogram("x", edges=[0, 1, 2]), "exclude", "people without a value are in no cell"),
        (accord.histogram("x", edges=[0, 1, 2], missing="none"), "none", "would count in the cell '[1, 2]'"),
        (accord.histogram("x", edges=[0, 1, 2], missing="middle"), "[1, 2]", "count in the cell '[1, 2]'"),
        (
            accord.histogram("x", categories=["a", "b"]),
            None,
            "missing and undeclared values count in no cell",
        ),
        (
            accord.regression("x", ["z"], {"x": (0, 1), "z": (0, 1)}),
            "exclude",
            "in any of these columns are left out",
        ),
        (accord.regression("x", ["z"], {"x": (0, 1), "z": (0, 1)}, missing="none"), "none", "as declared"),
    ],
)
def test_receipts_and_plans_say_what_is_done(query, word, says):
    assert query.describe()["missing"] == word
    for of in (query.assumptions(), accord.plan(accord.Spec.of([1.0] * 50), query).assumptions):
        assert any(says in line for line in of)


def test_a_word_that_is_not_offered():
    with pytest.raises(
        QueryError, match=r"missing='exlude' is not offered\. It is 'exclude' \(people without"
    ):
        accord.mean("x", (0, 1), missing="exlude")
    with pytest.raises(QueryError, match=r"missing=11 lies outside the bounds\. .* 'exclude' or 'none'"):
        accord.mean("x", (0, 10), missing=11)
    for wrong in ("exlude", 3, None):
        with pytest.raises(QueryError, match=r"is not offered\. Of a regression it is 'exclude'"):
            accord.regression("x", ["z"], {"x": (0, 1), "z": (0, 1)}, missing=wrong)


GAINS = "declaring missing='none', if no value is missing, would lower the predicted error from"


@pytest.mark.parametrize("mechanism", ["auto", "affine", "sample"])
def test_a_plan_says_what_declaring_it_would_gain(mechanism):
    spec = accord.Spec.from_groups({0.1: 500, 1.0: 300})
    plan = accord.plan(spec, accord.mean("x", (0, 1)), mechanism)
    (line,) = (line for line in plan.assumptions if line.startswith(GAINS))
    declared = accord.plan(spec, accord.mean("x", (0, 1), missing="none"), plan.mechanism)
    assert line == f"{GAINS} {plan.rmse:.4g} to about {declared.rmse:.4g}"
    assert declared.rmse < plan.rmse and line in plan.describe()["assumptions"]
    assert not any(GAINS in line for line in declared.assumptions)


def test_where_nothing_would_be_gained_nothing_is_said():
    spec = accord.Spec.from_groups({0.1: 500, 1.0: 300})
    of_groups = accord.mean("x", (0, 1), by="g", keys=[1, 2])
    for query in (accord.sum("x", (0, 1)), accord.count(where="x > 0"), of_groups):
        assert not any(GAINS in line for line in accord.plan(spec, query).assumptions)


def test_a_mechanism_that_cannot_says_which_declaration_would_let_it():
    spec = accord.Spec.from_groups({0.1: 500, 1.0: 300})
    hint = "; declare missing='none' if no value is missing"
    notes = {c.mechanism: c.note for c in accord.plan(spec, accord.median("x", (0, 1))).candidates}
    for name in ("pe", "mix"):
        assert notes[name] == f"would need the number of members, which is private{hint}"
    with pytest.raises(accord.errors.PlanError, match="declare missing='none' if no value is missing"):
        accord.plan(spec, accord.median("x", (0, 1)), "pe")
    of_some = accord.plan(spec, accord.median("x", (0, 1), where="y > 0")).candidates
    assert not any(hint in c.note for c in of_some)  # it would not help
    variance = {c.mechanism: c.note for c in accord.plan(spec, accord.variance("x", (0, 1))).candidates}
    assert variance["mix"].endswith(f"that somebody may have a value or not takes add-remove{hint}")


# ---- what a table declares ---------------------------------------------------------------------------------


def test_a_file_or_a_type_declares_nothing(tmp_path):
    """Writers derive both from the values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [pa.field("x", pa.int64(), nullable=False), pa.field("e", pa.float64(), nullable=False)]
    )
    complete = pa.table({"x": [1, 2], "e": [1.0, 1.0]}, schema=schema)
    pq.write_table(complete, tmp_path / "complete.parquet")
    for source in (complete, tmp_path / "complete.parquet", complete.to_pandas()):
        plan = accord.table(source, epsilon="e").plan(accord.mean("x", (0, 2)), "minimum")
        assert plan.target.about_members and plan.read_as is None


def test_a_constraint_declares_it_and_the_question_stays(postgres_url):
    import psycopg

    made = (
        "CREATE TABLE visits (id INT NOT NULL, x DOUBLE PRECISION NOT NULL, y INT, e DOUBLE PRECISION NOT NULL); "
        "INSERT INTO visits SELECT k, k % 10, k, 1.0 FROM generate_series(1, 40) AS k; "
        "CREATE VIEW seen AS SELECT * FROM visits"
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(made)
    join = "&" if "?" in postgres_url else "?"
    visits, seen = (accord.table(f"{postgres_url}{join}table={t}", epsilon="e") for t in ("visits", "seen"))
    query = accord.mean("x", (0, 9), step=1)
    plan = visits.plan(query, "affine")
    assert plan.query == query and plan.query.describe()["missing"] == "exclude"
    assert not plan.target.about_members
    assert plan.rmse == visits.plan(accord.mean("x", (0, 9), step=1, missing="none"), "affine").rmse
    assert "the table declares that no value is missing: x is NOT NULL there" in plan.assumptions
    assert any(line.startswith("no value is missing, as declared") for line in plan.assumptions)
    assert carry_out(visits.reader, plan, Fixed()).value == pytest.approx(4.5)
    assert visits.release(query).plan == visits.plan(query)
    assert visits.release(plan).receipt()["query"]["missing"] == "exclude"
    both = visits.plan(accord.workload([query, accord.mean("y", (0, 9))]))
    assert [part.target.about_members for part in both.parts] == [False, True]
    assert both.query.queries[0] == query == both.parts[0].query
    groups = visits.plan(accord.mean("x", (0, 9), by="id", keys=[1, 2], membership="public"), "minimum")
    assert groups.query.query.excludes_missing and not groups.plans[1].target.about_members
    for other in (visits.plan(accord.mean("y", (0, 9)), "affine"), seen.plan(query, "affine")):
        assert other.target.about_members and not any("NOT NULL" in line for line in other.assumptions)
    line = accord.regression("x", ["y"], {"x": (0, 9), "y": (0, 40)})
    assert visits.plan(line, "affine").target.about_members
    line = accord.regression("x", ["id"], {"x": (0, 9), "id": (0, 40)})
    assert not visits.plan(line, "affine").target.about_members


# ---- the command line and scikit-learn ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "word"),
    [([], "exclude"), (["none"], "none"), (["exclude"], "exclude"), (["middle"], "5"), (["3"], "3")],
)
def test_on_the_command_line(tmp_path, asked, word):
    path = tmp_path / "people.csv"
    path.write_text("x,z,e\n" + "".join(f"{x},{x},1\n" for x in range(10)) + ",,1\n")
    missing = ["--missing", *asked] if asked else []
    words = ["plan", str(path), "mean", "x", "--bounds", "0", "10", "--epsilon", "e", "--json", *missing]
    document = json.loads(CliRunner().invoke(main, words, catch_exceptions=False).stdout)
    said = document["query"]["missing"]
    if word not in ("exclude", "none"):  # the nearest point of the grid
        assert float(said) == pytest.approx(float(word), abs=1e-5)
    else:
        assert said == word
        words[2:6] = ["regression", "x", "--on", "z=0..10", "--bounds", "0"]
        document = json.loads(CliRunner().invoke(main, words, catch_exceptions=False).stdout)
        assert document["query"]["missing"] == word


@pytest.mark.filterwarnings("ignore::accord.errors.PrivacyWarning")
def test_in_scikit_learn():
    from accord.sklearn import LinearRegression

    x, y = np.array([[0.1], [nan], [0.9], [0.5]] * 50), np.array([1.0, 2.0, nan, 3.0] * 50)
    fitted = LinearRegression(bounds=((0, 1), (0, 4)), epsilon=5.0).fit(x, y)
    assert fitted.receipt_["query"]["missing"] == "exclude"
    declared = LinearRegression(bounds=((0, 1), (0, 4)), epsilon=5.0, missing="none").fit(x, y)
    assert declared.receipt_["query"]["missing"] == "none"
    assert isinstance(fitted.release_.plan, Plan) and fitted.release_.plan.target.about_members
