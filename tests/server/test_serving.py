"""accord serve: the command, its demonstration, its log, TLS, DuckDB's settings, and what docs/service.md shows."""

import os
import re
import signal
import ssl
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from serving import MEAN, Caller, make_office, serving

import accord
from accord.cli import main
from accord.errors import ServiceError, SourceError
from accord.ledger import tokens
from accord.server.heads import Heads
from accord.server.listening import configuration
from accord.server.office import Office

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")


def test_the_demonstration_needs_no_files_and_removes_its_own(tmp_path):
    command = [sys.executable, "-m", "accord", "serve", "--demo", "--port", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    server = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines = [server.stdout.readline().split() for _ in range(4)]
    assert [line[0] for line in lines] == ["analyst", "officer", "owner", "serving"], server.stderr.read()
    people = accord.connect(lines[3][-1], lines[0][1])["people"]
    answer = people.release(accord.mean("income"), share=0.05)
    assert 30_000 < answer.value < 70_000
    with pytest.raises(SourceError, match="no table 'others'"):
        accord.connect(lines[3][-1], lines[0][1])["others"]
    assert list(tmp_path.iterdir())
    server.send_signal(signal.SIGTERM)
    told = server.communicate()[1]
    assert list(tmp_path.iterdir()) == [] and "Traceback" not in told
    # the log has the request, its plan and its charges, and no token and no answer
    assert "request" in told and "released" in told and " s of a slot of " in told
    assert f"{answer.value:.3f}" not in told and not any(
        line[1].split("_", 2)[2] in told for line in lines[:3]
    )


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    made = make_office(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with serving(made.office) as url:
        example = example.replace("https://statistics.clinic.example", url)
        names = {"accord": accord, "token": made.tokens["ada"]}
        exec(example, names)
    assert names["answer"].plan == names["plan"]


def test_the_settings_of_the_page_are_those_that_there_are(tmp_path):
    settings = re.findall(r"```toml\n(\[service\].*?)```", PAGE, re.DOTALL)[0]
    description = (
        'schema = 1\nledger = "accord.db"\n[tables.people]\nsource = "people.csv"\nuser = "id"\nepsilon = 1\n'
    )
    (tmp_path / "accord.toml").write_text(description + settings)
    read = accord.catalog(tmp_path / "accord.toml").settings
    said = tomllib.loads(settings)["service"]
    assert read.hosts == ("statistics.clinic.example",) and read.approve_above == 100_000
    assert set(said) == set(vars(read))
    (tmp_path / "accord.toml").write_text(description)
    default = accord.catalog(tmp_path / "accord.toml").settings
    for name in ("queue", "queue_each", "longest", "heads_every", "approve_above"):
        assert getattr(default, name) == getattr(read, name), name


def test_the_head_is_written_elsewhere(tmp_path):
    made = make_office(tmp_path, quota=1)
    books, file = made.office.ledger.books, tmp_path / "heads.txt"
    heads = Heads(books, file, 60)
    heads.write()
    heads.write()  # nothing is new
    made.office.ledger.person("p1", actor="olive", purpose="a test")
    heads.start()
    heads.close()
    lines = [line.split() for line in file.read_text().splitlines()]
    assert len(lines) == 2
    entries = made.office.ledger.entries()
    for _, number, newest in lines:
        assert entries[int(number) - 1].hash == newest
    assert int(lines[-1][1]) == len(entries)
    with serving(made.office) as url:
        document = Caller(url, made.tokens["olive"]).get("/api/head")
        assert (document["entries"], document["hash"]) == (len(entries), entries[-1].hash)
        assert Caller(url, made.tokens["ada"])("GET", "/api/head")[0] == 404


def test_a_head_that_cannot_be_written_is_logged(tmp_path, caplog):
    made = make_office(tmp_path)
    heads = Heads(made.office.ledger.books, tmp_path / "nowhere" / "heads.txt", 60)
    heads.start()
    heads.close()
    assert "the head of the ledger could not be written: FileNotFoundError" in caplog.text


def test_the_office_writes_heads_where_the_file_says(tmp_path):
    make_office(tmp_path)
    text = (tmp_path / "accord.toml").read_text().replace("[service]", '[service]\nheads = "heads.txt"')
    (tmp_path / "accord.toml").write_text(text)
    with serving(Office(tmp_path / "accord.toml")):
        pass
    assert len((tmp_path / "heads.txt").read_text().splitlines()) == 1


def test_another_list_of_keys_is_another_description(tmp_path):
    (tmp_path / "wards.txt").write_text("A\nB\n")
    description = (
        'schema = 1\nledger = "accord.db"\n[tables.people]\nsource = "people.csv"\nuser = "id"\nepsilon = 1\n'
        '[tables.people.columns.ward]\nkeys = "wards.txt"\n'
    )
    (tmp_path / "accord.toml").write_text(description)
    digests = []
    for wards in ("A\nB\n", "A\nB\n", "A\nB\nC\n"):
        (tmp_path / "wards.txt").write_text(wards)
        digests.append(accord.catalog(tmp_path / "accord.toml").digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """One that this machine has signed for itself."""
    folder = tmp_path_factory.mktemp("tls")
    command = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    files = [
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout",
        folder / "key.pem",
        "-out",
        folder / "cert.pem",
    ]
    done = subprocess.run(["openssl", *command, *files], capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_tls_by_options(tmp_path, certificate, monkeypatch):
    made = make_office(tmp_path)
    files = {"cert": certificate / "cert.pem", "key": certificate / "key.pem"}
    with serving(made.office, **files) as url:
        assert url.startswith("https://")
        with pytest.raises(ServiceError, match="is not trusted here"):
            accord.connect(url, made.tokens["ada"])
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        people = accord.connect(url, made.tokens["ada"])["people"]
        assert people.release(accord.mean("stay"), share=0.1).booked is not None
        context = ssl.create_default_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        import urllib.request

        with urllib.request.urlopen(f"{url}/openapi.json", context=context) as response:
            assert response.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_certificates_that_cannot_be_used(tmp_path, certificate):
    (tmp_path / "no.pem").write_text("nothing")
    for cert, key in (("none.pem", "none.pem"), (tmp_path / "no.pem", certificate / "key.pem")):
        with pytest.raises(SourceError, match="the certificate cannot be used"):
            configuration(None, cert=cert, key=key)
    done = CliRunner().invoke(main, ["serve", "--cert", "a.pem"])
    assert done.exit_code == 2 and "belong together" in done.output


def test_duckdb_reads_nothing_but_the_folders_that_are_described(tmp_path):
    """In a process of its own, because it is for good."""
    make_office(tmp_path)
    (tmp_path.parent / "outside.csv").write_text("a\n1\n")
    code = """if True:
        import sys
        from accord.engines.duckdb_connection import OWN
        from accord.server.office import Office
        office = Office("accord.toml")
        OWN.restrict(office.catalog.folders)
        print(office.desks["people"].table().spec().total)
        connection = OWN.connect()
        for sql in ("FROM '../outside.csv'", "FROM read_text('/etc/hostname')", "COPY (SELECT 1) TO '../out.csv'",
                    "INSTALL httpfs", "LOAD httpfs", "SET lock_configuration = false", "SET enable_external_access = true",
                    "SET allowed_directories = ['/']", "ATTACH '../x.db'"):
            try:
                connection.execute(sql).fetchall()
            except Exception as fault:
                print(type(fault).__name__)
            else:
                print("worked:", sql)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    first, *others = done.stdout.splitlines()
    assert first == "45" and len(others) == 9, done.stderr
    assert not any("worked" in line for line in others), others


def test_a_register_whose_entries_count_as_of_now_is_looked_at_again(tmp_path, monkeypatch):
    from accord.server import desks

    (tmp_path / "people.csv").write_text("id,stay\n" + "".join(f"p{k},{k}\n" for k in range(20)))
    (tmp_path / "consent.csv").write_text(
        "id,tier,valid_from\n"
        + "".join(f"p{k},standard,2024-01-01\n" for k in range(20))
        + "p3,out,2024-06-01\n"
    )
    (tmp_path / "accord.toml").write_text(
        'schema = 1\nledger = "accord.db"\n[tables.people]\nsource = "people.csv"\nuser = "id"\nepsilon = "tier"\n'
        "tiers = { standard = 1, out = 0 }\n"
        '[tables.people.consent]\nsource = "consent.csv"\nvalid_from = "valid_from"\n'
        "[tables.people.columns.stay]\nbounds = [0, 60]\n"
    )
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(accord.catalog(tmp_path / "accord.toml")["people"], "people")
    office = Office(tmp_path / "accord.toml")
    desk, now = office.desks["people"], [0.0]
    monkeypatch.setattr(desks, "monotonic", lambda: now[0])
    first = desk.table(0)
    assert first.spec().total == 19 and desk.table(0) is first
    now[0] = 61.0
    assert desk.table(0) is not first
    with serving(office) as url:
        token = tokens.add(
            ledger.books, "ada", tokens.ANALYST, {"people": tokens.Grant(10**6, "year")}, 9,
            accord.ledger.signing.Signature("a", "b"),
        )[1]  # fmt: skip
        office.agree_first(accord.ledger.signing.Signature("a", "b"))
        assert Caller(url, token).answer(MEAN, 0.1)["state"] == "done"
        people = accord.connect(url, token)["people"]
        here = accord.catalog(tmp_path / "accord.toml")["people"]
        plan = people.plan(accord.mean("stay"), share=0.1)
        assert plan.fingerprint == here.plan(accord.mean("stay"), share=0.1).fingerprint
        assert any("consent register" in note for note in plan.assumptions)
