"""What a request may say: which statistic, of which columns of a described table, and how accurately.

Who is in the table, with which level, which rows are whose, and where data and ledger are is said by
accord.toml alone: no field here names it, and a field that is not here is refused. Nor is there a field for
files, addresses, SQL that an engine would see, or algorithms of one's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from accord.batches import QUESTION, read_question
from accord.dates import moment_or_other
from accord.errors import AccordError, BudgetError, PlanError, QueryError, SpecError
from accord.planning import Plan, whole_share
from accord.server.refusals import StalePlanError
from accord.statistics import Workload, workload
from accord.toml_files import (
    KEYS_BY_COLUMN,
    NUMBER,
    NUMBERS_BY_NAME,
    TEXT,
    TEXT_OR_NUMBER,
    TRUTH,
    Field,
    Form,
    Place,
    Section,
    is_too_large,
    json_schema,
    table_of,
)

if TYPE_CHECKING:
    from accord.people.table import Table
    from accord.statistics import Query
    from accord.statistics.select import Selected

MOST_QUESTIONS = 100
_LISTED = "Give the list itself: a request names no file."
_SAID_BY_THE_TABLE = ("membership",)
QUESTION_ASKED = tuple(field for field in QUESTION if field.name not in _SAID_BY_THE_TABLE)
"""What may be said of a question."""
SQL_ASKED = (
    Field("text", TEXT, "SELECT ward, AVG(stay) FROM people GROUP BY ward", is_required=True),
    Field(
        "bounds",
        table_of("bounds, such as { stay = [0, 60] }", {"type": "object"}),
        "[low, high] of each column that is aggregated",
    ),
    Field("keys", KEYS_BY_COLUMN, "The groups, by column"),
    Field("gap", NUMBERS_BY_NAME, "How far the means of any two levels may lie apart, by column"),
    Field("max_rows", NUMBER, "The most rows that one person counts for in COUNT(*)"),
    Field("at_most", NUMBER, "In how many groups one person may be"),
    Field("one_row_each", TRUTH, "Declares that everyone has one row"),
    Field("suppress", TRUTH, "Whether groups that may be empty are left out"),
    Field("weights", NUMBERS_BY_NAME, "How much the squared error of an aggregate counts, by its name"),
)
ASKED = (
    Field("question", table_of("a question", json_schema("question", QUESTION_ASKED)), "One question"),
    Field(
        "questions",
        Form(
            f"a list of up to {MOST_QUESTIONS} questions",
            lambda x: (
                isinstance(x, list)
                and 0 < len(x) <= MOST_QUESTIONS
                and all(isinstance(each, dict) for each in x)
            ),
            {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_QUESTIONS,
                "items": json_schema("question", QUESTION_ASKED),
            },
        ),
        "Several, planned together and answered all or none",
    ),
    Field("sql", table_of("a SELECT", json_schema("sql", SQL_ASKED)), "A SELECT of aggregates"),
    Field("mechanism", TEXT, "A mechanism; the best one if it is left out"),
    Field("share", NUMBER, "The fraction of everyone's level that may be spent; a release needs it"),
    Field("t", TEXT_OR_NUMBER, "The level of 'threshold' or 'sample'; the best if it is left out"),
    Field("remaining", TRUTH, "Whether the share is of what everyone has left; of their level otherwise"),
    Field("report_missing", NUMBER, "The part of the charge that is spent on how many values are missing"),
    Field("purpose", TEXT, "Why it is asked, for the books"),
    Field(
        "expected",
        Form(
            "a list of fingerprints",
            lambda x: isinstance(x, list) and all(isinstance(each, str) for each in x),
            {"type": "array", "items": {"type": "string"}},
        ),
        "Fingerprints of the plan that whoever asks has made; nothing is charged for another",
    ),
    Field("fresh", TRUTH, "Whether to draw anew, and charge again, what was answered before"),
)
"""What may be asked, of a plan and of a release alike."""


class Written:
    """A request as a document: where something stands in it."""

    called = "the request"
    folder = Path()
    """Nothing is looked for there: names of files are refused."""

    def refuse(self, path: Place, fact: str) -> NoReturn:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        raise QueryError(f"{where.removeprefix('.')}: {fact}" if where else fact)


@dataclass(frozen=True)
class Asked:
    """A request, read and checked as far as that needs no table."""

    values: Mapping[str, Any]
    section: Section

    @property
    def share(self) -> float:
        """Of everyone's level; all of it where nothing is said, as plans take it."""
        return float(self.values.get("share", 1.0))

    @property
    def text(self) -> str:
        """Everything that it says, in one way of writing it."""
        return json.dumps(self.values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))

    def refuse_other(self, plan: Plan) -> None:
        """Refuse a plan that is not the one that whoever asks has made.

        Raises:
            StalePlanError: it is another.
        """
        expected = self.values.get("expected")
        if expected is not None and expected != [part.fingerprint for part in plan.parts]:
            raise StalePlanError

    def digest(self, table: str) -> str:
        """Of everything that it says about a table."""
        return hashlib.sha256(f"{table}\n{self.text}".encode()).hexdigest()

    def of(self, table: Table) -> tuple[Query | Workload, Selected | None]:
        """The question, as the table declares what it leaves out; of a SELECT also what was selected.

        Raises:
            QueryError: this table cannot answer it.
        """
        if "sql" in self.values:
            said = dict(self.values["sql"])
            self._refuse_bounds(table, self.section.section("sql"), said.get("bounds", {}))
            selected = table.select(said.pop("text"), **said)
            return selected.asked, selected
        if "question" in self.values:
            return self._question(table, self.section.section("question")), None
        sections = [self.section.section("questions", k) for k in range(len(self.values["questions"]))]
        queries = [self._question(table, section) for section in sections]
        return workload(queries, [section.values.get("weight", 1) for section in sections]), None

    def _question(self, table: Table, section: Section) -> Query:
        asked = read_question(section, QUESTION_ASKED)
        given = section.values.get("bounds", {})
        by_column = given if isinstance(given, dict) else {section.values.get("column"): given}
        self._refuse_bounds(table, section, by_column)
        with section.at(None):
            query: Query = table.described(asked)
            table.check(query)
        return query

    def _refuse_bounds(self, table: Table, section: Section, given: Mapping[Any, Any]) -> None:
        """Refuse bounds beyond those that the table declares."""
        declared = {} if table.description is None else table.description.columns
        for column, ends in given.items():
            known = declared.get(column)
            if known is None or known.bounds is None or not isinstance(ends, list) or len(ends) != 2:
                continue
            is_sum = section.values.get("statistic") == "sum" or section.values.get("per_person") == "sum"
            widest = known.total if is_sum and known.total is not None else known.bounds
            with section.at("bounds"):
                (low, high), (least, most) = (
                    [moment_or_other(end, "an end of bounds") for end in pair] for pair in (ends, widest)
                )
            try:
                is_within = least <= low and high <= most
            except TypeError:
                continue  # of another kind, which is refused with the question
            if not is_within:
                section.refuse(
                    "bounds",
                    f"bounds of {column!r} are declared as [{widest[0]}, {widest[1]}], and lie within these. "
                    "Leave them out, or give narrower ones.",
                )


def read_request(values: Any, *, is_release: bool) -> Asked:
    """A request for a plan or for a release.

    Raises:
        QueryError, PlanError: something in it cannot be asked.
    """
    if not isinstance(values, dict) or _is_unreadable(values):
        raise QueryError('a request is a JSON object, such as {"question": {"statistic": "count"}}.')
    section = Section(Written(), (), values)
    given = section.read(ASKED)
    kinds = [name for name in ("question", "questions", "sql") if name in given]
    if len(kinds) != 1:
        raise QueryError("a request has one of question, questions and sql.")
    if "sql" in given:
        section.section("sql").read(SQL_ASKED)
    for part in [given.get("question"), given.get("sql"), *given.get("questions", ())]:
        if part is not None:
            _refuse_files(part.get("keys"))
    with section.at("share"):
        whole_share(given.get("share", 1.0))
    if is_release and "share" not in given:
        raise PlanError("say how much of everyone's level this may spend: share = 0.1 is a tenth.")
    asked = Asked(given, section)
    for part in ["question"] if "question" in given else range(len(given.get("questions", ()))):
        path = (part,) if isinstance(part, str) else ("questions", part)
        read_question(section.section(*path), QUESTION_ASKED)
    return asked


def _is_unreadable(values: Any) -> bool:
    """Whether there is a number in it that no engine holds, or it is nested too deeply."""
    try:
        return is_too_large(values)
    except RecursionError:
        return True


def _refuse_files(keys: Any) -> None:
    listed = keys.values() if isinstance(keys, dict) else [keys]
    if any(isinstance(each, str) for each in listed):
        raise QueryError(f"keys is a text. {_LISTED}")


def public_text(fault: AccordError) -> str | None:
    """What an analyst may read of a refusal: what is said of the question, the plan and what is left.

    None: it is about the source or the ledger, and may name files. What one does with a ledger of one's own
    is put as one does it here.
    """
    if not isinstance(fault, QueryError | PlanError | SpecError | BudgetError):
        return None
    text = str(fault)
    for own, here in _HERE.items():
        text = text.replace(own, here)
    return text


_HERE = {
    "table.plan(query, remaining=ledger) (on the command line --remaining)": '"remaining": true, in Python '
    "remaining=True",
    "; or register the table anew from a source in which they are opted out": "",
    "See 'accord ledger show'. ": "",
}
"""What is said of a ledger that one has, and what of one that a service has."""
