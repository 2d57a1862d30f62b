"""The tree of a SELECT: parsed by sqlglot, and read node by node. What is not known is refused.

No SQL of a user reaches an engine: a condition is written again in the grammar of `where=` (where.py),
columns are names of the table's, and literals are values.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

from accord.errors import AccordError, QueryError, did_you_mean
from accord.statistics import where as grammar

Node: TypeAlias = Any
"""Of sqlglot's tree, known by the name of its class."""
EXAMPLE = "such as SELECT ward, AVG(stay), COUNT(*) FROM people WHERE age >= 65 GROUP BY ward"
_LONGEST, _DEEPEST = 10_000, 20
_FILES = ("parquet", "csv", "tsv", "txt", "gz", "zst", "json", "db", "duckdb", "arrow", "feather")
"""How names of files end."""
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "Pow")
_COMPARED = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_MOMENTS, _DATE = ("TIMESTAMP", "TIMESTAMPNTZ"), re.compile(r"\d{4}-\d\d-\d\d")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def parsed(text: Any) -> Node:
    """The tree of a text that is one SELECT."""
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
    except ModuleNotFoundError:
        raise AccordError(
            "questions in SQL need sqlglot, which is not installed. Install accord[sql], or ask in Python: "
            "accord.mean and its siblings."
        ) from None
    if not isinstance(text, str) or not re.match(r"\s*SELECT\b", text, re.IGNORECASE):
        raise QueryError(f"this is no SELECT. Write one, {EXAMPLE}.")
    if len(text) > _LONGEST:
        raise QueryError(
            f"the SELECT has {len(text):,} characters; at most {_LONGEST:,} are read. Ask less in one."
        )
    if _depth(text) > _DEEPEST:
        raise QueryError(f"the SELECT is nested more than {_DEEPEST} deep. Write it with fewer parentheses.")
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
    except (SqlglotError, RecursionError):
        trees = []
    trees = [tree for tree in trees if tree is not None]
    if len(trees) != 1 or not is_a(trees[0], "Select"):
        is_path = not trees and re.search(r"(?i)\bFROM\s+[^\s'\"();]*[/\\.-]", text)
        quotes = " A file after FROM stands in quotes: FROM 'people.parquet'." if is_path else ""
        raise QueryError(f"this is not one SELECT that can be read. Write one, {EXAMPLE}.{quotes}")
    return trees[0]


def _depth(text: str) -> int:
    """How many parentheses are open at once, at most."""
    depth = deepest = 0
    for sign in re.sub(r"'[^']*'|\"[^\"]*\"", "", text):
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    return deepest


def table_of(select: Node) -> Node:
    """The one table that is asked."""
    clause = select.args.get("from_")
    if clause is None:
        raise QueryError(f"this SELECT has no FROM. Name the table that is asked, {EXAMPLE}.")
    table: Node = clause.this
    if is_a(table, "Table") and (is_file := _as_file(table)):
        raise QueryError(
            f"{is_file} after FROM is read as a table of a schema. If it is a file, put it in quotes: "
            f"FROM '{is_file}'."
        )
    if not is_a(table, "Table") or not is_a(table.this, "Identifier"):
        raise QueryError(
            "what stands after FROM is no table. Name the table; a subquery could make one person count "
            "for many, so that nothing could be promised."
        )
    refuse_more(table, "this", "alias")
    if table.args.get("alias") is not None:
        refuse_more(table.args["alias"], "this")  # names of columns would give them another meaning
    return table


def _as_file(table: Node) -> str | None:
    """What looks like the name of a file without quotes, such as people.parquet; None: it does not."""
    parts = [table.args.get(part) for part in ("catalog", "db", "this")]
    named = [part.name for part in parts if is_a(part, "Identifier")]
    is_named = len(named) > 1 and named[-1].lower() in _FILES
    return ".".join(named) if is_named else None


def is_a(node: Any, *kinds: str) -> bool:
    return type(node).__name__ in kinds


def refuse_more(node: Node, *known: str) -> None:
    """Refuse a node that says more than what is read of it."""
    if any(value and name not in known for name, value in node.args.items()):
        raise not_read(node)


def not_read(node: Node) -> QueryError:
    return QueryError(
        f"{shown(node)} is not read here. A SELECT has columns of GROUP BY, and COUNT, SUM, AVG, MIN, MAX, "
        "MEDIAN, QUANTILE_CONT, VAR_POP, STDDEV_POP, CORR and COVAR_POP of columns."
    )


def is_calculation(node: Node) -> bool:
    """Whether a node calculates, as `/` and ROUND do."""
    return is_a(node, "Paren", "Neg", "Round", "Coalesce", "Cast", "Nullif", "Abs", *_ARITHMETIC)


def is_aggregate(node: Node) -> bool:
    return any(kind.__name__ == "AggFunc" for kind in type(node).__mro__)


def is_function(node: Node) -> bool:
    """Whether a node calls a function by its name."""
    is_call = any(kind.__name__ == "Func" for kind in type(node).__mro__)
    return is_call and not is_a(node, "And", "Or", "Xor", "Case", "Cast", "TryCast", "If")


def shown(node: Node) -> str:
    text = node.sql(dialect="duckdb", comments=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


@dataclass(frozen=True)
class Names:
    """What can be named in a SELECT."""

    columns: Collection[str]
    """The table's."""
    tables: Collection[str]
    """What the table itself is called."""

    def column(self, node: Node) -> str:
        """The table's column that is named: in letters of either case, unless the name is quoted."""
        if not is_a(node, "Column") or not is_a(node.this, "Identifier"):
            if is_function(node):
                raise QueryError(
                    f"{shown(node)} is a function, and not a column. accord calls none of columns: it could "
                    "fail, or tell of something else than the people. Name a column."
                )
            raise QueryError(f"{shown(node)} is not a column. Name one; accord calculates with columns only.")
        refuse_more(node, "this", "table")
        if node.table and node.table not in self.tables:
            raise QueryError(f"{shown(node)} is of another table. Name columns of the one after FROM.")
        name, columns = node.name, self.columns
        if name in columns:
            return str(name)
        alike = [column for column in columns if column.lower() == name.lower()]
        if len(alike) == 1 and not node.this.quoted:
            return alike[0]
        raise QueryError(f"the table has no column {name!r}: {did_you_mean(name, columns)}")

    def condition(self, node: Node) -> str:
        """A condition in the grammar of `where=`."""
        kind = type(node).__name__
        if kind in ("And", "Or"):
            return f" {kind.upper()} ".join(self.condition(part) for part in node.flatten(unnest=False))
        if kind == "Paren":
            return f"({self.condition(node.this)})"
        if kind == "Not":
            return f"NOT ({self.condition(node.this)})"
        if kind in _COMPARED:
            return self._comparison(node, _COMPARED[kind])
        if kind == "Column":
            return quoted(self.column(node))
        if kind == "Between":
            refuse_more(node, "this", "low", "high")
            column = quoted(self.column(node.this))
            low, high = (self._literal(node.args[end]) for end in ("low", "high"))
            return f"({column} >= {low} AND {column} <= {high})"
        if kind == "In":
            refuse_more(node, "this", "expressions")
            listed = ", ".join(self._literal(each) for each in node.expressions)
            return f"{quoted(self.column(node.this))} IN ({listed})"
        if kind == "Is" and is_a(node.expression, "Null"):
            return f"{quoted(self.column(node.this))} IS NULL"
        raise self._no_condition(node)

    def _comparison(self, node: Node, operator: str) -> str:
        left, right = node.left, node.right
        if is_a(left, "Literal") or (is_a(right, "Column") and not is_a(left, "Column")):
            left, right, operator = right, left, _TURNED[operator]
        return f"{quoted(self.column(left))} {operator} {self._literal(right)}"

    def _literal(self, node: Node) -> str:
        if is_a(node, "Literal"):
            return _text(node.this) if node.is_string else str(node.this)
        if is_a(node, "Neg") and is_a(node.this, "Literal") and not node.this.is_string:
            return f"-{node.this.this}"
        if is_a(node, "Boolean"):
            return str(bool(node.this)).upper()
        if is_a(node, "Cast") and is_a(node.this, "Literal") and node.this.is_string:
            refuse_more(node, "this", "to", "_type")
            kind, text = node.to.this.value, node.this.this
            if kind in _MOMENTS or (kind == "DATE" and _DATE.fullmatch(text)):
                return _text(text)
        raise self._no_condition(node)

    @staticmethod
    def _no_condition(node: Node) -> QueryError:
        return QueryError(
            f"{shown(node)} is no condition that can be read. Compare a column with a number, a text, a date "
            "or TRUE; with IN, BETWEEN and IS NULL; and combine with AND, OR and NOT."
        )


def quoted(column: str) -> str:
    """A column as `where=` names it."""
    is_plain = re.fullmatch(r"[^\W\d]\w*", column) and column.upper() not in grammar.KEYWORDS
    return column if is_plain else '"' + column.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def both(first: str | None, second: str) -> str:
    return second if first is None else f"({first}) AND ({second})"
