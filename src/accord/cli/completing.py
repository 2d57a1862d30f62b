"""What a shell completes besides commands and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def place(name: str, **how: Any) -> Callable[..., Any]:
    """An argument that is often a file, which a shell completes, and may be an address or a name, too."""
    return click.argument(name, shell_complete=_files, **how)
