"""HTML of the lab's pages: a whole document in one file, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;
margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:14px;margin:1rem 0}
td,th{border-bottom:1px solid #ddd;padding:.25rem .7rem;text-align:left;vertical-align:top}
img,svg{max-width:100%;height:auto}h2{margin-top:3rem}
.no{font-weight:bold;color:#b00020}code{background:#f4f4f4;padding:0 .2rem}"""


def document(title: str, body: Sequence[str]) -> str:
    """A whole page, in one file."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    content = "\n".join(body)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{content}</body></html>\n'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], bad: Sequence[str] = ()) -> list[str]:
    """Rows of text; entries that are `bad` stand out."""
    lines = ["<table><tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"]
    for row in rows:
        cells = (f"<td{' class=no' if cell in bad else ''}>{escape(cell)}</td>" for cell in row)
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return [*lines, "</table>"]
