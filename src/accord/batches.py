"""Batch: questions in a file, which are asked of one table as one workload.

    schema = 1
    table = "people"
    share = 0.05

    [[questions]]
    name = "stay by ward"
    statistic = "mean"
    column = "stay"
    by = "ward"

A question has the arguments of its constructor (`accord.mean`). All of the file is checked before anything is
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.errors import QueryError, did_you_mean
from accord.statistics import ALL, Query, Workload, workload
from accord.statistics.declared import Undescribed
from accord.toml_files import (
    KEYS_BY_COLUMN,
    LIST,
    NUMBER,
    TEXT,
    TEXT_OR_NUMBER,
    TEXTS,
    TEXTS_BY_COLUMN,
    TRUE_OR_NUMBERS,
    TRUTH,
    VALUE,
    VERSION,
    Field,
    Form,
    Section,
    TomlFile,
    json_schema,
    one_of,
    placed,
)

if TYPE_CHECKING:
    from accord.people.table import Table

_HOW = 'Write one with schema = 1, table = "…" and [[questions]].'
_BY_NAME = {statistic.name: statistic for statistic in ALL}
_ANYTHING = Form("a value", lambda x: not isinstance(x, bool), {})
_OF_A_BATCH = ("statistic", "name", "weight")
"""What is said of a question besides the arguments of its constructor."""
QUESTION = (
    Field("statistic", one_of(*_BY_NAME), "What is asked", is_required=True),
    Field("name", TEXT, "What the answer is called; left out: as the question is"),
    Field("weight", NUMBER, "How much the square of its error counts; 1 if it is left out"),
    Field("column", TEXT, "The column that it is about"),
    Field("other", TEXT, "Of a covariance: the second column"),
    Field("condition", TEXT, 'Of a proportion: what people meet, such as "age >= 65"'),
    Field("bounds", _ANYTHING, "[low, high], public; of a regression or a covariance, a table of them"),
    Field("step", TEXT_OR_NUMBER, "The values' own resolution"),
    Field("std", NUMBER, "A publicly known upper bound of the standard deviation"),
    Field(
        "gap", NUMBER, "How far the means (shares, distributions) of any two levels may lie apart, publicly"
    ),
    Field("about", one_of("everyone"), "Of everyone, the opted-out included: with a gap"),
    Field("missing", VALUE, "What becomes of missing values"),
    Field("where", TEXT, 'Of whom, such as "age >= 65"'),
    Field("by", TEXTS, "An answer for each group of this column, or for each combination of several"),
    Field(
        "keys", KEYS_BY_COLUMN, "The groups, a list or a file of one; of several columns, a table of these"
    ),
    Field("columns", LIST, "The columns of a crosstab"),
    Field("membership", one_of("private"), "Groups of a batch are private"),
    Field("at_most", NUMBER, "In how many groups or categories one person may be"),
    Field("suppress", TRUTH, "Whether groups that may be empty are left out; above 50 if it is not said"),
    Field(
        "rest",
        TEXTS_BY_COLUMN,
        "What one more group is called, of everyone whose value is none of the keys; of several columns "
        "also a table of these",
    ),
    Field("per_person", TEXT, "What a person's rows come to"),
    Field("edges", LIST, "Of a histogram's cells"),
    Field("categories", _ANYTHING, "A histogram's categories; of a regression, a table of them"),
    Field("p", _ANYTHING, "Which quantile, or a list of them"),
    Field("interval", one_of("values"), "Of a quantile, an interval in values, too"),
    Field("rounded", TRUE_OR_NUMBERS, "Whether people round such values, or to which steps: of ranks"),
    Field("k", NUMBER, "Of top: how many groups are shown"),
    Field("max", NUMBER, "The most rows of a person that count"),
    Field("target", TEXT, "A regression's target"),
    Field("features", LIST, "A regression's features"),
)
BATCH = (
    Field("schema", VERSION, "The version of this format", is_required=True),
    Field("table", TEXT, "A name in accord.toml", is_required=True),
    Field("share", NUMBER, "The fraction of everyone's level that may be spent"),
    Field(
        "remaining", TRUTH, "Whether the share is of what everyone has left; of their level if it is left out"
    ),
    Field("purpose", TEXT, "Why it is asked, for the ledger"),
    Field("mechanism", TEXT, "A mechanism for all of them; the best for each if it is left out"),
    Field(
        "questions",
        Form(
            "a list of tables [[questions]]",
            lambda x: isinstance(x, list) and bool(x) and all(isinstance(each, dict) for each in x),
            {"type": "array", "minItems": 1, "items": json_schema("question", QUESTION)},
        ),
        "What is asked",
        is_required=True,
    ),
)


@dataclass(frozen=True)
class Batch:
    """Questions to one table, and how much they may spend."""

    table: str
    """A name in accord.toml."""
    names: tuple[str, ...]
    share: float | None
    remaining: bool
    purpose: str | None
    mechanism: str
    sections: tuple[Section, ...]
    questions: tuple[Query | Undescribed, ...]

    def asked_of(self, people: Table) -> Workload[list[Any]]:
        """The workload, as the table declares what it leaves out.

        Raises:
            QueryError: this table cannot answer one of them. The message says on which line.
        """
        described = []
        for section, question in zip(self.sections, self.questions, strict=True):
            with section.at(None):
                described.append(people.described(question))
                people.check(described[-1])
        for section in self.sections:
            with section.at("weight"):
                workload(described[:1], [section.values.get("weight", 1)])
        return workload(described, [section.values.get("weight", 1) for section in self.sections])


def read_batch(path: str | Path) -> Batch:
    """The questions of a file.

    Raises:
        QueryError: something in it cannot be asked. The message says on which line.
    """
    top = TomlFile(path, QueryError, _HOW).top
    given = top.read(BATCH)
    sections = tuple(top.section("questions", k) for k in range(len(given["questions"])))
    questions = tuple(read_question(section) for section in sections)
    names = [section.values.get("name", f"question {k}") for k, section in enumerate(sections, start=1)]
    for k, section in enumerate(sections):
        if names[k] in names[:k]:
            section.refuse("name", f"two answers are called {names[k]!r}. Give each a name of its own.")
    share, purpose, mechanism = given.get("share"), given.get("purpose"), given.get("mechanism", "auto")
    remaining = given.get("remaining", False)
    return Batch(given["table"], tuple(names), share, remaining, purpose, mechanism, sections, questions)


def read_question(section: Section, fields: Sequence[Field] = QUESTION) -> Query | Undescribed:
    """A question, from what is said of it.

    Raises:
        AccordError: it cannot be asked. The message says where.
    """
    given = section.read(fields)
    ask = _BY_NAME[given["statistic"]].ask
    parameters = signature(ask).parameters
    arguments = {name: value for name, value in given.items() if name not in _OF_A_BATCH}
    if "keys" in arguments:
        arguments["keys"] = placed(arguments["keys"], section.file.folder)
    for name in arguments:
        if name not in parameters:
            section.refuse(name, f"{given['statistic']} takes no {name}: {did_you_mean(name, parameters)}")
    for name, parameter in parameters.items():
        if parameter.default is Parameter.empty and name not in arguments:
            section.refuse(None, f"{given['statistic']} needs {name} = ….")
    with section.at(None):
        question: Query | Undescribed = ask(*arguments.pop("columns", ()), **arguments)
    return question
