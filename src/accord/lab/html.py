"""The frame of pages."""

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
    return (
        '<!doctype html><html lang="en"><head><meta '
        f'charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head><body>'
        + "\n".join(body)
        + "</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], bad: Sequence[str] = ()) -> list[str]:
    """Rows of text; entries that are `bad` stand out."""
    return [
        "<table><tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>",
        *(
            "<tr>"
            + "".join(f"<td{' class=no' if cell in bad else ''}>{escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in rows
        ),
        "</table>",
    ]
