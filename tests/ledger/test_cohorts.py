"""The parts of a ledger, one by one: cohorts against a dictionary of people, the replay of a chain, and the key."""

import hashlib
import hmac
import json
import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accord
from accord.budget import MICRO, PUBLIC, level_text
from accord.errors import LedgerError
from accord.ledger import Ledger
from accord.ledger import key as keys
from accord.ledger.chain import (
    START,
    Replay,
    list_columns,
    list_text,
    next_entry,
    read_level_text,
    saturating_add,
)
from accord.ledger.cohorts import (
    FORGOTTEN,
    KEPT,
    LEFT,
    NO_COHORTS,
    NONE,
    Assignment,
    Leaving,
    Moves,
    assign,
    factorize,
    remaining_of,
    union,
)

NOBODY = np.zeros(0, dtype=np.int64)
LEVELS = [0, 1, 3, 300_000, MICRO, PUBLIC]
amounts = st.one_of(st.sampled_from(LEVELS), st.integers(0, 10**12))


def ints(values):
    return np.array(list(values), dtype=np.int64)


@dataclass(frozen=True)
class Cohort:
    """One account, as a plain object: what the columns of `Cohorts` must be equal to."""

    spent: int
    levels: tuple[tuple[int, int], ...]
    """(table, level there), by table."""

    @property
    def level(self):
        return min((level for _, level in self.levels), default=0)

    @property
    def allowed(self):
        return max(self.level, self.spent)

    def moved(self, table, level, keeps):
        levels = dict(self.levels)
        here = levels.pop(table, levels.pop(LEFT + table, None))
        levels.pop(LEFT + table, None)
        if level is not None:
            levels[table] = level
        elif keeps and here is not None:
            levels[LEFT + table] = here
        return Cohort(self.spent, tuple(sorted(levels.items())))


def objects(cohorts):
    """Columns as plain objects, by number."""
    levels = {}
    for table, number, level in zip(*(column.tolist() for column in cohorts.members.columns), strict=True):
        levels.setdefault(number, []).append((table, level))
    spendings = dict(zip(cohorts.id.tolist(), cohorts.spent.tolist(), strict=True))
    accounts = {number: Cohort(spent, tuple(levels.pop(number, ()))) for number, spent in spendings.items()}
    assert not levels and cohorts.level.tolist() == [c.level for c in accounts.values()]
    assert (np.diff(cohorts.id) > 0).all()
    assert np.array_equal(np.lexsort(cohorts.members.columns[1::-1]), np.arange(cohorts.members.table.size))
    return accounts


def registered_by_hand(cohorts, of, table, members, keeps=False):
    """`assign`, person by person: numbers of cohorts, moves and accounts."""
    cohorts, of, moves = dict(cohorts), dict(of), Counter()
    numbers, everyone = {cohort: number for number, cohort in cohorts.items()}, of.keys() | members.keys()
    pair_of = {h: (of.get(h), members.get(h)) for h in everyone}
    target, unused = {}, max(cohorts, default=0)
    for source, level in sorted(
        set(pair_of.values()), key=lambda pair: [NONE if x is None else x for x in pair]
    ):
        cohort = (Cohort(0, ()) if source is None else cohorts[source]).moved(table, level, keeps)
        if cohort not in numbers:
            numbers[cohort] = unused = unused + 1
            cohorts[numbers[cohort]] = cohort
        target[source, level] = numbers[cohort]
    for pair in pair_of.values():
        moves[(*pair, target[pair])] += 1
    now = {h: target[pair] for h, pair in pair_of.items()}
    inhabited = set(now.values())
    return {n: c if n in inhabited else Cohort(c.spent, ()) for n, c in cohorts.items()}, now, moves


def register(before, table, members, leaving=FORGOTTEN):
    """`assign` for a dictionary of hashes and levels."""
    hashes = sorted(members)
    levels = ints(members[h] for h in hashes)
    return assign(before.hashes, before.cohort_of, before.cohorts, table, ints(hashes), levels, leaving)


def counted(moves):
    columns = (column.tolist() for column in moves.columns)
    none = {NONE: None}
    return Counter({(none.get(s, s), none.get(x, x), t): n for s, x, t, n in zip(*columns, strict=True)})


EMPTY = Assignment(NOBODY, NOBODY, Moves(*[NOBODY] * 4), NO_COHORTS)
LONG = "sixteen letters."
SEAL = keys.Key(LONG).seal


def about(table):
    """The rest of what a registration holds."""
    names = {"table": f"t{table}", "version": 1, "fingerprint": "f", "tiers": "{}", "digest": "d"}
    return names | {"id": table, "key": "k", "neighbors": "replace"}


# --- cohorts ----------------------------------------------------------------------------------------------------------------


def test_the_lowest_level_counts_and_what_was_spent_stays_allowed():
    assignment = register(register(EMPTY, 2, {1: 500_000}), 1, {1: MICRO})
    (number,) = set(assignment.cohort_of.tolist())
    assert objects(assignment.cohorts)[number] == Cohort(0, ((1, MICRO), (2, 500_000))), (
        "by table, whatever came first"
    )
    spent = np.where(assignment.cohorts.id == number, 300_000, 0)
    assignment = replace(assignment, cohorts=replace(assignment.cohorts, spent=spent))
    lowered = register(assignment, 1, {1: 100_000})
    at = lowered.cohorts.id == lowered.cohort_of[0]
    account = (lowered.cohorts.level[at], lowered.cohorts.allowed[at], lowered.cohorts.spent[at])
    assert [x.tolist() for x in account] == [[100_000], [300_000], [300_000]]
    gone = register(register(assignment, 1, {}), 2, {})
    at = gone.cohorts.id == gone.cohort_of[0]
    account = (gone.cohorts.level[at], gone.cohorts.allowed[at], gone.cohorts.spent[at])
    assert [x.tolist() for x in account] == [[0], [300_000], [300_000]]


def test_cohorts_that_differ_in_one_number_are_not_equal():
    one = register(register(EMPTY, 2, {1: 500_000}), 1, {1: MICRO, 2: 3}).cohorts
    assert one.equal(replace(one))
    for name in ("id", "level", "allowed", "spent", "people"):
        other = getattr(one, name).copy()
        other[-1] += 1
        assert not one.equal(replace(one, **{name: other})), name
    for name in ("table", "cohort", "level"):
        other = getattr(one.members, name).copy()
        other[0] += 1
        assert not one.equal(replace(one, members=replace(one.members, **{name: other}))), name


def test_who_is_new_joins_those_who_have_spent_nothing():
    """Else every version of a table would add cohorts, and the entries of older ones would not be followed."""
    first = register(EMPTY, 1, {1: MICRO, 2: 3})
    second = register(first, 1, {1: MICRO, 2: 3, 4: MICRO})
    assert second.cohorts.id.tolist() == first.cohorts.id.tolist()
    assert second.cohort_of[0] == second.cohort_of[2] == first.cohort_of[0] != first.cohort_of[1]


@pytest.mark.parametrize("numbers", [[1, 9], [9], [0, 1], [0], [1, 2, 9]])
def test_a_cohort_that_does_not_exist_is_not_taken_for_another(numbers):
    cohorts = register(EMPTY, 1, {1: MICRO, 2: 3}).cohorts
    assert cohorts.id.tolist() == [1, 2] and cohorts.positions(ints([2, 1])).tolist() == [1, 0]
    with pytest.raises(KeyError, match="cohort"):
        cohorts.positions(ints(numbers))


@given(st.lists(st.tuples(amounts, amounts), max_size=5))
def test_what_is_left_is_never_negative_and_infinite_for_public_people(pairs):
    level, spent = ints(level for level, _ in pairs), ints(spent for _, spent in pairs)
    remaining = remaining_of(level, np.maximum(level, spent), spent)
    assert remaining.tolist() == [
        PUBLIC if level == PUBLIC else max(0, level - spent) for level, spent in pairs
    ]


@given(st.lists(st.integers(-3, 3)))
def test_places_are_where_values_stand(values):
    distinct, where = factorize(ints(values))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[where].tolist() == values


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_aunion_has_everyone_once(first, other):
    assert union(ints(sorted(first)), ints(sorted(other))).tolist() == sorted(first | other)


people = st.dictionaries(st.integers(0, 9), st.sampled_from(LEVELS), max_size=8)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.integers(1, 3), people),
        st.tuples(st.just("charge"), st.integers(1, 3), st.sampled_from([1, 7, 300_000, PUBLIC])),
    ),
    max_size=9,
)


@given(steps, st.booleans())
def test_everyone_is_in_the_cohort_of_their_own_levels_and_spendings(history, keeps):
    """Against a dictionary of people: registrations and charges in any order; and replaying the chain gives the same accounts."""
    assignment, spent, levels, entries, hand, of = EMPTY, {}, {}, [], {}, {}
    for kind, table, change in history:
        if kind == "charge":
            charged = [
                n for n, c in hand.items() if table in dict(c.levels) and change <= max(0, c.level - c.spent)
            ]
            for person, number in of.items():
                spent[person] = min(PUBLIC, spent[person] + change) if number in charged else spent[person]
            hand = {
                n: Cohort(min(PUBLIC, c.spent + change), c.levels) if n in charged else c
                for n, c in hand.items()
            }
            more = np.where(np.isin(assignment.cohorts.id, charged), change, 0)
            assignment = replace(
                assignment,
                cohorts=replace(assignment.cohorts, spent=saturating_add(assignment.cohorts.spent, more)),
            )
            content = {"charges": [[n, level_text(change)] for n in charged]}
            entries.append(next_entry(entries[-1] if entries else None, "reserve", content, SEAL))
            continue
        before = assignment
        assignment = register(before, table, change, KEPT if keeps else FORGOTTEN)
        hand, of, moves = registered_by_hand(hand, of, table, change, keeps)
        assert objects(assignment.cohorts) == hand and counted(assignment.moves) == moves
        assert dict(zip(assignment.hashes.tolist(), assignment.cohort_of.tolist(), strict=True)) == of
        for person in [*levels, *change]:
            before = levels.get(person, {})
            last = {t: x for t, x in before.items() if t in (table, LEFT + table)}
            levels[person] = {t: x for t, x in before.items() if t not in last}
            if person in change:
                levels[person][table] = change[person]
            elif keeps and last:
                levels[person][LEFT + table] = min(last.values())
        spent = dict.fromkeys(levels, 0) | spent

        # everyone who was ever there, each with the account that a dictionary would have
        assert assignment.hashes.tolist() == sorted(levels)
        wanted = {p: Cohort(spent[p], tuple(sorted(levels[p].items()))) for p in levels}
        assert {p: hand[of[p]] for p in levels} == wanted
        # people who are alike share one number
        assert len(set(of.values())) == len(set(wanted.values()))
        assert assignment.cohorts.people.tolist() == [
            list(of.values()).count(n) for n in assignment.cohorts.id.tolist()
        ]
        assert assignment.cohorts.allowed.tolist() == [c.allowed for c in hand.values()]
        content = about(table) | {
            "people": len(change),
            "moves": list_text("moves", assignment.moves.columns),
        }
        content |= {"leaving": "kept"} if keeps else {}
        entries.append(next_entry(entries[-1] if entries else None, "register", content, SEAL))
    replay = Replay().run(entries, SEAL)
    assert replay.problems == [] and replay.entries == len(entries)
    assert objects(replay.cohorts) == hand
    assert replay.cohorts.people.tolist() == assignment.cohorts.people.tolist()
    assert replay.cohorts.allowed.tolist() == assignment.cohorts.allowed.tolist()


@pytest.mark.parametrize("people", [4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_thousands_of_people_of_many_levels_are_where_a_dictionary_has_them(people):
    """Through three tables and charges; each account, each number and each move, and what the chain says of it."""
    draw = np.random.default_rng(1)
    assignment, hand, of, entries = EMPTY, {}, {}, []
    for step, table in enumerate((1, 2, 3, 1)):
        here = draw.permutation(people + people // 4)[: people - people // 20 * step]
        level = draw.integers(0, 30_000, here.size)
        level[draw.random(here.size) < 0.01] = PUBLIC
        members = dict(zip(here.tolist(), level.tolist(), strict=True))
        assignment = register(assignment, table, members)
        hand, of, moves = registered_by_hand(hand, of, table, members)
        assert objects(assignment.cohorts) == hand and counted(assignment.moves) == moves
        assert dict(zip(assignment.hashes.tolist(), assignment.cohort_of.tolist(), strict=True)) == of
        content = about(table) | {
            "people": len(members),
            "moves": list_text("moves", assignment.moves.columns),
        }
        entries.append(next_entry(entries[-1] if entries else None, "register", content, SEAL))

        at = assignment.cohorts.positions(
            assignment.cohorts.members.cohort[assignment.cohorts.members.rows_of(table)]
        )
        remaining = remaining_of(
            assignment.cohorts.level, assignment.cohorts.allowed, assignment.cohorts.spent
        )[at]
        charge = np.minimum(remaining, draw.integers(0, 4_000, at.size))
        at, charge = at[charge > 0], charge[charge > 0]
        spent = assignment.cohorts.spent.copy()
        spent[at] += charge
        for number, more in zip(assignment.cohorts.id[at].tolist(), charge.tolist(), strict=True):
            hand[number] = Cohort(hand[number].spent + more, hand[number].levels)
        assignment = replace(assignment, cohorts=replace(assignment.cohorts, spent=spent))
        assert objects(assignment.cohorts) == hand
        content = {"charges": list_text("charges", (assignment.cohorts.id[at], charge))}
        entries.append(next_entry(entries[-1], "reserve", content, SEAL))
    replay = Replay().run(entries, SEAL)
    assert replay.problems == [] and replay.cohorts.equal(assignment.cohorts)
    excessive = replace(entries[-1], body=entries[-1].body.replace('"0.00', '"9.00'))
    limited = np.count_nonzero(assignment.cohorts.level[at] != PUBLIC)
    assert len(Replay().run([*entries[:-1], excessive], None).problems) == 1 + limited


def test_an_empty_table_and_a_table_that_everyone_leaves():
    nothing = register(EMPTY, 1, {})
    assert (nothing.hashes.size, nothing.moves.source.size, objects(nothing.cohorts)) == (0, 0, {})
    emptied = register(register(EMPTY, 1, {5: MICRO, 3: 0}), 1, {})
    assert emptied.hashes.tolist() == [3, 5]
    assert {objects(emptied.cohorts)[n] for n in emptied.cohort_of.tolist()} == {Cohort(0, ())}


def test_who_leaves_a_table_keeps_its_level_until_they_come_back():
    both = register(register(EMPTY, 1, {5: 100_000}, KEPT), 2, {5: MICRO}, KEPT)
    gone = register(both, 1, {}, KEPT)
    for left in (gone, register(gone, 1, {}, KEPT), register(gone, 2, {5: MICRO, 6: MICRO}, KEPT)):
        (number,) = left.cohort_of[left.hashes == 5].tolist()
        assert objects(left.cohorts)[number] == Cohort(0, ((2, MICRO), (LEFT + 1, 100_000)))
        assert objects(left.cohorts)[number].level == 100_000
    back = register(gone, 1, {5: 300_000}, KEPT)
    assert objects(back.cohorts)[back.cohort_of[0]] == Cohort(0, ((1, 300_000), (2, MICRO)))


def test_who_leaves_a_public_group_keeps_the_level_that_they_have_in_its_table():
    group = Leaving(True, parent=1)
    one = register(register(EMPTY, 1, {5: MICRO}, KEPT), 2, {5: MICRO, 6: 3}, group)
    left = register(one, 2, {}, group)
    of = dict(zip(left.hashes.tolist(), left.cohort_of.tolist(), strict=True))
    assert objects(left.cohorts)[of[5]] == Cohort(0, ((1, MICRO),))
    assert objects(left.cohorts)[of[6]] == Cohort(0, ((LEFT + 2, 3),)), (
        "who is not in the table is no exception"
    )


def test_swapped_levels_are_swapped_cohorts():
    before = register(EMPTY, 1, {1: 10, 2: 20})
    after = register(before, 1, {1: 20, 2: 10})
    assert after.cohort_of.tolist() == before.cohort_of.tolist()[::-1]
    assert after.cohorts.equal(before.cohorts)


# --- the chain --------------------------------------------------------------------------------------------------------------


@given(amounts)
def test_amounts_are_read_back_from_text(micro):
    assert read_level_text(level_text(micro)) == micro


@given(amounts, amounts)
def test_infinity_stays(spent, charge):
    wanted, total = (
        PUBLIC if PUBLIC in (spent, charge) else spent + charge,
        saturating_add(ints([spent]), ints([charge])),
    )
    assert total.tolist() == [min(wanted, PUBLIC)]
    assert saturating_add(total, ints([0])).tolist() == total.tolist()


def test_an_entry_is_hashed_as_documented():
    first = next_entry(None, "failed", {"reserve": 1, "word": "ä"}, SEAL)
    second = next_entry(first, "failed", {}, str.upper)
    assert (first.seq, first.previous, first.body) == (1, "0" * 64, '{"reserve":1,"word":"ä"}')
    assert (second.seq, second.previous) == (2, first.hash)
    text = f"{second.previous}\n2\n{second.time}\nfailed\n{{}}\n"
    assert second.hash == hashlib.sha256(text.encode()).hexdigest()
    assert second.seal == second.hash.upper(), "the seal is of the hash"
    derived = hashlib.sha256(b"accord seal 1" + LONG.encode()).digest()
    assert first.seal == hmac.new(derived, first.hash.encode(), "sha256").hexdigest()
    assert json.loads(first.body) == first.content


def chained(*contents, seal=SEAL):
    entries = []
    for kind, content in contents:
        entries.append(next_entry(entries[-1] if entries else None, kind, content, seal))
    return entries


def registered(moves):
    return "register", about(1) | {"people": 2, "moves": moves}


TWO = registered([[None, "1", 1, 2]])
HALF = ("reserve", {"charges": [[1, "0.5"]]})
HONEST = chained(
    TWO,
    HALF,
    ("release", {"reserve": 2, "receipts": []}),
    HALF,
    ("failed", {"reserve": 4}),
    ("reserve", {"charges": []}),
)


def test_an_honest_chain_has_no_problems():
    replay = Replay().run(HONEST, SEAL)
    assert replay.problems == []
    assert objects(replay.cohorts) == {1: Cohort(MICRO, ((1, MICRO),))}
    assert (replay.cohorts.people.tolist(), replay.cohorts.allowed.tolist(), replay.open) == (
        [2],
        [MICRO],
        {6: ("None", 0)},
    )
    assert replay.tables == {1: ("t1", 1, "f", 2, "{}")}
    assert (replay.digest, replay.meta) == ("d", ("k", "replace"))


@pytest.mark.parametrize(
    ("entries", "problem"),
    {
        "one is missing": (HONEST[:2] + HONEST[3:], "entry 4 comes after entry 2: entries are missing"),
        "the first is missing": (HONEST[1:], "entry 2 comes after entry 0: entries are missing"),
        "another before": ([replace(HONEST[0], previous="1" * 64), *HONEST[1:]], "entry 1 does not hold the hash"),
        "a time was changed": ([replace(HONEST[0], time="1999"), *HONEST[1:]], "entry 1 has been changed"),
        "a body was changed": ([*HONEST[:3], replace(HONEST[3], body='{"charges":[]}')], "entry 4 has been changed"),
        "a body is not JSON": ([*chained(TWO), replace(HONEST[1], body="{")], "entry 2 cannot be read (LedgerError)"),
        "a body lacks a part": (chained(TWO, ("reserve", {})), "entry 2 cannot be read (KeyError)"),
        "an amount is no amount": (chained(TWO, ("reserve", {"charges": [[1, "x"]]})), "entry 2 cannot be read (ValueError)"),
        "nobody has that account": (chained(TWO, ("reserve", {"charges": [[7, "1"]]})), "entry 2 cannot be read (KeyError)"),
        "given back": (chained(TWO, HALF, ("reserve", {"charges": [[1, "-1.5"]]})), "entry 3 gives cohort 1 something back"),
        "no seal": ([replace(HONEST[0], seal=""), *HONEST[1:]], "entry 1 was not written with the ledger's key"),
        "a chain written anew": (chained(TWO, HALF, seal=keys.Key(LONG + "!").seal), "entry 1 was not written with the ledger's key"),
        "no number": ([HONEST[0], replace(HONEST[1], seq=None), *HONEST[2:]], "entry None comes after entry 1"),
        "charged too much": (chained(TWO, HALF, HALF, HALF), "entry 4 charges cohort 1 more than it allows"),
        "answered twice": ([*HONEST[:3], *chained(*([TWO] * 3), ("release", {"reserve": 2}))[3:]], "entry 4 is about a reservation that is not open"),
        "unknown kind": (chained(TWO, ("refund", {})), "entry 2 is of an unknown kind 'refund'"),
        "people vanish": (chained(TWO, registered([[1, "1", 1, 1]])), "entry 2 loses people"),
        "people come from nowhere": (chained(TWO, registered([[1, "1", 1, 3]])), "entry 2 loses people"),
        "a strange rule": (
            chained(TWO, ("register", registered([[1, "1", 1, 2]])[1] | {"leaving": "raised"})),
            "entry 2 cannot be read (ValueError)",
        ),
        "a strange parent": (
            chained(TWO, ("register", registered([[1, "1", 1, 2]])[1] | {"leaving": "kept", "group_of": "1"})),
            "entry 2 cannot be read (ValueError)",
        ),
        "a debt is forgotten": (
            chained(TWO, HALF, registered([[1, "1", 1, 2], [None, "1", 1, 1]])),
            "entry 3 puts people with different accounts into cohort 1",
        ),
    }.values(),
    ids=lambda value: None if isinstance(value, list) else value.replace(" ", "-"),
)  # fmt: skip
def test_a_replay_tells_what_is_wrong(entries, problem):
    assert any(text.startswith(problem) for text in Replay().run(entries, SEAL).problems)


def test_without_the_key_only_seals_are_not_looked_at():
    forged = chained(TWO, HALF, HALF, HALF, seal=str.upper)
    assert Replay().run(forged[:3], None).problems == []
    assert Replay().run(forged, None).problems == ["entry 4 charges cohort 1 more than it allows"]


def test_a_raised_level_allows_more_and_a_lowered_one_nothing_more():
    spent = [TWO, HALF, HALF]
    raised = chained(*spent, registered([[1, "2", 2, 2]]), ("reserve", {"charges": [[2, "1"]]}))
    assert Replay().run(raised, SEAL).problems == []
    lowered = chained(*spent, registered([[1, "0.3", 2, 2]]), ("reserve", {"charges": [[2, "0.000001"]]}))
    assert Replay().run(lowered, SEAL).problems == ["entry 5 charges cohort 2 more than it allows"]
    cohorts = Replay().run(lowered[:4], SEAL).cohorts
    assert cohorts.allowed[cohorts.id == 2].tolist() == [MICRO]


def test_moves_are_written_with_decimals():
    moves = Moves(ints([NONE, 1, 2]), ints([PUBLIC, NONE, 1]), ints([1, 2, 3]), ints([2, 1, 4]))
    assert list_text("moves", moves.columns) == '[[null,"inf",1,2],[1,null,2,1],[2,"0.000001",3,4]]'
    assert [x.tolist() for x in list_columns("moves", json.loads(list_text("moves", moves.columns)))] == [
        x.tolist() for x in moves.columns
    ]
    assert START == "0" * 64


# --- the key ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", ["", LONG[1:], LONG[1:].encode(), b"", None, 10**20, [LONG]])
def test_a_short_key_is_refused(short):
    with pytest.raises(
        LedgerError, match=r"key is too short.*at least 16 characters that nobody can guess"
    ) as refusal:
        keys.Key(short)
    assert not short or str(short) not in str(refusal.value)


def test_a_key_is_kept_as_what_is_derived_from_it():
    key = keys.Key(LONG)
    assert (key.secret, key.check) == (keys.Key(LONG.encode()).secret, keys.Key(LONG.encode()).check)
    assert key.secret == hashlib.sha256(b"accord people 1" + LONG.encode()).hexdigest()[:32]
    assert key.check == hashlib.sha256(b"accord check 1" + LONG.encode()).hexdigest()[:32]
    assert LONG not in repr(key) + str(vars(key)) and key.secret not in repr(key)
    assert keys.Key(LONG + "!").secret != key.secret and keys.Key(LONG + "!").check != key.check


def test_a_key_from_the_environment(monkeypatch):
    monkeypatch.delenv("ACCORD_LEDGER_KEY", raising=False)
    assert keys.from_environment() is None
    monkeypatch.setenv("ACCORD_LEDGER_KEY", LONG)
    assert keys.from_environment().secret == keys.Key(LONG).secret
    monkeypatch.setenv("ACCORD_LEDGER_KEY", "")
    with pytest.raises(LedgerError, match="too short"):
        keys.from_environment()


def test_a_key_in_a_file(tmp_path):
    path = keys.key_file(tmp_path / "accord.db")
    assert path == tmp_path / "accord.db.key"
    assert keys.from_file(path) is None
    first, second = keys.draft(path), keys.draft(path)
    assert first.secret != second.secret and not path.exists(), "no ledger was made with it yet"
    assert keys.from_file(path).secret == second.secret
    keys.settle_draft(path, second.check)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text().strip()) == 64 and int(path.read_text(), 16) > 0
    assert second.secret == keys.from_file(path).secret == keys.Key(path.read_text().strip()).secret
    keys.settle_draft(path, second.check)
    assert keys.from_file(path).secret == second.secret, "nothing to confirm"
    assert [file.name for file in tmp_path.iterdir()] == ["accord.db.key"], "no draft is left behind"


def test_a_key_file_may_have_been_edited(tmp_path):
    (tmp_path / "k").write_text(f" {LONG}\r\n")
    assert keys.from_file(tmp_path / "k").secret == keys.Key(LONG).secret
    (tmp_path / "k").write_text("short\n")
    with pytest.raises(LedgerError, match="too short"):
        keys.from_file(tmp_path / "k")
    (tmp_path / "k").write_bytes(b"\xff" * 40)
    with pytest.raises(
        LedgerError, match=r"cannot read the ledger's key in .*k' \(UnicodeDecodeError\)"
    ) as refusal:
        keys.from_file(tmp_path / "k")
    assert refusal.value.__context__ is None, "the error of decoding holds the bytes of the key"
    with pytest.raises(
        LedgerError, match=r"cannot read the ledger's key .*\(IsADirectoryError\). Restore it, or give key="
    ):
        keys.from_file(tmp_path)


def test_a_key_that_cannot_be_written(tmp_path):
    with pytest.raises(
        LedgerError, match=r"cannot write the ledger's key .*\(FileNotFoundError\).*Choose a folder"
    ):
        keys.draft(tmp_path / "nowhere" / "k")
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match=r"cannot write the ledger's key .*\(NotADirectoryError\)"):
        keys.draft(tmp_path / "file" / "k")


def test_who_makes_a_ledger_at_once_gets_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made_secrets = list(pool.map(lambda _: Ledger(tmp_path / "accord.db").books.secret, range(24)))
    assert set(made_secrets) == {(keys.from_file(tmp_path / "accord.db.key").secret,)}
    assert stat.S_IMODE((tmp_path / "accord.db.key").stat().st_mode) == 0o600
    assert {path.suffix for path in tmp_path.iterdir()} <= {".db", ".key", ".head", ".db-wal", ".db-shm"}


# --- people -----------------------------------------------------------------------------------------------------------------


def hashed(secret, text):
    """63 bits of SHA-256, as docs/ledger.md says."""
    return int(hashlib.sha256((secret + text).encode()).hexdigest()[:16], 16) >> 1


@pytest.mark.parametrize(
    ("ids", "texts"),
    [
        ([7, 8], ["7", "8"]),
        ([7.0, 8.0], ["7", "8"]),
        ([" 7", "8.0 "], ["7", "8"]),
        (["7.000", "007"], ["7", "007"]),
        (["7.5", "7.50"], ["7.5", "7.50"]),
        (["ä", "A"], ["ä", "A"]),
        ([-1, 10**15], ["-1", str(10**15)]),
        ([-1.0, 1e15], ["-1", str(10**15)]),
        ([7.5, 8.0], ["7.5", "8"]),
        ([7.4, 6.5], ["7.4", "6.5"]),
    ],
)
def test_people_are_known_by_a_keyed_hash_of_their_id_as_text(ids, texts):
    table = accord.table({"id": ids, "level": [0.3, inf]}, epsilon="level", user="id")
    secret = keys.Key(LONG).secret
    hashes, levels = table.identity.people((secret,))
    assert dict(zip(hashes.tolist(), levels.tolist(), strict=True)) == {
        hashed(secret, texts[0]): 300_000, hashed(secret, texts[1]): PUBLIC
    }  # fmt: skip
    assert not set(hashes.tolist()) & set(table.identity.people((keys.Key(LONG + "!").secret,))[0].tolist())


def test_ids_that_are_fractions_are_nobody_elses():
    """In a column of doubles, where 7.5 is not rounded to 8."""
    columns = {"id": [7.5, 8.0, 7.4, 7.0], "level": [0.1, 0.2, 0.3, 0.4]}
    hashes, levels = accord.table(pa.table(columns), epsilon="level", user="id").identity.people(("secret",))
    expected = {"7.5": 100_000, "8": 200_000, "7.4": 300_000, "7": 400_000}
    assert dict(zip(hashes.tolist(), levels.tolist(), strict=True)) == {
        hashed("secret", text): level for text, level in expected.items()
    }


def test_what_was_charged_to_many_levels_is_told_by_ranges(tmp_path):
    """In the history, which is for reading. The accounts are exact, and verified."""
    n = 3_000
    people = accord.table(
        {"id": np.arange(n), "x": np.linspace(0, 1, n), "e": np.arange(1, n + 1) / 1e3},
        epsilon="e",
        user="id",
    )
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    released = people.release(accord.mean("x", bounds=(0, 1)), share=0.1, ledger=ledger, fresh=True)
    booked = ledger.history()[0]["booked"]
    assert len(booked) == 100 and sum(line["people"] for line in booked) == n
    charged = {round(level, 3): charge for level, charge in released.charges.items()}
    for line in booked:
        inside = [c for level, c in charged.items() if float(line["level"]) <= level <= float(line["to"])]
        assert float(line["charge"]) == max(inside) and len(inside) == line["people"]
    assert ledger.verify().problems == ()
