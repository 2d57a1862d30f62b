"""A damaged ledger gives the right result all the same, or is refused in words: never another exception, and never more left than before."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import AccordError, BudgetError, LedgerError
from accord.ledger import Ledger, charging
from accord.ledger.chain import Entry
from accord.ledger.charging import Answered, Reservation, settle
from accord.ledger.head import HeadFile
from accord.ledger.recognising import recognised
from accord.ledger.validation import COLUMNS
from accord.report.ledgers import verdict_view
from accord.report.tables import to_text

releasing = import_module("accord.release.release")

QUERY = accord.mean("x", bounds=(0, 10), step=1)
DATA = Path(__file__).parent / "data"
PAGE = 4096
TRIALS = 50
MANY = 200


# ---- ledgers to damage -----------------------------------------------------------------------------------------------


def people(size=40, first=0):
    ids = np.arange(first, first + size)
    return {"who": ids, "x": ids % 11, "level": [0.2, 0.5, 1.0, 2.0] * (size // 4)}


class Life:
    """One ledger at three times of its life, each as the bytes of its files; and the tables that it knows."""

    def __init__(self, folder):
        path = folder / "accord.db"
        self.source = folder / "people.csv"
        columns = people()
        lines = zip(*columns.values(), strict=True)
        self.source.write_text("\n".join([",".join(columns), *(",".join(map(str, line)) for line in lines)]))
        self.people = accord.table(columns, epsilon="level", user="who")
        self.staff = accord.table(people(20, 30), epsilon="level", user="who")
        self.joined = accord.table(people(48), epsilon="level", user="who")
        ledger = Ledger(path)
        ledger.register(self.people, "people")
        self.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
        self.older = self.files(path)
        with closing(
            sqlite3.connect(path)
        ) as reader:  # as long as somebody looks at it, news stay in the -wal
            reader.execute("SELECT COUNT(*) FROM accord_entry").fetchall()
            ledger.register(self.staff, "staff")
            for table in (self.staff, self.people, self.people):
                table.release(QUERY, "minimum", 0.2, ledger=ledger, fresh=True)
            self.journaled = self.files(path)
        self.settled = self.files(path)
        assert "accord.db-wal" in self.journaled and "accord.db-wal" not in self.settled | self.older
        assert self.journaled["accord.db"] == self.older["accord.db"]
        self.reservation = Reservation(9, None, "", ledger.entries()[8].hash, 1)
        self.secrets = [self.settled["accord.db.key"].decode().strip(), *ledger.books.secret]

    def files(self, path):
        return {
            file.name: file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name)
        }

    @property
    def actions(self):
        """What anyone can do with a ledger, by name; in this order: those that read come first."""
        url, source, levels = "accord.db", str(self.source), ["--epsilon", "level", "--user", "who"]
        asked = [
            "mean",
            "x",
            "--bounds",
            "0",
            "10",
            "--mechanism",
            "minimum",
            "--share",
            "0.1",
            "--ledger",
            url,
        ]
        plan = self.people.plan(QUERY, "minimum", 0.1)
        return {
            "accounts": lambda ledger: ledger().accounts(),
            "remaining": lambda ledger: ledger().remaining(self.people),
            "entries": lambda ledger: ledger().entries(),
            "history": lambda ledger: ledger().history(),
            "export": lambda ledger: ledger().export(),
            "affordable": lambda ledger: ledger().affordable(self.people, plan),
            "verify": lambda ledger: ledger().verify(),
            "show": lambda _: obey("ledger", "show", url, "--json"),
            "log": lambda _: obey("ledger", "history", url, "--json"),
            "dump": lambda _: obey("ledger", "export", url),
            "check": lambda _: obey("ledger", "verify", url, "--json"),
            "plan": lambda _: obey("plan", source, *levels, *asked, "--json"),
            "init": lambda _: obey("ledger", "init", url, "--json"),
            "again": lambda ledger: ledger().register(self.staff, "staff"),
            "release": lambda ledger: booked(
                self.people.release(QUERY, "minimum", 0.1, ledger=ledger(), fresh=True)
            ),
            "rest": lambda ledger: booked(
                self.people.release(
                    accord.plan(ledger().remaining(self.people), QUERY, "minimum", 0.2),
                    ledger=ledger(),
                    fresh=True,
                )
            ),
            "ask": lambda _: booked(obey("release", source, *levels, *asked, "--json")),
            "register": lambda ledger: ledger().register(self.joined, "people"),
            "add": lambda _: obey("ledger", "register", url, "more", source, *levels, "--json"),
            "joined": lambda ledger: ledger().remaining(self.joined),
            "last": lambda ledger: booked(
                self.joined.release(QUERY, "minimum", 0.05, ledger=ledger(), fresh=True)
            ),
            "spent": lambda ledger: [
                (a.table, a.level, a.people, a.spent, a.left) for a in ledger().accounts()
            ],
        }

    def run(self, place, files, only=None):
        """What each action gives, on one ledger with these files: a result, or a LedgerError as its text."""
        for name, content in files.items():
            (place / name).write_bytes(content)
        outcomes = {}
        for name, action in self.actions.items():
            if only is None or name in only:
                outcomes[name] = self.outcome(
                    lambda action=action: action(lambda: Ledger("accord.db", create=False))
                )
        return outcomes

    def outcome(self, action):
        try:
            return "done", action()
        except AccordError as refusal:
            chained = refusal
            while chained is not None:
                assert isinstance(chained, AccordError), f"{chained!r} is chained to {refusal!r}"
                assert not any(secret in str(chained) for secret in self.secrets)
                chained = chained.__cause__ or chained.__context__
            return "refused", str(refusal)


def obey(*words):
    """What a command says; a refusal as the error that it was."""
    ran = CliRunner().invoke(main, [str(word) for word in words])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), repr(ran.exception)
    said = json.loads(ran.stdout)
    if "error" in said:
        raise AccordError(said["error"]["message"])
    return said


def booked(released):
    """What is certain about a release: everything but its value."""
    if isinstance(released, dict):
        return released["ledger"]["entry"]
    return released.charges, released.booked.entry


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    return Life(tmp_path_factory.mktemp("life"))


# ---- damage ----------------------------------------------------------------------------------------------------------


def flipped(dice, content, life):
    content = bytearray(content)
    for _ in range(dice.choice([1, 1, 1, 2, 8])):
        content[dice.randrange(len(content))] ^= dice.choice(
            [1, 2, 4, 8, 16, 32, 64, 128, dice.randrange(1, 256)]
        )
    return bytes(content)


def flipped_in_an_account(dice, content, life):
    """In a page that holds something, and there where it holds it."""
    filled = [at for at in range(len(content)) if content[at]]
    at = dice.choice(filled)
    return content[:at] + bytes([content[at] ^ dice.choice([1, 2, 4, 8, 16, 64, 128])]) + content[at + 1 :]


def zeroed(dice, content, life):
    page = dice.randrange(len(content) // PAGE)
    return content[: page * PAGE] + bytes(PAGE) + content[(page + 1) * PAGE :]


def truncated(dice, content, life):
    return content[: dice.choice([dice.randrange(len(content)), dice.randrange(len(content) // PAGE) * PAGE])]


def overwritten(dice, content, life):
    start = dice.randrange(len(content))
    piece = dice.randbytes(dice.randrange(1, 200))[: len(content) - start]
    return content[:start] + piece + content[start + len(piece) :]


def page_of_before(dice, content, life):
    """A page that was never written: the disk has the one of before."""
    old = life.older["accord.db"]
    page = dice.randrange(min(len(old), len(content)) // PAGE)
    piece = slice(page * PAGE, (page + 1) * PAGE)
    return content[: piece.start] + old[piece] + content[piece.stop :]


def swapped(dice, content, life):
    first, second = sorted(dice.sample(range(len(content) // PAGE), 2))
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    pages[first], pages[second] = pages[second], pages[first]
    return b"".join(pages)


KINDS = (flipped, flipped_in_an_account, zeroed, truncated, overwritten, page_of_before, swapped)


def damaged(seed, life):
    """The files of a ledger after something happened to one of them, and what happened."""
    dice = random.Random(seed)
    files = dict(life.settled if dice.random() < 0.6 else life.journaled)
    name = "accord.db-wal" if "accord.db-wal" in files and dice.random() < 0.8 else "accord.db"
    if name == "accord.db-wal" and dice.random() < 0.1:
        del files[name]
        return files, f"seed {seed}: the -wal is gone"
    if dice.random() < 0.04:
        return files | {"accord.db": life.older["accord.db"]}, f"seed {seed}: an older copy"
    kind = dice.choice(KINDS)
    return files | {name: kind(dice, files[name], life)}, f"seed {seed}: {name} {kind.__name__}"


def wrong(outcomes, right):
    """What a damaged ledger gave that a whole one would not, and that is no refusal."""
    complaints, refused = [], False
    for name, (ended, result) in outcomes.items():
        if ended == "refused":
            unknown = name in ("joined", "last") and refused and "is not as it was registered" in result
            refused = True
            if not unknown and not re.search(DAMAGE, result):
                complaints.append(f"{name} is refused for another reason: {result}")
        elif name in ("verify", "check"):
            problems = result["problems"] if name == "check" else result.problems
            if not problems and (refused or result != right[name][1]):
                complaints.append(f"{name} is content")
        elif unsealed(result) != unsealed(right[name][1]) and not (refused and name in WRITERS):
            complaints.append(f"{name} gives {str(result)[:300]}")
    ended, spent = outcomes["spent"]
    if ended == "done":
        most = {(table, level): at_most for table, level, _, (_, at_most), _ in spent}
        for account in right["accounts"][1]:
            if most.get((account.table, account.level), -1) < account.spent[1]:
                complaints.append(f"{account.table} at {account.level} has spent less than before")
    return complaints


def unsealed(result):
    """Without the seals of entries: whoever looks without the key cannot tell a wrong one, and `verify` does."""
    if isinstance(result, list) and result and isinstance(result[0], Entry):
        return [replace(entry, seal="") for entry in result]
    if isinstance(result, dict) and "entries" in result and isinstance(result["entries"], list):
        return result | {"entries": [entry | {"seal": ""} for entry in result["entries"]]}
    return result


WRITERS = ("init", "again", "release", "rest", "ask", "register", "add", "joined", "last", "spent")
DAMAGE = "|".join(
    (
        r"^the ledger '\S+' is damaged: .*Restore it from a backup, or run 'accord ledger verify' to see what is wrong\.",
        r"^the ledger '\S+' is not complete: .*Put its newest copy back; if there is none, see 'accord ledger accept-",
        r"^cannot use the ledger '\S+': .*[Rr]estore (it|this one) from a backup",
        r"^'\S+' is not a ledger of accord\. Name another",
        r"^there is no ledger '\S+'\. Check the name",
        r"^this is not the key that the ledger '\S+' was made with: .*Give the right one\.",
        r"^there is a key '\S+', but its ledger '\S+' is gone",
        r"^the ledger '\S+' is of version \d+, and this accord knows \d+\. Install a newer accord\.",
    )
)


LOOKS = ("accounts", "entries", "history", "export", "verify")


@pytest.fixture(scope="module")
def right(life, tmp_path_factory):
    """What actions give, one after the other, on a ledger that is whole."""

    @cache
    def expected(only):
        outcomes = []
        for files in (life.settled, life.journaled):
            place = tmp_path_factory.mktemp("right")
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(place)
                outcomes.append(life.run(place, files, only))
        assert outcomes[0] == outcomes[1] and {ended for ended, _ in outcomes[0].values()} == {"done"}
        assert outcomes[0]["verify"][1].problems == ()
        return outcomes[0]

    return expected


def tried(seeds, life, right, tmp_path, monkeypatch, all_actions):
    """What went wrong in trials with these seeds, and how many of them were refused something."""
    complaints, refused = [], 0
    for seed in seeds:
        files, damage = damaged(seed, life)
        place = tmp_path / str(seed)
        place.mkdir()
        monkeypatch.chdir(place)
        others = [name for name in life.actions if name not in (*LOOKS, "joined", "last", "spent")]
        only = tuple(life.actions) if all_actions else (*LOOKS, others[seed % len(others)], "spent")
        outcomes = life.run(place, files, only)
        refused += any(ended == "refused" for ended, _ in outcomes.values())
        complaints += [f"{damage}: {fault}" for fault in wrong(outcomes, right(only))]
        shutil.rmtree(place)
    return complaints, refused


def test_damage_is_refused_or_does_no_harm(life, right, tmp_path, monkeypatch):
    complaints, refused = tried(range(TRIALS), life, right, tmp_path, monkeypatch, False)
    assert complaints == []
    assert refused > TRIALS / 2, "most of it matters"


@pytest.mark.slow
def test_much_damage_is_refused_or_does_no_harm(life, right, tmp_path, monkeypatch):
    complaints, refused = tried(range(TRIALS, TRIALS + MANY), life, right, tmp_path, monkeypatch, True)
    assert complaints == []
    assert refused > MANY / 2


# ---- entries that are lost -------------------------------------------------------------------------------------------


def put(place, files):
    for old in place.iterdir():
        old.unlink()
    for name, content in files.items():
        (place / name).write_bytes(content)
    return Ledger(place / "accord.db", create=False)


def refused_everywhere(ledger, life, words):
    for call in (
        ledger.accounts,
        ledger.entries,
        ledger.history,
        ledger.export,
        lambda: ledger.remaining(life.people),
        lambda: ledger.register(life.joined, "people"),
        lambda: life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True),
    ):
        with pytest.raises(LedgerError, match=words):
            call()
    verdict = ledger.verify()
    assert len(verdict.problems) == 1 and re.search(words.split(": ")[-1], verdict.problems[0])


def noted(place):
    return int((place / "accord.db.head").read_text().split()[0])


@pytest.mark.parametrize("loss", ["no journal", "an older copy", "an older copy, settled"])
def test_lost_entries_are_noticed_and_a_backup_is_accepted_by_an_explicit_word(loss, life, tmp_path):
    older = life.older["accord.db"]
    files = {
        "no journal": {
            name: content for name, content in life.journaled.items() if not name.endswith("-wal")
        },
        "an older copy": {**life.journaled, "accord.db-wal": b"", "accord.db": older},
        "an older copy, settled": {**life.settled, "accord.db": older},
    }[loss]
    ledger = put(tmp_path, files)
    refused_everywhere(ledger, life, "is not complete: it has 3 entries, and had 10")
    for why in ("", " ", "two\nlines", None):
        with pytest.raises(LedgerError, match="say why entries are missing, in a line of text"):
            ledger.accept_backup(why)
    entry = ledger.accept_backup("the disk broke on 3 May")
    assert (entry.seq, entry.kind, entry.content["had"]) == (4, "restored", 10)
    assert entry.content["why"] == "the disk broke on 3 May" and noted(tmp_path) == 4
    assert ledger.verify().problems == () and [e.kind for e in ledger.entries()][-1] == "restored"
    life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    assert noted(tmp_path) == len(ledger.entries()) == 6
    assert ledger.verify().problems == () and len(ledger.history()) == 2
    with pytest.raises(LedgerError, match=r"nothing is missing in the ledger .*: there is nothing to accept"):
        ledger.accept_backup("again")
    # whoever now puts the lost one back brings another history
    (tmp_path / "accord.db").write_bytes(life.settled["accord.db"])
    refused_everywhere(ledger, life, "is not complete: its entry 6 is another than it was")


@pytest.mark.parametrize("others", [False, True])
def test_a_release_whose_charge_an_older_copy_forgot_gives_no_answer(others, life, tmp_path, monkeypatch):
    """Also where the copy has gone on meanwhile, and somebody else's reservation has its number."""
    ledger = put(tmp_path, life.older)
    read = releasing.carry_out

    def meanwhile(*args, **more):
        answer = read(*args, **more)
        put(tmp_path, life.older | {"accord.db.head": (tmp_path / "accord.db.head").read_bytes()})
        other = Ledger(tmp_path / "accord.db")
        other.accept_backup("a new disk")
        if others:
            charging.reserve(other.books, life.people, life.people.plan(QUERY, "minimum", 0.1))
        return answer

    if others:  # so that this one's is the fifth entry, too
        ledger.register(life.staff, "staff")
    monkeypatch.setattr(releasing, "carry_out", meanwhile)
    with pytest.raises(
        LedgerError, match=r"does not have the reservation of this release any more.*not given out"
    ):
        life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    assert ledger.verify().problems == ()
    assert [step["state"] for step in ledger.history()][1:] == ["no answer"] * others


def test_the_newest_copy_put_back_is_as_good_as_ever(life, tmp_path):
    put(tmp_path, {**life.settled, "accord.db": life.older["accord.db"]})
    (tmp_path / "accord.db").write_bytes(life.settled["accord.db"])
    ledger = Ledger(tmp_path / "accord.db")
    assert ledger.verify().problems == () and len(ledger.entries()) == 10
    life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)


def test_a_backup_that_is_damaged_is_not_accepted(life, tmp_path):
    ledger = put(tmp_path, {**life.settled, "accord.db": life.older["accord.db"]})
    with closing(sqlite3.connect(tmp_path / "accord.db")) as connection, connection:
        connection.execute("UPDATE accord_cohort SET spent = spent - 1")
    with pytest.raises(
        LedgerError, match=r"is damaged, and not only older: the account of cohort 1 is not .*Restore another"
    ):
        ledger.accept_backup("it is older")
    assert len(ledger.verify().problems) > 2 and noted(tmp_path) == 10


def test_accepting_on_the_command_line(life, tmp_path, monkeypatch):
    put(tmp_path, {**life.settled, "accord.db": life.older["accord.db"]})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AccordError, match=r"it has 3 entries, and had 10.*see 'accord ledger accept-backup'"):
        obey("ledger", "show", "accord.db", "--json")
    assert obey("ledger", "verify", "accord.db", "--json")["problems"] == ["it has 3 entries, and had 10"]
    assert CliRunner().invoke(main, ["ledger", "accept-backup", "accord.db"]).exit_code == 2, (
        "it takes a reason"
    )
    ran = CliRunner().invoke(main, ["ledger", "accept-backup", "accord.db", "--why", "a new disk"])
    assert (ran.exit_code, ran.stdout) == (
        0,
        "accepted, as entry 4. Whatever was spent after this copy was made is forgotten.\n",
    )
    assert obey("ledger", "verify", "accord.db", "--json")["problems"] == []
    with pytest.raises(AccordError, match="there is nothing to accept"):
        obey("ledger", "accept-backup", "accord.db", "--why", "again", "--json")


@pytest.mark.parametrize("damage", ["gone", "empty", "text", "bytes", "folder"])
def test_a_head_that_is_gone_or_damaged_is_noticed(damage, life, tmp_path):
    ledger = put(tmp_path, life.settled)
    head = tmp_path / "accord.db.head"
    head.unlink()
    match damage:
        case "empty":
            head.touch()
        case "text":
            head.write_text("10 entries\n")
        case "bytes":
            head.write_bytes(b"\xff" * 132)
        case "folder":
            head.mkdir()
    words = f"which says how many entries there are, {'is gone' if damage == 'gone' else 'cannot be read'}"
    refused_everywhere(ledger, life, words)
    if damage == "folder":
        head.rmdir()
    assert ledger.accept_backup("somebody tidied up").content["had"] is None
    assert noted(tmp_path) == 11 and ledger.verify().problems == ()
    assert ledger.verify().restored == 1
    text = " ".join(to_text(verdict_view(ledger.verify())).split())
    assert "an older copy was accepted 1 times, and what was spent after it was made is forgotten" in text


def test_who_has_no_key_cannot_make_a_head_for_fewer_entries(life, tmp_path):
    ledger = put(tmp_path, {**life.settled, "accord.db": life.older["accord.db"]})
    newest = Ledger(tmp_path / "accord.db")
    with newest.books.store.read() as db:
        seq, hash_, seal = db.rows("SELECT seq, hash, seal FROM accord_entry ORDER BY seq DESC LIMIT 1")[0]
    (tmp_path / "accord.db.head").write_text(f"{seq} {hash_} {seal}\n")
    with pytest.raises(
        LedgerError,
        match=r"accord\.db\.head', which says how many entries there are, was not written with the ledger's key, and spendings",
    ):
        ledger.remaining(life.people)
    assert len(ledger.verify().problems) == 1
    (tmp_path / "accord.db.head").write_bytes(life.older["accord.db.head"])
    assert ledger.verify().problems == (), "an old head with an old database: nobody can tell"


def test_a_head_that_was_not_yet_written_is_no_loss(life, tmp_path):
    """As a crash leaves it, between the end of a transaction and its note."""
    ledger = put(tmp_path, {**life.settled, "accord.db.head": life.older["accord.db.head"]})
    assert noted(tmp_path) == 3 and ledger.verify().problems == () and len(ledger.entries()) == 10
    life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    assert noted(tmp_path) == 12


def test_a_head_that_cannot_be_written_is_told_after_the_fact(life, tmp_path, monkeypatch):
    ledger = put(tmp_path, life.settled)

    def full(**_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkstemp", full)
        with pytest.raises(
            LedgerError, match=r"cannot write .*accord\.db\.head'.*Make room.*is booked all the same\.$"
        ):
            life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    assert [entry.kind for entry in ledger.entries()][-1] == "reserve" and ledger.verify().open == 1
    life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    assert noted(tmp_path) == len(ledger.entries()) == 13


def test_a_head_follows_many_writers(life, tmp_path):
    put(tmp_path, life.settled)

    def release(_):
        life.people.release(QUERY, "minimum", 0.001, ledger=Ledger(tmp_path / "accord.db"), fresh=True)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(release, range(18)))
    assert noted(tmp_path) == len(Ledger(tmp_path / "accord.db").entries()) == 46
    names = {"accord.db", "accord.db-wal", "accord.db-shm", "accord.db.head", "accord.db.key"}
    assert {path.name for path in tmp_path.iterdir()} <= names, "no draft is left behind"


def test_a_head_is_beside_the_file_and_seen_by_those_who_see_it(life, tmp_path):
    (tmp_path / "real").mkdir()
    put(tmp_path / "real", life.settled)
    (tmp_path / "real" / "accord.db").chmod(0o640)
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "accord.db")
    key = life.settled["accord.db.key"].decode().strip()
    life.people.release(QUERY, "minimum", 0.1, ledger=Ledger(tmp_path / "link.db", key), fresh=True)
    assert noted(tmp_path / "real") == 12 and not (tmp_path / "link.db.head").exists()
    assert stat.S_IMODE((tmp_path / "real" / "accord.db.head").stat().st_mode) == 0o640
    assert Ledger(tmp_path / "real" / "accord.db").verify().problems == ()


def test_no_new_ledger_is_made_where_one_was_lost(life, tmp_path):
    put(tmp_path, life.settled)
    (tmp_path / "accord.db").unlink()
    with pytest.raises(LedgerError, match=r"there is a key .*, but its ledger .* is gone"):
        Ledger(tmp_path / "accord.db")
    (tmp_path / "accord.db.key").unlink()
    for key in (None, "another key, long enough"):
        with pytest.raises(
            LedgerError, match=r"there is the head .*, but its ledger .* is gone.*Restore the ledger; or"
        ):
            Ledger(tmp_path / "accord.db", key)
    assert not (tmp_path / "accord.db.key.new").exists()
    (tmp_path / "accord.db.head").unlink()
    assert Ledger(tmp_path / "accord.db").verify().problems == () and noted(tmp_path) == 0


def test_a_ledger_of_an_older_version_has_a_head_also_if_the_first_release_is_refused(tmp_path):
    """The file of the transaction that failed is there, and the database does not yet say so."""
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
    ledger, head = Ledger(tmp_path / "v1.db"), tmp_path / "v1.db.head"
    table = accord.table({"id": [1, 2, 9], "x": [1.0, 2.0, 3.0]}, epsilon=2.0, user="id")
    with pytest.raises(BudgetError):
        table.release(QUERY, "minimum", 1.0, ledger=ledger, fresh=True)
    assert head.exists() and ledger.verify().problems == ()
    for _ in range(2):
        table.release(QUERY, "minimum", 0.001, ledger=ledger, fresh=True)
    assert int(head.read_text().split()[0]) == len(ledger.entries()) and ledger.verify().problems == ()
    head.unlink()
    with pytest.raises(LedgerError, match="which says how many entries there are, is gone"):
        table.release(QUERY, "minimum", 0.001, ledger=ledger, fresh=True)


def test_a_ledger_of_an_older_version_whose_head_was_never_promised_goes_on(tmp_path):
    """As earlier versions left it, if the first release was refused."""
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
    ledger, head = Ledger(tmp_path / "v1.db"), tmp_path / "v1.db.head"
    table = accord.table({"id": [1, 2, 9], "x": [1.0, 2.0, 3.0]}, epsilon=2.0, user="id")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeadFile, "is_due", lambda *_: False)
        table.release(QUERY, "minimum", 0.001, ledger=ledger, fresh=True)
    head.unlink()
    table.release(QUERY, "minimum", 0.001, ledger=ledger, fresh=True)
    assert int(head.read_text().split()[0]) == len(ledger.entries()) and ledger.verify().problems == ()


def test_a_ledger_of_an_older_version_gets_a_head_when_it_is_written_to(tmp_path):
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
    ledger = Ledger(tmp_path / "v1.db")
    before, head = len(ledger.entries()), tmp_path / "v1.db.head"
    assert ledger.verify().problems == () and ledger.accounts() and not head.exists(), (
        "looking changes nothing"
    )
    with pytest.raises(LedgerError, match="there is nothing to accept"):
        ledger.accept_backup("it has no head")
    table = accord.table({"id": [1, 2, 9], "x": [1.0, 2.0, 3.0]}, epsilon=2.0, user="id")
    table.release(QUERY, "minimum", 0.001, ledger=ledger, fresh=True)
    assert int(head.read_text().split()[0]) == before + 2 == len(ledger.entries())
    assert (
        "accounts" not in ledger.entries()[before - 1].content
        and "accounts" in ledger.entries()[before].content
    )
    head.unlink()
    with pytest.raises(LedgerError, match="which says how many entries there are, is gone"):
        Ledger(tmp_path / "v1.db").accounts()


def test_accounts_of_an_older_version_are_checked_as_well(tmp_path):
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
    with closing(sqlite3.connect(tmp_path / "v1.db")) as connection, connection:
        connection.execute("UPDATE accord_cohort SET spent = spent - 1 WHERE spent > 0")
    for call in (Ledger(tmp_path / "v1.db").accounts, Ledger(tmp_path / "v1.db").export):
        with pytest.raises(LedgerError, match="is damaged: the accounts are not what the entries left"):
            call()


# ---- nonsense --------------------------------------------------------------------------------------------------------


def looked_at(life, path):
    """Everything that is quickly done, each of which gives a result or a LedgerError."""
    key = life.settled["accord.db.key"].decode().strip()
    for act in (
        lambda ledger: ledger.accounts(),
        lambda ledger: ledger.history(),
        lambda ledger: ledger.export(),
        lambda ledger: recognised(ledger.books, life.people),
        lambda ledger: ledger.verify(),
        lambda ledger: settle(ledger.books, life.reservation, Answered([], [])),
        lambda ledger: ledger.person(35),
        lambda ledger: ledger.accept_backup("a trial"),
    ):
        yield life.outcome(lambda act=act: act(Ledger(path, key, create=False)))


@pytest.mark.parametrize("nonsense", [None, "nonsense", 2**62, 0.5, b"\xff\x00"])
def test_nonsense_in_any_column_is_a_refusal(nonsense, life, tmp_path, monkeypatch):
    """Of another kind than it should be: SQLite does not mind."""
    fingerprint = life.people.identity.fingerprint((life.secrets[1],))
    monkeypatch.setattr(
        life.people.identity, "fingerprint", lambda _: fingerprint
    )  # which takes longer than all the rest
    for table, columns in COLUMNS.items():
        for column in columns:
            put(tmp_path, life.settled)
            with closing(sqlite3.connect(tmp_path / "accord.db", isolation_level=None)) as connection:
                connection.execute("PRAGMA ignore_check_constraints = ON")
                with suppress(sqlite3.IntegrityError):  # no nonsense to SQLite, for once
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT MAX(rowid) FROM {table})", [nonsense])  # fmt: skip
            outcomes = list(looked_at(life, tmp_path / "accord.db"))
            assert len(outcomes) == 8


ENTRY_KINDS = [
    "register",
    "reserve",
    "release",
    "restored",
    "withdraw",
    "readmit",
    "policy",
    "person",
    "rotate",
    "else",
]


@pytest.mark.parametrize("kind", ENTRY_KINDS)
def test_entries_that_somebody_else_made_up_are_no_surprise(kind, life, tmp_path):
    """With right hashes, and without a head: only the seal tells."""
    bodies = [
        "{}",
        "[]",
        "null",
        "1e999",
        "[" * 100_000,
        '{"reserve":[]}',
        '{"charges":[[{},1]]}',
        '{"reserve":7.5}',
    ]
    bodies += [
        '{"accounts":1,"digest":[]}',
        '{"id":1e999,"moves":[]}',
        '{"id":1,"moves":[[1,"1",1,"x"]]}',
        '{"id":[],"tables":7,"require":[{}]}',
        '{"tables":[[]],"require":7}',
        "x",
        "9" * 9999,
    ]
    for body in bodies:
        put(tmp_path, life.settled)
        (tmp_path / "accord.db.head").unlink()
        with closing(sqlite3.connect(tmp_path / "accord.db", isolation_level=None)) as connection:
            connection.execute("DELETE FROM accord_meta WHERE name = 'head'")
            last = connection.execute("SELECT hash FROM accord_entry ORDER BY seq DESC LIMIT 1").fetchone()[0]
            text = "".join(f"{part}\n" for part in (last, 11, "now", kind, body))
            row = [11, "now", kind, body, last, hashlib.sha256(text.encode()).hexdigest(), "0" * 64]
            connection.execute("INSERT INTO accord_entry VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        ledger = Ledger(tmp_path / "accord.db")
        assert "entry 11 was not written with the ledger's key" in ledger.verify().problems
        assert len(list(looked_at(life, tmp_path / "accord.db"))) == 8


def test_a_damaged_index_does_not_charge_somebody_else(life, tmp_path):
    """The rows are as they should be, but looking one up leads to another."""
    ledger = put(tmp_path, life.settled)
    with closing(sqlite3.connect(tmp_path / "accord.db", isolation_level=None)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_accord_cohort_1'").fetchone()  # fmt: skip
    whole = bytearray((tmp_path / "accord.db").read_bytes())
    page = slice((root - 1) * PAGE, root * PAGE)
    cells = [int.from_bytes(whole[page][8 + 2 * n : 10 + 2 * n], "big") for n in range(2, 4)]
    first, second = (
        page.start + at + whole[page.start + at] for at in cells
    )  # the last byte of an entry is the row's number
    whole[first], whole[second] = whole[second], whole[first]
    (tmp_path / "accord.db").write_bytes(bytes(whole))
    with pytest.raises(LedgerError, match=r"is damaged|cannot use the ledger"):
        life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    assert ledger.verify().problems


# ---- a server --------------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_accounts_that_were_changed_on_a_server_are_refused(life, postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(postgres_url, "a key that only tests use")
    ledger.register(life.people, "people")
    life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    with pytest.raises(
        LedgerError, match="is kept by a server, and nothing beside it says how many entries it has"
    ):
        ledger.accept_backup("it is older")
    with ledger.books.store.write() as db:
        db.run("UPDATE accord_cohort SET spent = spent - 1")
    for call in (
        ledger.accounts,
        lambda: life.people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True),
    ):
        with pytest.raises(LedgerError, match="is damaged: the accounts are not what the entries left"):
            call()
    with ledger.books.store.write() as db:
        db.run("UPDATE accord_cohort SET spent = spent + 1")
        db.run("UPDATE accord_people SET cohorts = hashes")
    ledger.remaining(life.people)
    with pytest.raises(LedgerError, match="is damaged: who is in which cohort is not what was registered"):
        ledger.register(life.joined, "people")
    assert list(tmp_path.iterdir()) == []


def test_a_head_that_somebody_made_up_is_not_believed(life, tmp_path):
    """Neither for fewer entries than there are nor for more: what it says is no fact."""
    ledger = put(tmp_path, life.settled)
    (tmp_path / "accord.db.head").write_text(f"99 {'0' * 64} {'0' * 64}\n")
    (problem,) = ledger.verify().problems
    assert "was not written with the ledger's key" in problem and "99" not in problem
