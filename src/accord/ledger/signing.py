"""Signing: who asked for something, and why, as it is booked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accord.errors import LedgerError

LONGEST = 500
"""Letters of a text that is booked."""


@dataclass(frozen=True)
class Signature:
    """Who asks, and why; either may be left out where nothing requires it."""

    actor: str | None = None
    purpose: str | None = None

    def __post_init__(self) -> None:
        for name, text in self.booked.items():
            if text is not None:
                _refuse_text(name, text)

    @property
    def booked(self) -> dict[str, str | None]:
        """As entries hold it."""
        return {"actor": self.actor, "purpose": self.purpose}

    @property
    def missing(self) -> tuple[str, ...]:
        """What was left out."""
        return tuple(name for name, text in self.booked.items() if text is None)

    def refuse_incomplete(self, what: str) -> None:
        """Refuse to do something that is only done in somebody's name, for a reason."""
        if self.missing:
            raise LedgerError(
                f"{what} is booked with who did it and why, and {' and '.join(self.missing)} "
                f"{'is' if len(self.missing) == 1 else 'are'} not given. "
                "Give actor= and purpose= (on the command line --actor and --why)."
            )


UNSIGNED = Signature()


def _refuse_text(name: str, text: Any) -> None:
    """Refuse what cannot be read in a history: text of several lines, half characters, whole documents."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > LONGEST:
        raise LedgerError(
            f"{name}= is not a line of text. Give at most {LONGEST} printable characters: it is booked."
        )
