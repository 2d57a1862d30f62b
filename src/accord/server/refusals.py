"""What the service refuses, and in which words. All of it is public."""

from __future__ import annotations

from accord.errors import AccordError, BudgetError, LedgerError, PlanError
from accord.ledger.requests import KeyConflictError, QueueFullError

NOT_READABLE = "the table cannot be read as it is described. Its owner finds the reason in the service's log."
NOT_NOW = "this cannot be done now. The owner of the service finds the reason in its log."
FAILED = "people were charged, and there is no answer. Ask anew if you need one; that is charged again."
NOT_AGREED = (
    "the description of the tables has changed, and the officer has not agreed to it. Nothing is released "
    "until then."
)

NO_KEY = (
    "a release needs the header Idempotency-Key: a text of your own, of 1 to 100 characters. The same key is "
    "the same request, and is charged once."
)


class NotThereError(AccordError):
    """What is asked for is not there, or not for whoever asks."""

    def __init__(self) -> None:
        super().__init__("there is no such thing here, or it is not for you.")


class SignInError(AccordError):
    """Nobody is signed in."""

    def __init__(self) -> None:
        super().__init__("sign in with a valid token: Authorization: Bearer accord_….")


class ThrottledError(AccordError):
    """Signing in has failed too often."""

    def __init__(self) -> None:
        super().__init__("signing in has failed too often from here. Wait a minute.")


class StalePlanError(PlanError):
    """Whoever asks has made another plan than the service would carry out."""

    def __init__(self) -> None:
        super().__init__(
            "the service has another plan for this now: levels have changed, what is left has, or it runs "
            "another version of accord. Nothing was charged. Open the table again, and plan again."
        )


STATUS: tuple[tuple[type[AccordError], int], ...] = (
    (SignInError, 401),
    (ThrottledError, 429),
    (NotThereError, 404),
    (QueueFullError, 429),
    (KeyConflictError, 409),
    (BudgetError, 409),
)
"""The first that fits; of what cannot be asked 422."""


def spoken(fault: AccordError, ledger: str) -> str:
    """What is said of a ledger, without its name and never with a place; of a source, that it cannot be read.

    >>> from accord.errors import LedgerError
    >>> spoken(LedgerError("the ledger /srv/a.db does not know 'x'."), "/srv/a.db")
    "the ledger does not know 'x'."
    >>> spoken(LedgerError("the ledger /srv/a.db has no key in /srv/a.db.key."), "/srv/a.db") == NOT_NOW
    True
    """
    text = str(fault).replace(f" {ledger}", "")
    if text == NOT_READABLE:
        return text
    if not isinstance(fault, LedgerError) or any(place in text for place in "/\\"):
        return NOT_NOW
    return NOT_NOW if any(word in text for word in (".key", ".head", "damaged")) else text
