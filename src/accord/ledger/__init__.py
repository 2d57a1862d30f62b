"""Ledger: what everyone has left, over many releases, tables and processes.

    ledger.py       Ledger: what a user calls; each method is one call of a module below
    opening.py      open a ledger, or make a new one with its key
    books.py        Books: a ledger's store, key and head; transactions that miss no entry
    registering.py  make a table known, or a new version of it; its public groups
    policies.py     where a table's levels come from, and whether a new version says otherwise
    signing.py      who asked for something, and why
    requiring.py    that this has to be said with everything that is asked
    renewal.py      Renewal: how much of everyone's level comes back, and when
    renewing.py     let budgets be renewed; accounts as they stand, and as they are booked
    repeating.py    the same question again: its booked answer
    refusing.py     what was refused is counted, and booked once an hour at most
    recognising.py  which registered table a table is, and why it is none
    withdrawing.py  leave nothing to people in any table, until they are readmitted
    rotating.py     another key takes the place of the ledger's
    charging.py     reserve before anything is read, settle afterwards; what everyone has left
    shortage.py     what is said where somebody has too little left
    history.py      how everyone stands and what was done, for reading and for other programs
    person.py       everything that a ledger knows about one person, for that person
    verifying.py    what is wrong with a ledger
    backups.py      go on from an older copy
    accounts.py     what everyone has spent, and who is in which cohort, as they are stored
    validation.py   rows and entries as they are stored, checked: types, ranges, hashes
    cohorts.py      people with the same level, tables and history are one account; how a new version of a
                    table divides them
    chain.py        the list of entries, each holding the hash of the one before; replaying it
    head.py         how many entries there are, noted outside of the database
    heads.py        heads that are kept elsewhere: is each still in the chain?
    key.py          the key of the hash by which people are known
    store.py        one writer at a time, numbered migrations; what SQLite and PostgreSQL have in common
    alone.py        a lock on a file, so that one service serves a ledger
    sqlite.py       a ledger in a file
    postgres.py     a ledger on a PostgreSQL server

An account is a whole number of millionths. A release is charged before anything is read, in one transaction
that checks every account; the answer is booked afterwards. Whatever happens in between, the charge stands.

The jobs work on `Books`, which a Ledger has as `ledger.books`. What they know of a table is who is in it
(`accord.people.identity.Registrable`), and of a plan what it charges: no value ever comes here.
"""

from accord.ledger.ledger import Ledger
from accord.ledger.person import Person
from accord.ledger.registering import Registration
from accord.ledger.renewal import Renewal
from accord.ledger.rotating import Rotation
from accord.ledger.withdrawing import Withdrawal

__all__ = ["Ledger", "Person", "Registration", "Renewal", "Rotation", "Withdrawal"]
