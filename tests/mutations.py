"""The small changes of code that tests/mutants.py makes, one at a time: a file as it would read with each of them.

Docstrings, annotations, texts of errors, `__repr__` and what mypy alone reads are left as they are.
"""

import ast
import re

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
FUNCTIONS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "floor": "ceil", "ceil": "floor",
    "minimum": "maximum", "maximum": "minimum",
}  # fmt: skip
GIVE_BACK = ("min", "max", "clip", "minimum", "maximum", "abs", "nextafter")
"""Functions whose first or second argument may stand in their place."""
SQL = re.compile(r"\b(SELECT|WHERE|CASE|WHEN|SUM|COUNT|MIN|MAX|FLOOR|LEAST|UPDATE|JOIN|AND|OR)\b")
SQL_SWAPS = {
    "<=": "<", ">=": ">", "<>": "=", "<": "<=", ">": ">=", " = ": " <> ", " + ": " - ", " - ": " + ", "AND": "OR",
    "OR": "AND", "MIN": "MAX", "MAX": "MIN", "LEAST": "GREATEST", "IS NULL": "IS NOT NULL",
    "IS NOT NULL": "IS NULL", "DISTINCT ": "", "FLOOR": "CEIL", "NOT ": "",
}  # fmt: skip
SQL_TOKEN = re.compile(
    "|".join(rf"\b{token}\b" if token.isalpha() else re.escape(token) for token in SQL_SWAPS)
)


def mutants(source):
    """(first line, last line, the whole source with one change) for every change of a file's bytes."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, text in _changes(ast.parse(source), source.decode().splitlines(keepends=True)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        yield node.lineno, node.end_lineno, source[:begin] + text.encode() + source[end:]


def _changes(node, lines):
    """(a node, the text in its place)."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield node, _with(node, ops=[*ops[:i], COMPARISONS[type(op)](), *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS and not _is_text(node):
            yield node, _with(node, op=OPERATORS[type(op)]())
        case ast.UnaryOp(operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, f"({value + 1})"
            yield node, f"({value - 1})"
        case ast.Constant(value=float(value)):
            yield node, f"({value * 2 or 1.0})"
        case ast.Constant(value=str()) | ast.JoinedStr() if SQL.search(ast.unparse(node)):
            text = ast.get_source_segment("".join(lines), node)
            for token in SQL_TOKEN.finditer(text):
                yield node, text[: token.start()] + SQL_SWAPS[token.group()] + text[token.end() :]
        case ast.Call(func=function, args=arguments, keywords=keywords):
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in FUNCTIONS:
                yield function, ast.unparse(function).removesuffix(name) + FUNCTIONS[name]
            if name in GIVE_BACK:
                yield from ((node, f"({ast.unparse(argument)})") for argument in arguments[:2])
            for i, keyword in enumerate(keywords):
                if keyword.arg not in (None, "strict"):
                    yield node, _with(node, keywords=keywords[:i] + keywords[i + 1 :])
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield node, "pass"
    for child in _worth_changing(node):
        yield from _changes(child, lines)


def _with(node, **parts):
    """The text of an expression with other parts."""
    return f"({ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), **parts}))})"


def _is_text(node):
    return any(
        isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", 0), str)
        for part in ast.walk(node)
    )


def _worth_changing(node):
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return []
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Expr(value=ast.Constant()):
            return []
        case ast.FunctionDef(name="__repr__" | "__str__" | "_repr_html_"):
            return []
        case ast.AnnAssign(value=value):
            return [value] if value else []
        case ast.keyword(arg="strict"):  # of zip: an assertion
            return []
        case ast.FunctionDef(args=arguments, body=body):
            return [*arguments.defaults, *filter(None, arguments.kw_defaults), *body]
        case ast.ClassDef(body=body):
            return body
    return list(ast.iter_child_nodes(node))
