"""Several files as one table: patterns, lists, folders, and what the names of folders tell."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accord
from accord.errors import SourceError

COUNT = accord.count()
SUM = accord.sum("v", bounds=(0, 9), step=1)


def parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"e": [1.0], "v": [3.0], **columns}), path)
    return path


def csv(path, v=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"e,v\n1,{v}\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


WRITERS = {".parquet": parquet, ".csv": csv, ".csv.gz": csv}


def integers(source, query=SUM, **options):
    summary = accord.table(source, **{"epsilon": "e", **options}).reader.summary(query)
    return summary.people.tolist(), list(summary.rows())


@pytest.fixture(params=WRITERS)
def days(request, tmp_path):
    """A folder with a folder for each of three days, with one, two and three people."""
    write, ending = WRITERS[request.param], request.param
    for day, people in (("2026-01-15", 1), ("2026-01-16", 2), ("2026-02-01", 3)):
        for k in range(people):
            write(tmp_path / "people" / f"day={day}" / f"part-{k}{ending}")
    return tmp_path / "people"


def test_a_folder_is_all_files_in_it(days):
    assert integers(days) == ([6], [[6, 18]])
    assert integers(f"{days}/") == ([6], [[6, 18]])


def test_a_list_names_files_patterns_and_folders_and_reads_each_file_once(days):
    first, second = (str(days / f"day=2026-01-{day}" / "*") for day in (15, 16))
    assert integers([first, second]) == ([3], [[3, 9]])
    assert integers([first, second, first, str(days / "day=2026-01-1*" / "*")], COUNT) == ([3], [[3, 3]])


@pytest.mark.parametrize(
    ("where", "people"),
    [
        ("day = '2026-01-16'", 2),
        ("day >= '2026-01-16'", 5),
        ("day < '2026-02-01'", 3),
        ("day IN ('2026-01-15', '2026-02-01')", 4),
        ("day IS NULL", 0),
    ],
)
def test_a_folders_name_is_a_column(days, where, people):
    assert integers(days, accord.count(where=where)) == ([6], [[6, people]])
    assert integers(days / "*" / "*", accord.count(where=where)) == ([6], [[6, people]])
    assert accord.table(days, epsilon="e").columns["day"] == "untyped"


def test_a_folders_name_may_tell_private_and_public_groups(days):
    keys = ["2026-01-15", "2026-01-16", "2026-02-01"]
    people = accord.table(days, epsilon=float("inf"))
    for membership in ("private", "public"):
        answer = people.release(accord.count(by="day", keys=keys, membership=membership))
        assert [row["value"] for row in answer.value] == [1, 2, 3], membership


def test_numbers_and_texts_of_folders_are_read_as_they_are_compared(tmp_path):
    for year, region in ((2025, "north"), (2026, "a%20b%2Fc"), (2026, "__HIVE_DEFAULT_PARTITION__")):
        parquet(tmp_path / f"year={year}" / f"region={region}" / "part.parquet")
    for where, people in (
        ("year >= 2026", 2),
        ("year = '2026'", 2),
        ("region = 'a b/c'", 1),
        ("region IS NULL", 1),
        ("year = 2026 AND region = 'north'", 0),
    ):
        assert integers(tmp_path, accord.count(where=where)) == ([3], [[3, people]]), where
    years = accord.sum("year", bounds=(2000, 2100), step=1)
    assert integers(tmp_path, years) == ([3], [[3, 25 + 26 + 26]])


def test_only_folders_below_what_was_named_are_columns(days):
    assert "day" not in accord.table(days / "day=2026-01-15", epsilon="e").columns
    assert "day" not in accord.table(days / "day=2026-01-15" / "part*", epsilon="e").columns
    assert "day" in accord.table(days / "day=2026-*" / "part*", epsilon="e").columns


def test_a_column_of_the_files_counts_instead_of_a_folders_name(tmp_path):
    parquet(tmp_path / "V=7" / "accord_file=x" / "part.parquet", accord_file=["y"])
    parquet(tmp_path / "V=8" / "accord_file=x" / "it's [1].parquet", accord_file=["y"])
    assert integers(tmp_path) == ([2], [[2, 6]])
    assert list(accord.table(tmp_path, epsilon="e").columns) == ["e", "v", "accord_file"]


def test_odd_names_of_folders_and_files(tmp_path):
    for k, name in enumerate(("it's", 'a"b', "[x]", "ñ☃", "a*")):
        parquet(tmp_path / f"my day={name}" / f"part [{k}]'s.parquet", accord_file=["y"])
    for name in ("it''s", 'a"b', "[x]", "ñ☃", "a*"):
        count = accord.count(where=f"\"my day\" = '{name}'")
        assert integers(tmp_path, count) == ([5], [[5, 1]]), name


def test_what_other_programs_hide_in_a_folder_is_no_file(days):
    (days / "_SUCCESS").write_text("")
    (days / "_temporary").mkdir()
    csv(days / "_temporary" / "part.csv")
    csv(days / ".hidden.csv")
    (days / "readme.txt").write_text("x")
    assert integers(days, COUNT) == ([6], [[6, 6]])


def test_packed_and_plain_files_together(tmp_path):
    csv(tmp_path / "a.csv", 1), csv(tmp_path / "b.csv.gz", 2)
    assert integers(tmp_path) == ([2], [[2, 3]])


def refusal(source):
    with pytest.raises(SourceError) as refused:
        accord.table(source, epsilon="e")
    return str(refused.value)


def test_files_that_are_not_one_table_are_refused_by_names_and_schemas_alone(tmp_path):
    folder = tmp_path / "people"
    folder.mkdir()
    assert refusal(folder) == (
        f"'{folder}' is a folder without Parquet or CSV files. "
        "It reads .parquet, .pq, .csv, .tsv (CSV also as .gz and .zst) in it and below."
    )
    parquet(folder / "a" / "1.parquet"), csv(folder / "a" / "2.csv")
    assert refusal(folder) == (
        f"'{folder}' has both Parquet and CSV files. Name one kind by a pattern, such as '*.parquet'."
    )
    assert refusal([folder / "a" / "1.parquet", folder / "a" / "2.csv"]).startswith(
        f"'{folder / 'a' / '1.parquet'}' and 1 more has both Parquet and CSV files."
    )
    (folder / "a" / "2.csv").unlink()
    parquet(folder / "day=1" / "1.parquet")
    assert refusal(folder) == (
        f"the folders of '{folder}' do not tell of the same columns in the same order (name=value). "
        "Name them alike, or name the files by several patterns."
    )
    parquet(tmp_path / "twice" / "day=1" / "Day=2" / "1.parquet")
    assert refusal(tmp_path / "twice") == (
        f"two folders within each other in '{tmp_path / 'twice'}' have one name. Rename one of them."
    )
    parquet(tmp_path / "other" / "1.parquet"), parquet(tmp_path / "other" / "2.parquet", w=[1])
    assert refusal(tmp_path / "other") == (
        f"the files of '{tmp_path / 'other'}' do not have the same columns. Give each of them all columns."
    )
    parquet(tmp_path / "types" / "1.parquet", w=["x"]), parquet(tmp_path / "types" / "2.parquet", w=[1])
    assert refusal(tmp_path / "types") == (
        f"column 'w' is VARCHAR in one file of '{tmp_path / 'types'}' and BIGINT in another. "
        "Write it with one type."
    )
    assert refusal([tmp_path / "types" / "1.parquet", "nowhere/*.parquet"]) == (
        "there is no file 'nowhere/*.parquet'. Check the path; "
        "a pattern such as 'people/*.parquet' names several files."
    )
    assert refusal([]).startswith("cannot read a list. A table is made from a path, glob, folder or list of")
    assert refusal([{"e": 1}]).startswith("cannot read a list.")
