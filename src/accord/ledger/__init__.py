"""Ledger: what everyone has left, over many releases, tables and processes.

    books.py     Ledger: register, remaining, reserve, settle; what a user calls
    reading.py   what is stored, checked: types, ranges, hashes, digests
    verifying.py what is wrong with a ledger
    head.py      how many entries there are, noted outside of the database
    cohorts.py   people with the same level, tables and history are one account; how a new version of a table divides them
    chain.py     the list of entries, each holding the hash of the one before; replaying it
    key.py       the key of the hash by which people are known
    store.py     SQLite and PostgreSQL: one writer at a time, numbered migrations

An account is a whole number of millionths. A release is charged before anything is read, in one transaction that checks every account; the
answer is booked afterwards. Whatever happens in between, the charge stands.
"""

from accord.ledger.books import Ledger, Registration

__all__ = ["Ledger", "Registration"]
