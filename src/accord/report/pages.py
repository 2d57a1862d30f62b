"""Pages to print: HTML files that fetch nothing from anywhere."""

from __future__ import annotations

from html import escape
from pathlib import Path

from accord.errors import AccordError

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }}
th {{ text-align: left; }}
svg {{ max-width: 100%; height: auto; }}
@media print {{ body {{ margin: 0; max-width: none; font-size: 11pt; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{content}
</body>
</html>
"""


def write_page(path: Path, title: str, content: str) -> Path:
    """A page with a title, which is text, and a content, which is HTML.

    Raises:
        AccordError: it cannot be written.
    """
    try:
        path.write_text(_PAGE.format(title=escape(title), content=content), encoding="utf-8")
    except OSError as fault:
        raise AccordError(f"{path} cannot be written ({fault.strerror}). Give another place.") from None
    return path
