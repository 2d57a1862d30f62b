"""What pages of the documentation show, for tests that run it."""

import ast
import re


def blocks(language, text):
    """The blocks of a language on a page, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def values_shown(block, names):
    """Runs a block of Python; the text, value and comment of each line that stands for its value."""
    for statement in ast.parse(block).body:
        code = ast.unparse(statement)
        if isinstance(statement, ast.Expr):
            yield (
                code,
                eval(code, names),
                block.splitlines()[statement.end_lineno - 1].partition("#")[2].strip(),
            )
        else:
            exec(code, names)
