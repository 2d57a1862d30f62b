"""The published JSON Schemas: of accord.toml, of files of questions, of plans and receipts."""

import json
import os
import tomllib
from math import isinf
from pathlib import Path

import jsonschema
import pytest

import accord
from accord.batches import BATCH
from accord.catalogs import CATALOG
from accord.toml_files import json_schema

ROOT = Path(__file__).parents[2]
SCHEMAS, GOLDEN = ROOT / "docs" / "schemas", ROOT / "tests" / "golden"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILES = {
    "catalog": ("accord.toml: tables that are described once", CATALOG),
    "questions": ("Questions that are asked as one workload", BATCH),
}


def schema(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


def faults(name, document):
    validator = jsonschema.Draft202012Validator(schema(name))
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(document)]


@pytest.mark.parametrize("name", ["catalog", "questions", "plan", "receipt"])
def test_each_is_a_schema(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", FILES)
def test_files_are_published_as_they_are_read(name):
    title, fields = FILES[name]
    made = json_schema(title, fields, **{"$schema": DIALECT})
    if "ACCORD_WRITE_GOLDEN" in os.environ:
        (SCHEMAS / f"{name}.json").write_text(
            json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    assert schema(name) == made


def golden(name):
    lines = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return {key: json.loads(text) for key, text in (line.split("\t", 1) for line in lines)}


@pytest.mark.parametrize(
    ("file", "name"), [("plans-replace", "plan"), ("plans-add-remove", "plan"), ("receipts", "receipt")]
)
def test_every_golden_document_fits(file, name):
    documents = golden(file)
    assert len(documents) > 50
    found = {key: faults(name, document) for key, document in documents.items() if "error" not in document}
    assert {key: said for key, said in found.items() if said} == {}


def test_live_documents_fit(tmp_path):
    people = accord.table(
        {"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "e": [0.5, 1.0, 1.0]}, epsilon="e", user="id"
    )
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    both = accord.workload([accord.mean("x", (0, 10)), accord.median("x", (0, 10))])
    for asked in (accord.mean("x", (0, 10)), both):
        planned = people.plan(asked, share=0.1)
        assert not faults("plan", planned.describe())
        receipt = people.release(planned, ledger=ledger).receipt()
        assert not faults("receipt", receipt)
        assert receipt["ledger"]["entry"]
    many = accord.plan(accord.Spec.of([k / 1000 for k in range(1, 2000)]), accord.mean("x", (0, 10)))
    assert not faults("plan", many.describe())


def test_what_is_wrong_does_not_fit():
    document = accord.plan(accord.Spec.of([1.0] * 9), accord.mean("x", (0, 10))).describe()
    assert not faults("plan", document)
    assert faults("plan", document | {"more": 1})
    assert faults("plan", document | {"share": 0.5})
    assert faults("receipt", document)
    assert faults("plan", {key: value for key, value in document.items() if key != "charges"})


TOML = """\
schema = 1
[tables.people]
source = "people.csv"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1 }
[tables.people.columns.stay]
bounds = [0, 60]
keys = ["a"]
"""


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("", "", True),
        ("schema = 1", "schema = 2", False),
        ("bounds", "bound", False),
        ("[0, 60]", "[0]", False),
        ('source = "people.csv"', "", False),
        (
            "standard = 1",
            'standard = "one"',
            True,
        ),  # inf is a text in JSON; accord itself says that this is none
    ],
)
def test_a_description_in_json(old, new, fits):
    document = tomllib.loads(TOML.replace(old, new) if old else TOML)
    assert not any(isinstance(x, float) and isinf(x) for x in document["tables"]["people"]["tiers"].values())
    assert (not faults("catalog", document)) is fits
