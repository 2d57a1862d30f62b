"""The grammar of where=: what it reads, how strongly words bind, and what it refuses."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import QueryError
from accord.statistics.where import Combined, Compare, In, IsNull, IsTrue, Not, columns, parse

A, B, C = Compare("a", "=", 1.0), Compare("b", "=", 2.0), Compare("c", "=", 3.0)
C_IS_1 = Compare("c", "=", 1.0)
NEXT = "Write tests such as \"age >= 30 AND region IN ('north', 'east')\"."


# ---- what it reads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1 OR b = 2 AND c = 3", Combined("OR", (A, Combined("AND", (B, C))))),
        ("a = 1 AND b = 2 OR c = 3", Combined("OR", (Combined("AND", (A, B)), C))),
        ("(a = 1 OR b = 2) AND c = 3", Combined("AND", (Combined("OR", (A, B)), C))),
        ("a = 1 AND b = 2 AND c = 3", Combined("AND", (A, B, C))),
        ("a = 1 AND (b = 2 AND c = 3)", Combined("AND", (A, Combined("AND", (B, C))))),
        ("NOT a = 1 AND b = 2", Combined("AND", (Not(A), B))),
        ("NOT (a = 1 AND b = 2)", Not(Combined("AND", (A, B)))),
        ("NOT NOT a = 1", Not(Not(A))),
        ("((a = 1))", A),
    ],
)
def test_not_binds_before_and_and_before_or(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1", Compare("a", "=", 1.0)),
        ("a<>1", Compare("a", "<>", 1.0)),
        ("a != 1", Compare("a", "<>", 1.0)),
        ("a == 1", Compare("a", "=", 1.0)),
        ("a=='x'", Compare("a", "=", "x")),
        ("a", IsTrue("a")),
        ('NOT "a b"', Not(IsTrue("a b"))),
        (
            "(a) OR NOT b AND c = 1",
            Combined("OR", (IsTrue("a"), Combined("AND", (Not(IsTrue("b")), C_IS_1)))),
        ),
        ("a<1", Compare("a", "<", 1.0)),
        ("a<=1", Compare("a", "<=", 1.0)),
        ("a>1", Compare("a", ">", 1.0)),
        ("a>=-1", Compare("a", ">=", -1.0)),
        ("a IN (1)", In("a", (1.0,))),
        ("a IN ('x', 2, TRUE)", In("a", ("x", 2.0, True))),
        ("a NOT IN (1, 2)", Not(In("a", (1.0, 2.0)))),
        ("NOT a IN (1, 2)", Not(In("a", (1.0, 2.0)))),
        ("a IS NULL", IsNull("a")),
        ("a IS NOT NULL", Not(IsNull("a"))),
        ("NOT a IS NOT NULL", Not(Not(IsNull("a")))),
        ("  a\n=\t1  ", Compare("a", "=", 1.0)),
    ],
)
def test_tests(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("+1", 1.0),
        ("-1", -1.0),
        ("007", 7.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("2.5e-3", 0.0025),
        (".5e1", 5.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("TRUE", True),
        ("false", False),
        ("''", ""),
        ("'north'", "north"),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("'a AND b; -- \"c\"'", 'a AND b; -- "c"'),
        ("'2026-01-31'", "2026-01-31"),
        ("'ünï çødé 北'", "ünï çødé 北"),
    ],
)
def test_literals(text, value):
    literal = parse(f"a = {text}").value
    assert literal == value
    assert type(literal) is type(value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("age", "age"),
        ("_age2", "_age2"),
        ("größe", "größe"),
        ("年齢", "年齢"),
        ("nothing", "nothing"),
        ("inner", "inner"),
        ("Age", "Age"),
        ('"age in years"', "age in years"),
        ('"NOT"', "NOT"),
        ('"null"', "null"),
        ('"say ""hi"""', 'say "hi"'),
        ('""""', '"'),
        ('"it\'s"', "it's"),
        ('"1; DROP TABLE x"', "1; DROP TABLE x"),
    ],
)
def test_names(text, name):
    assert parse(f"{text} = 1") == Compare(name, "=", 1.0)


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title, lambda word: word[0].lower() + word[1:]])
def test_keywords_in_any_case(spell):
    text = re.sub(
        "[A-Z]+", lambda word: spell(word[0]), "NOT a IS NOT NULL AND b IN (TRUE, FALSE) OR c NOT IN (3)"
    )
    assert parse(text) == Combined(
        "OR", (Combined("AND", (Not(Not(IsNull("a"))), In("b", (True, False)))), Not(In("c", (3.0,))))
    )


def test_columns_are_named_in_order():
    assert list(columns(parse('b = 1 OR NOT ("a a" IS NULL AND b IN (2)) OR c > 0'))) == [
        "b",
        "a a",
        "b",
        "c",
    ]


# ---- what it refuses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "where= is not a condition."),
        (" \n ", "where= is not a condition."),
        (None, "where= is not a condition."),
        ("a IN (SELECT b FROM c)", "where= has 'SELECT' where a number, 'text', TRUE or FALSE was expected."),
        ("a = (SELECT 1)", "where= has '(' where a number, 'text', TRUE or FALSE was expected."),
        ("EXISTS (SELECT 1)", "where= has '(' where = or <> or != or < or <= or > or >= was expected."),
        ("abs(a) = 1", "where= has '(' where = or <> or != or < or <= or > or >= was expected."),
        ("a = abs(1)", "where= has 'abs' where a number, 'text', TRUE or FALSE was expected."),
        ("a = b", "where= has 'b' where a number, 'text', TRUE or FALSE was expected."),
        ("1 = a", "where= has '1' where a column was expected."),
        ("a = 1; DROP TABLE x", "where= cannot be read at '; DROP TABLE x'."),
        ("a = 1 -- all", "where= cannot be read at ' -- all'."),
        ("a = 1 /* all */", "where= cannot be read at ' /* all */'."),
        ("a + 1 = 2", "where= cannot be read at ' + 1 = 2'."),
        ("a::int = 1", "where= cannot be read at '::int = 1'."),
        ("t.a = 1", "where= cannot be read at '.a = 1'."),
        ("a = 'open", 'where= cannot be read at " \'open".'),
        ('"open = 1', "where= cannot be read at '\"open = 1'."),
        ('"" = 1', "where= cannot be read at '\"\" = 1'."),
        ("a = 12abc", "where= cannot be read at ' 12abc'."),
        ("a = 1_000", "where= cannot be read at ' 1_000'."),
        ("a = 0x10", "where= cannot be read at ' 0x10'."),
        ("a = 1.2.3", "where= cannot be read at ' 1.2.3'."),
        ("a = 1e", "where= cannot be read at ' 1e'."),
        ("a = $1", "where= cannot be read at ' $1'."),
        ("a = ?", "where= cannot be read at ' ?'."),
        ("a = inf", "where= has 'inf' where a number"),
        ("a = NULL", "where= has 'NULL' where a number"),
        ("a = 1e999", "where= has the number 1e999, which is too large to be compared exactly."),
        ("a = -1e999", "where= has the number -1e999, which is too large to be compared exactly."),
        ("(a = 1", "where= has 'the end' where ) was expected."),
        ("a = 1)", "where= goes on at ')' after a whole condition; join conditions by AND or OR."),
        ("a >= 6500,5", "where= goes on at ',' after a whole condition; a number has a point, and no comma."),
        ("a = 1 b = 2", "where= goes on at 'b' after a whole condition"),
        ("a = 1 = 2", "where= goes on at '=' after a whole condition"),
        ("a = 1 AND", "where= has 'the end' where a column was expected."),
        ("OR a = 1", "where= has 'OR' where a column was expected."),
        ("a b", "where= has 'b' where = or <>"),
        ("a === 1", "where= has '=' where a number"),
        ("()", "where= has ')' where a column was expected."),
        ("a IN ()", "where= has ')' where a number"),
        ("a IN (1,)", "where= has ')' where a number"),
        ("a IN 1", "where= has '1' where ( was expected."),
        ("a IN (1", "where= has 'the end' where ) was expected."),
        ("a NOT = 1", "where= has '=' where IN was expected."),
        ("a IS 1", "where= has '1' where NULL was expected."),
        ("a IS NOT TRUE", "where= has 'TRUE' where NULL was expected."),
        ("'a' = 1", "where= has 'a' where a column was expected."),
        ("NOT", "where= has 'the end' where a column was expected."),
    ],
)
def test_what_is_no_condition(text, says):
    with pytest.raises(QueryError) as error:
        parse(text)
    assert str(error.value).startswith(says)
    assert str(error.value).endswith(NEXT)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a LIKE 'x%'",
            "where= has LIKE, which is not offered: engines read patterns differently. "
            "Name the texts: a IN ('north', 'east'), or a = 'north'.",
        ),
        ("b = 1 OR a not ilike 'x%'", "where= has ilike, which is not offered: engines read patterns"),
        (
            "a BETWEEN 1 AND 2",
            "where= has BETWEEN, which is not offered: write both ends: a >= 30 AND a <= 40.",
        ),
    ],
)
def test_words_of_sql_get_the_next_step(text, says):
    with pytest.raises(QueryError) as error:
        parse(text)
    assert str(error.value).startswith(says)
    assert parse("like = 1 AND between") == Combined("AND", (Compare("like", "=", 1.0), IsTrue("between")))


def test_length_is_limited():
    most = "a = 1" + " OR a = 1" * 1110 + " " * 5
    assert len(most) == 10_000
    assert len(parse(most).parts) == 1111
    with pytest.raises(QueryError, match=r"^where= has 10001 characters; at most 10000 are read\."):
        parse(most + " ")


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("NOT ", ""), ("NOT (", ")")])
def test_depth_is_limited(opening, closing):
    """Deep nesting is refused in words, never by Python's own limit."""
    each = opening.count("(") + opening.count("NOT")
    fits = 50 // each
    parse(opening * fits + "a = 1" + closing * fits)
    for deep in (fits + 1, 1_000):
        with pytest.raises(QueryError, match=r"^where= is nested more than 50 deep\."):
            parse(opening * deep + "a = 1" + closing * deep)


def test_every_start_of_a_condition_is_read_or_refused():
    """Cutting a text anywhere gives a condition or a QueryError, never another fault."""
    text = "NOT (\"a \"\"b\" >= -1.5e3 OR c IN ('it''s', TRUE)) AND d IS NOT NULL"
    for end in range(len(text) + 1):
        try:
            parse(text[:end])
        except QueryError:
            continue


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        tree = parse(text)
    except QueryError:
        return
    assert list(columns(tree))


# ---- there and back --------------------------------------------------------------------------------------------------

KEYWORDS = {"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE"}
names = st.text(min_size=1, max_size=8)
bare = st.from_regex(r"[^\W\d]\w{0,7}", fullmatch=True).filter(lambda name: name.upper() not in KEYWORDS)
values = st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8) | st.booleans()
leaves = (
    st.builds(Compare, names | bare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), values)
    | st.builds(In, names | bare, st.lists(values, min_size=1, max_size=3).map(tuple))
    | st.builds(IsNull, names | bare)
    | st.builds(IsTrue, names | bare)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(
            Combined, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3).map(tuple)
        )
    ),
    max_leaves=12,
)


def written(value):
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def rendered(tree, spell, inside=None):
    """A tree as text, with parentheses only where they are needed."""
    match tree:
        case Compare(column, operator, value):
            return f"{quoted(column)} {operator} {written(value)}"
        case In(column, literals):
            return f"{quoted(column)} {spell('IN')} ({', '.join(map(written, literals))})"
        case IsNull(column):
            return f"{quoted(column)} {spell('IS NULL')}"
        case IsTrue(column):
            return quoted(column)
        case Not(IsNull(column)):
            return f"{quoted(column)} {spell('IS NOT NULL')}"
        case Not(inner):
            return f"{spell('NOT')} {rendered(inner, spell, 'NOT')}"
        case Combined(word, parts):
            text = f" {spell(word)} ".join(rendered(part, spell, word) for part in parts)
            return text if inside is None or (inside, word) == ("OR", "AND") else f"({text})"


@settings(max_examples=300)
@given(trees, st.sampled_from([str.upper, str.lower, str.title]))
def test_a_tree_written_down_is_read_back(tree, spell):
    assert repr(parse(rendered(tree, spell))) == repr(tree)  # by repr: TRUE is not 1, and 0.0 is not -0.0


@given(bare)
def test_any_word_but_a_keyword_is_a_name(name):
    assert parse(f"{name} IS NULL") == IsNull(name)
