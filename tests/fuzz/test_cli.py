"""The command line, fed with anything: exit code 0, 1 or 2, never a traceback, never a value of the data, never half a release."""

import gzip
import json
import os
import subprocess
import sys
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import HOSTILE, letters

from accord.cli import STATISTICS, main
from accord.statistics import ALL

patient = settings(suppress_health_check=list(HealthCheck))
NUMBER, TEXT = 424242.4242, "CANARY-7f3a"
SECRET = ("424242", "CANARY")
"""How everything in the data begins that is not public."""
ENGINES = (
    "Traceback",
    "Binder Error",
    "Parser Error",
    "Conversion Error",
    "Invalid Input",
    "IO Error",
    "duckdb",
    "sqlite3.",
    "psycopg.",
    "py4j",
    "site-packages",
)
"""What an engine's own words would have in them."""
N = 60
LEVELS = ["--epsilon", "level"]


def columns():
    return {
        "level": [0.5, 2.0, inf] * (N // 3),
        "tier": ["strict", "open", "public"] * (N // 3),
        "who": [f"{TEXT}-{k}" for k in range(N)],
        "x": [NUMBER + k for k in range(N)],
        "z": [float(k % 7) for k in range(N)],
        "text": [f"{TEXT}-{k % 9}" for k in range(N)],
        "flag": [k % 2 == 0 for k in range(N)],
        "day": pa.array([19_000 + k for k in range(N)], pa.date32()),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """people.parquet, and a ledger that knows it."""
    folder = tmp_path_factory.mktemp("people")
    (folder / "empty").mkdir()
    pq.write_table(pa.table(columns()), folder / "people.parquet")
    before = Path.cwd()
    os.chdir(folder)
    obey("ledger", "init", "accord.db")
    obey("ledger", "register", "accord.db", "people", "people.parquet", *LEVELS, "--user", "who")
    yield folder
    os.chdir(before)


def obey(*words, code=None):
    """Run a command in this process; the laws hold for whatever comes of it."""
    ran = CliRunner().invoke(main, [str(word) for word in words])
    lawful(words, ran.exit_code, ran.stdout, ran.stderr, ran.exception)
    assert code in (None, ran.exit_code), ran.stderr
    return ran


def lawful(words, code, out, err, exception=None):
    assert exception is None or isinstance(exception, SystemExit), repr(exception)
    assert code in (0, 1, 2)
    as_json = "--json" in words or "export" in words
    if "verify" in words and code == 1 and not out.startswith('{\n  "schema": 1,\n  "error"'):
        assert "problem" in out or not out, "what is wrong with a ledger is a result"
    elif as_json and code < 2:
        told = json.loads(out)
        assert told["schema"] == 1
        assert code == 0 or (set(told) == {"schema", "error"} and set(told["error"]) == {"type", "message"})
    elif code:
        assert out == "", "there is no answer"
    if code:
        assert out or err
        typed = " ".join(map(str, words))
        for secret in (*SECRET, *ENGINES):
            assert secret in typed or secret not in out + err, "a refusal tells nothing of the data"


# --- files ------------------------------------------------------------------------------------------------------------------

ROW = f"0.5,{TEXT},{NUMBER}\n"
CSV = {
    "ragged.csv": "level,text,x\n" + ROW * 5 + f"0.5,{TEXT},{NUMBER},{TEXT},{NUMBER}\n" + ROW,
    "short.csv": "level,text,x\n" + ROW * 5 + f"{TEXT}\n" + ROW,
    "latin.csv": ("level,text,x\n" + ROW * 5).encode() + f"0.5,{TEXT}é,{NUMBER}\n".encode("latin-1"),
    "late.csv": ("level,text,x\n" + ROW * 30_000).encode() + f"0.5,{TEXT}é,{NUMBER}\n".encode("latin-1"),
    "open quote.csv": "level,text,x\n" + ROW + f'0.5,"{TEXT},{NUMBER}\n' + ROW,
    "quote within.csv": "level,text,x\n" + f'0.5,{TEXT}"{TEXT},{NUMBER}\n' * 3,
    "no header.csv": ROW * 5,
    "header only.csv": "level,text,x\n",
    "half a header.csv": "level,text",
    "twice.csv": "level,x,X\n" + ROW,
    "blank.csv": "\n\n\n",
    "zeros.csv": b"\0" * 500,
    "nul.csv": "level,text,x\n" + f"0.5,{TEXT}\0,{NUMBER}\n" * 3,
    "nul in the header.csv": f"level,te\0xt,x\n{ROW}",
    "wide.csv": "level,text,x," + ",".join(f"column number {k}" for k in range(800)) + "\n" + ROW,
    "long name.csv": "level,text,x," + "y" * 200_000 + "\n" + ROW,
    "long line.csv": "level,text,x\n" + f"0.5,{TEXT * 400_000},{NUMBER}\n",
    "utf16.csv": ("level,text,x\n" + ROW).encode("utf-16"),
    "mark.csv": b"\xef\xbb\xbf" + f"level,text,x\n{ROW}".encode(),
    "carriage.csv": "level,text,x\r" + ROW.replace("\n", "\r") * 3,
    "levels that are none.csv": f"level,text,x\n{TEXT},a,{NUMBER}\n-1,b,{NUMBER}\n",
    "no.csv.gz": b"garbage" + TEXT.encode(),
    "half.csv.gz": gzip.compress(f"level,text,x\n{ROW * 5_000}".encode())[:200],
    "no.csv.zst": b"garbage" + TEXT.encode(),
    "json.parquet": json.dumps([{"level": 0.5, "x": NUMBER, "text": TEXT}]),
    "json.csv": json.dumps([{"level": 0.5, "x": NUMBER, "text": TEXT}], indent=1),
    "people.json": json.dumps([{"level": 0.5, "x": NUMBER, "text": TEXT}]),
    "text.parquet": f"{TEXT} {NUMBER}\n" * 100,
    "marked.parquet": "PAR1" + f"{TEXT} {NUMBER}\n" * 100 + "PAR1",
    "empty.parquet": "",
    "empty.csv": "",
}  # fmt: skip


def broken_pages(path):
    """A Parquet file whose levels can be read, and whose x cannot."""
    pq.write_table(pa.table(columns()), path, compression="none", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(3)
    raw = bytearray(path.read_bytes())
    raw[chunk.data_page_offset : chunk.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(raw)


def parquet(name, path):
    table = pa.table(columns())
    match name:
        case "truncated":
            pq.write_table(table, path)
            path.write_bytes(path.read_bytes()[:-60])
        case "headless":
            pq.write_table(table, path)
            path.write_bytes(b"\xff" * 40 + path.read_bytes()[40:])
        case "broken pages":
            broken_pages(path)
        case "nested":
            nested = pa.array([{"x": NUMBER, "y": [TEXT]}] * N)
            pq.write_table(table.drop_columns(["x", "text"]).append_column("x", nested).append_column("text", pa.array([[TEXT]] * N)), path)  # fmt: skip
        case "binary":
            pq.write_table(table.drop_columns(["text"]).append_column("text", pa.array([TEXT.encode() + b"\xff"] * N)), path)  # fmt: skip
        case "nobody":
            pq.write_table(table.slice(0, 0), path)
        case "no columns":
            pq.write_table(pa.table({}), path)
        case "in upper case":
            pq.write_table(table.append_column("X", table["x"]).append_column("LEVEL", table["level"]), path)
        case "own names":
            pq.write_table(table.append_column("__Accord_level__", table["level"]), path)
        case "no level":
            pq.write_table(table.drop_columns(["level"]).append_column("level", pa.array([None] * N, pa.float64())), path)  # fmt: skip


PARQUET = ("truncated", "headless", "broken pages", "nested", "binary", "nobody", "no columns", "in upper case", "own names", "no level")  # fmt: skip
ASKED = (
    ["mean", "x", "--bounds", "0", "1000000", "--mechanism", "minimum"],
    ["histogram", "text", "--categories", "a,b", "--mechanism", "minimum"],
    ["count", "--where", "x > 5 AND text = 'a'", "--mechanism", "minimum"],
)


@pytest.mark.parametrize("name", [*CSV, *(f"{name}.parquet" for name in PARQUET)])
def test_a_malformed_file_is_refused_or_read(tmp_path, name):
    path = tmp_path / name
    if name in CSV:
        path.write_bytes(CSV[name] if isinstance(CSV[name], bytes) else CSV[name].encode())
    else:
        parquet(path.stem, path)
    for command, words in (("plan", ASKED[0]), *(("release", words) for words in ASKED)):
        obey(command, path, *words, *LEVELS, *(["--json"] if words is ASKED[0] else []))
    obey("release", path, *ASKED[0], *LEVELS, "--user", "text")


ADDRESSES = (
    "", "~nobody", "empty", "empty/", "nowhere", "nowhere.csv", "no/where.parquet", "*.nothing", "[", "[!", "people.parquet/x", "people.parquet\n", "/dev/null", "/proc/self/mem",
    "file:people.parquet", "file:///people.parquet", "http://localhost:1/people.parquet", "https://localhost:1/people.csv", "s3://bucket/people.parquet", "gs://b/p.csv", "sqlite:people.db",
    "duckdb:", "jdbc:postgresql://x", "people.parquet?table=people", "x" * 5_000 + ".csv", "x/" * 3_000 + "y.csv", "\udcff.csv", "🦆.csv",
    "postgresql://", "postgresql://[", "postgresql:///", "postgresql://h:p@[/x?table=a", "postgresql://localhost:1/x", "postgresql://localhost:1/x?table=", "postgresql://localhost:1/x?table=people",
    "postgresql://u:CANARY-%zz@localhost:1/x?table=a", "postgresql://u:pass?word@localhost:1/x?table=a", "postgresql://localhost:99999/x?table=a", "postgresql://localhost:1/x?no=1&table=a",
    "postgresql://localhost:1/x?connect_timeout=soon&table=a", "postgresql://\udcff/x?table=a", "postgres://localhost:1/é?table=\"", "postgresql://localhost:1/x?table=%00", "postgresql://localhost:1/x?table=a.b.c",
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: ascii(address[:30]))
def test_an_address_that_leads_nowhere_is_refused(folder, address):
    words = ["release", address, *ASKED[0], *LEVELS]
    obey(*words, code=1)
    assert "word@" not in json.loads(obey(*words, "--json", code=1).stdout)["error"]["message"], (
        "nor of a password"
    )
    obey("ledger", "register", "accord.db", "other", address, *LEVELS, "--user", "who", code=1)


# --- words ------------------------------------------------------------------------------------------------------------------

NOT = (
    "",
    " ",
    ",",
    "=",
    "..",
    "|",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "0",
    "1e-400",
    "1_0",
    "0x1",
    "١",
    "None",
    "true",
    "2020-01-01",
    "2020-13-45",
    "\udcff",
    "x" * 2_000,
    *HOSTILE[:40],
)
free = st.one_of(
    st.sampled_from(NOT), st.text(letters, max_size=6).filter(lambda text: not text.startswith("-"))
)
conditions = st.one_of(
    st.sampled_from([
        "x", "x >", "x > 'a", "x > 1 AND", "x > 1; DROP TABLE people", "(" * 99 + "x = 1" + ")" * 99, "NOT " * 60 + "x = 1", "x = 1e999", "x = 9" + "9" * 30, "x IN ()", "x = (SELECT 1)",
        "x = 1 -- ", "text < 'a'", "text = 1", "day > 'soon'", "day > '2020-01-01T00:00:00+01:00'", "flag > TRUE", "level > 1", "nothing = 1", '"" = 1', "text = '\udcff'", "who = 'a'", "x" + " " * 11_000,
        "text IN (" + ", ".join(f"'{k}'" for k in range(900)) + ")", " OR ".join(["x = 1"] * 900), "1 = 1", "x = x", "random() > 0",
    ]),
    free,
)  # fmt: skip
whole_numbers = st.one_of(st.sampled_from(["0", "1", "3", "-1", "1e3", "", "9" * 400]), free)
OPTIONS = {
    "--bounds": st.one_of(st.sampled_from([("0", "1000000"), ("0", "2020-01-01"), ("2020-01-01", "2024-01-01"), ("1", "0"), ("-1e308", "1e308")]), st.tuples(free, free)),
    "--p": st.one_of(st.sampled_from(["0.5", "0.1,0.9", "0,1", "0.5,0.5"]), free),
    "--on": st.one_of(st.sampled_from(["z=0..7", "text=a|b", "flag=true|false", "z=0..7,text=a|b", "z", "z=7..0", "x=0..1", "z=0..7,z=0..7", "=0..1", "z=..", "text=|"]), free),
    "--edges": st.one_of(st.sampled_from(["0,1,2", "2,1,0", "0,1", "0,nan,1"]), free),
    "--categories": st.one_of(st.sampled_from(["a,b", "a,a", "true,false", "1,2"]), free),
    "--max": whole_numbers, "--k": whole_numbers, "--at-most": whole_numbers, "--rest": free,
    "--std": free, "--step": st.one_of(st.sampled_from(["1", "1 day"]), free), "--missing": st.one_of(st.sampled_from(["exclude", "none", "middle"]), free),
    "--report-missing": st.one_of(st.sampled_from(["0.1", "1", "0"]), free),
    "--per-person": st.one_of(st.sampled_from(["mean", "sum", "min", "max"]), free),
    "--interval": st.one_of(st.just("values"), free), "--rounded": st.one_of(st.sampled_from(["decimal", "1,5,10", "0", "-1"]), free),
    "--csv": st.one_of(st.sampled_from(["decimal=,", "dates=%d.%m.%Y", "encoding=latin-1", "nothing=1", "decimal="]), free),
    "--consent": st.sampled_from(["people.parquet", "no.csv", "", ".", "postgresql://[", "\udcff.csv"]),
    "--as-of": st.one_of(st.just("2026-01-31"), free),
    "--valid-from": st.one_of(st.sampled_from(["day", "x"]), free),
    "--where": conditions,
    "--by": st.one_of(st.sampled_from(["text", "flag", "z", "who", "level", "nothing"]), free),
    "--keys": st.one_of(st.sampled_from(["a,b", "true,false", "1,2", "a,a"]), free),
    "--membership": st.sampled_from(["private", "public", "secret"]),
    "--mechanism": st.one_of(st.sampled_from(["minimum", "threshold", "sample", "pe"]), free),
    "--t": st.one_of(st.sampled_from(["1", "max", "best"]), free),
    "--share": st.one_of(st.sampled_from(["0.1", "1"]), free),
    "--tiers": st.one_of(st.sampled_from(["strict=0.5,open=2,public=inf", "strict=1", "strict=1,strict=2", "a=1e400", "a=nan"]), free),
    "--default": st.one_of(st.sampled_from(["strict", "1", "1e400"]), free),
    "--user": st.one_of(st.sampled_from(["who", "text", "x", "day", "flag"]), free),
    "--epsilon": st.one_of(st.sampled_from(["level", "tier", "x", "text", "day", "1", "0", "1e400"]), free),
    "--plot": st.sampled_from(["no/where.png", "plan.xyz", ".", "x" * 300 + ".png", "\udcff/a.png"]),
    "--ledger": st.sampled_from(["accord.db", ".", "people.parquet", "no.db", "", "http://x", "sqlite://", "postgresql://[", "postgresql://localhost:1/x", "\udcff.db", "x" * 5_000]),
}  # fmt: skip


def needed(statistic):
    """What makes a command out of a statistic."""
    of_two = ["x", "z"]
    named = {
        "count": [],
        "rows": [],
        "histogram": ["text"],
        "proportion": ["x > 1"],
        "crosstab": ["text", "flag"],
        "top": ["text"],
    }
    column = named.get(statistic, of_two if statistic in ("covariance", "correlation") else ["x"])
    asked = {
        "proportion": [],
        "crosstab": ["--keys", "text=a,b", "--keys", "flag=true,false"],
        "top": ["--keys", "a,b", "--k", "1"],
        **{two: ["--bounds", "0", "1000000", "--bounds", "0", "7"] for two in ("covariance", "correlation")},
        "rows": ["--max", "3", "--user", "who"],
        "histogram": ["--categories", "a,b"],
        "count": ["--where", "x > 1"],
    }
    ends = asked.get(statistic, ["--bounds", "0", "1000000"])
    return [
        *column,
        *ends,
        *{"quantile": ["--p", "0.9"], "regression": ["--on", "z=0..7"]}.get(statistic, []),
    ]


WITHOUT_DASHES = ("column", "columns", "condition", "other")
OWN = {
    one.name: ["--" + option.replace("_", "-") for option in one.options if option not in WITHOUT_DASHES]
    for one in ALL
}
ANY = sorted(set(OPTIONS) - {option for options in OWN.values() for option in options})


@st.composite
def commands(draw):
    """A command that would do, with some of its words exchanged."""
    statistic = draw(st.sampled_from(STATISTICS))
    words = [
        draw(st.sampled_from(["plan", "release", "release", "release", "whatif"])),
        "people.parquet",
        statistic,
        *needed(statistic),
        *LEVELS,
    ]
    if draw(st.booleans()):
        words += ["--ledger", "accord.db", "--share", "0.001", "--user", "who"]
    fitting = st.sampled_from([*OWN[statistic] * 3, *ANY])
    for option in draw(
        st.lists(st.one_of(*[fitting] * 9, st.sampled_from(sorted(OPTIONS))), max_size=3, unique=True)
    ):
        value = draw(OPTIONS[option])
        words += [option, *([value] if isinstance(value, str) else value)]  # the last one counts
    if draw(st.integers(0, 9)) == 0:
        words[draw(st.integers(1, len(words) - 1))] = draw(free)
    return [*words, *(["--json"] if draw(st.booleans()) else [])]


def spent():
    """All that the ledger has booked."""
    return [
        (a["level"], a["spent"])
        for a in json.loads(obey("ledger", "show", "accord.db", "--json", code=0).stdout)["accounts"]
    ]


def commanded(words):
    before = spent() if "accord.db" in words else None
    ran = obey(*words)
    if before is None:
        return
    if ran.exit_code:
        assert spent() == before, "all of these are refused before anything is charged"
    assert "whole" in obey("ledger", "verify", "accord.db", code=0).stdout


@given(commands())
@settings(patient, max_examples=100)
def test_any_words(folder, words):
    commanded(words)


@pytest.mark.slow
@given(commands())
@settings(patient, max_examples=400)
def test_any_words_many_times(folder, words):
    commanded(words)


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 15))
def test_any_names_of_columns(tmp_path, start):
    """They are names, on the way in and on the way out."""
    names = [name for name in HOSTILE[start : start + 15] if not name.startswith("-")]
    path, n = tmp_path / "people.parquet", 600
    for name in names:
        quoted = '"' + name.replace('"', '""') + '"'
        pq.write_table(pa.table({"chosen level": [0.5, inf] * (n // 2), name: [1.0] * n}), path)
        words = ["release", path, "count", "--where", f"{quoted} = 1", "--epsilon", "chosen level", "--json"]
        told = json.loads(obey(*words, code=0).stdout)
        assert abs(told["value"] - n) < 40 * told["rmse"]
        pq.write_table(pa.table({name: [0.5, inf] * (n // 2), "named group": ["a"] * n}), path)
        told = json.loads(
            obey(
                "plan",
                path,
                "count",
                "--by",
                "named group",
                "--keys",
                "a,[/b]",
                "--epsilon",
                name,
                "--json",
                code=0,
            ).stdout
        )
        assert [line["level"] for line in told["charges"]] == ["0.5", "inf"]


# --- ledgers ----------------------------------------------------------------------------------------------------------------


def test_a_release_that_fails_midway_is_charged_and_has_no_answer(tmp_path, monkeypatch):
    """Its levels can be read, its values cannot: nothing is half done."""
    monkeypatch.chdir(tmp_path)
    broken_pages(tmp_path / "broken.parquet")
    obey("ledger", "init", "accord.db")
    obey("ledger", "register", "accord.db", "people", "broken.parquet", *LEVELS, "--user", "who", code=0)
    words = [
        "release",
        "broken.parquet",
        *ASKED[0],
        *LEVELS,
        "--user",
        "who",
        "--ledger",
        "accord.db",
        "--share",
        "0.1",
    ]
    before = spent()
    for more in ([], ["--json"]):
        assert "charged all the same" in (ran := obey(*words, *more, code=1)).stdout + ran.stderr
        assert spent() != before
        before = spent()
    history = json.loads(obey("ledger", "history", "accord.db", "--json", code=0).stdout)["releases"]
    assert [(made["state"], made["receipts"]) for made in history] == [("failed", [])] * 2
    obey("ledger", "verify", "accord.db", code=0)


def test_a_figure_that_cannot_be_drawn_costs_nobody_anything(folder):
    words = [
        "release",
        "people.parquet",
        *LEVELS,
        "--user",
        "who",
        "--ledger",
        "accord.db",
        "--share",
        "0.001",
    ]
    before = spent()
    for path in ("no/where.png", "plan.xyz", "x" * 300 + ".png"):
        obey(*words, *ASKED[0], "--plot", path, code=1)
    obey(*words, "mean", "x", "--bounds", "0", "1", "--by", "flag", "--keys", "true,false", "--membership", "public", "--plot", "a.png", code=2)  # fmt: skip
    assert spent() == before
    assert not Path("plan.xyz").exists() and not Path("a.png").exists()


def damaged(how, path, whole):
    """A place where a ledger is not, or not whole."""
    match how:
        case "folder":
            path.mkdir()
        case "missing":
            pass
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text(f"{TEXT} {NUMBER}\n" * 200)
        case "header":
            path.write_bytes(b"SQLite format 3\0" + TEXT.encode() * 200)
        case "no key":
            path.write_bytes(whole)
        case "bad key":
            path.write_bytes(whole)
            Path(f"{path}.key").write_bytes(b"\xff" * 40)
        case "other key":
            path.write_bytes(whole)
            Path(f"{path}.key").write_text("another key, long enough to be one")
        case "key folder":
            path.write_bytes(whole)
            Path(f"{path}.key").mkdir()
        case cut:
            path.write_bytes(whole[: int(cut)])


HOW = (
    "folder",
    "missing",
    "empty",
    "text",
    "header",
    "no key",
    "bad key",
    "other key",
    "key folder",
    "90",
    "4096",
    "9000",
    "20000",
)


@pytest.mark.parametrize("how", HOW)
def test_a_ledger_that_is_none_is_refused(folder, tmp_path, how):
    url = tmp_path / "accord.db"
    whole = Path("accord.db").read_bytes()
    damaged(how, url, whole)
    for words in (
        ["show", url],
        ["history", url],
        ["verify", url],
        ["register", url, "people", "people.parquet", *LEVELS, "--user", "who"],
    ):
        obey("ledger", *words)
        obey("ledger", *words, "--json")
    obey("ledger", "export", url)
    for command in ("plan", "release"):
        obey(
            command,
            "people.parquet",
            *ASKED[0],
            *LEVELS,
            "--user",
            "who",
            "--ledger",
            url,
            "--share",
            "0.001",
        )
    obey("ledger", "init", url)


@given(st.one_of(st.text(letters, max_size=8), st.sampled_from(["", " ", "\udcff", "a" * 5_000, *HOSTILE])))
@settings(patient, max_examples=12)
def test_any_name_of_a_table(folder, name):
    if not name.startswith("-"):
        obey("ledger", "register", "accord.db", name, "people.parquet", *LEVELS, "--user", "who", "--json")
        obey("ledger", "show", "accord.db")
        obey("ledger", "verify", "accord.db", code=0)


# --- as a process of its own ------------------------------------------------------------------------------------------------


def process(*words, stdout=subprocess.PIPE, **environment):
    ran = subprocess.run(
        [sys.executable, "-m", "accord.cli", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        timeout=900,
        check=False,
    )
    coding = environment.get("PYTHONIOENCODING", "utf-8")
    out, err = ((stream or b"").decode(coding) for stream in (ran.stdout, ran.stderr))
    if stdout == subprocess.PIPE:
        lawful(words, ran.returncode, out, err)
    assert "Traceback" not in err
    return ran.returncode, out, err


def test_bytes_that_are_no_text(folder):
    assert process("plan", b"\xff.parquet", *ASKED[0], *LEVELS, "--json")[0] == 1
    assert process("plan", "people.parquet", "mean", b"\xff", "--bounds", "0", "1", *LEVELS)[0] == 1
    assert process("plan", b"postgresql://\xff/x?table=a", *ASKED[0], *LEVELS)[0] == 1


@pytest.mark.parametrize("coding", ["ascii", "latin-1"])
def test_a_terminal_that_does_not_have_the_letters(folder, tmp_path, coding):
    pq.write_table(pa.table({"level": [1.0] * 9, "🦆": [1.0] * 9}), tmp_path / "people.parquet")
    words = ["release", tmp_path / "people.parquet", "mean", "🦆", "--bounds", "0", "9", *LEVELS]
    code, out, _ = process(*words, PYTHONIOENCODING=coding)
    assert code == 0 and "mean of ?" in out
    code, out, _ = process(*words, "--json", PYTHONIOENCODING=coding)
    assert code == 0 and json.loads(out)["query"]["column"] == "🦆"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device here")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk(folder, more):
    with Path("/dev/full").open("wb") as full:
        code, _, err = process("plan", "people.parquet", *ASKED[0], *LEVELS, *more, stdout=full)
    assert code == 1 and err.startswith("AccordError: cannot write the result (No space left on device).")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["spark://", "spark://nothing", "spark://`; DROP TABLE people", "spark://a.b.c.🦆"]
)
def test_an_address_in_spark_that_leads_nowhere(folder, address):
    assert process("plan", address, *ASKED[0], *LEVELS, "--json", PYTHONWARNINGS="ignore")[0] == 1
