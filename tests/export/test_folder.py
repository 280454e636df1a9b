"""The folder of an export is replaced as a whole, or not at all, and never holds what is somebody else's."""

import shutil
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pytest

from pipeline.export import layouts
from pipeline.export.folder import ExportError, replaced
from pipeline.export.whole import export
from pipeline.home.paths import Home
from pipeline.warehouse.query import QueryError, reader
from tests.conftest import gpufare
from tests.export.conftest import fields, package_of

OURS = '{"name": "gpufare", "resources": []}'


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(
    home: Home, folder: Path, *tables: str, form: str | None = "csv", since: date | None = None
) -> list[str]:
    with reader(home.published, writes_files=True) as connection:
        return layouts.write(connection, folder, None, form, tables, since)


def test_an_export_replaces_only_an_earlier_one(sample_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(sample_home, folder, "gpus", "offers")
    of_offers = {"offers/2026-08-22.csv", "schemas/offers.json"}
    assert set(files_of(folder)) == {"datapackage.json", "gpus.csv"} | of_offers
    write(sample_home, folder, "gpus", form=None)
    assert set(files_of(folder)) == {"datapackage.json", "gpus.parquet"}
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    before = files_of(folder)
    refused = gpufare("export", str(folder), home=sample_home)
    said = f"{folder} has mine/notes.txt in it, which no export wrote: give a new folder, or an empty one"
    assert (refused.returncode, refused.stderr) == (1, f"Error: {said}\n")
    assert files_of(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_is_somebody_elses_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package, folders without a file, a file that appears meanwhile, the folder of the shell."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "datapackage.json").write_text('{"name": "another", "resources": []}')
    with pytest.raises(ExportError, match=r"has datapackage\.json in it, which no export wrote"):
        replaced(folder).__enter__()
    assert files_of(folder) == {"datapackage.json": b'{"name": "another", "resources": []}'}
    (folder / "datapackage.json").unlink()
    for name in "abcd":
        (folder / name / "2026").mkdir(parents=True)
    with pytest.raises(ExportError, match="has a/2026, b/2026, c/2026 and 1 more in it"):
        replaced(folder).__enter__()
    shutil.rmtree(folder)
    folder.mkdir()
    with pytest.raises(ExportError, match=r"notes\.txt"), replaced(folder):
        (folder / "notes.txt").write_text("mine")
    assert files_of(folder) == {"notes.txt": b"mine"}
    monkeypatch.chdir(folder)
    with pytest.raises(ExportError, match="this shell is in it"):
        replaced(Path()).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_export_that_breaks_off_leaves_the_former_one(sample_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(sample_home, folder, "gpus")
    before = files_of(folder)
    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(sample_home.published, copy)
    with duckdb.connect() as broken:  # its second table cannot be written
        broken.execute(f"ATTACH '{copy}' AS gpufare; USE gpufare; ALTER TABLE claims DROP COLUMN terms")
        with pytest.raises(QueryError, match="terms"):
            export(broken, folder, "csv", ["claim_rules", "claims"])
    copy.unlink()
    assert files_of(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from pipeline.export import folder
real = Path.rename
def rename(self, target):
    if sys.argv[2] == "before" or self.name.endswith((".former", ".unfinished")):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.rename = rename
with folder.replaced(Path(sys.argv[1])) as new:
    (new / "datapackage.json").write_text('{"name": "gpufare", "resources": []}')
"""


@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_kill_leaves_the_former_export_or_brings_it_back(tmp_path: Path, moment: str) -> None:
    folder = tmp_path / "out"
    with replaced(folder) as new:
        (new / "datapackage.json").write_text('{"name": "gpufare", "resources": [{"path": "a.csv"}]}')
        (new / "a.csv").write_text("a\n")
    before = files_of(folder)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), moment], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert folder.exists() == (moment == "before")
    with replaced(folder) as new:
        assert files_of(folder) == before  # also where the kill came between the two renames
        (new / "datapackage.json").write_text(OURS)
    assert set(files_of(folder)) == {"datapackage.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_second_export_to_the_same_folder_is_refused_and_the_first_one_ends(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with replaced(folder) as new:
        (new / "datapackage.json").write_text(OURS)
        with pytest.raises(ExportError, match=r"another export is writing to .*out: wait"):
            replaced(folder).__enter__()
        with replaced(tmp_path / "other"):  # another folder is no matter
            pass
    assert set(files_of(folder)) == {"datapackage.json"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_only_the_tables_and_days_that_are_asked_for(sample_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    late = date(2026, 8, 23)
    for _ in range(2):  # an export without the rows of a day can be replaced, too
        said = write(sample_home, folder, "price_history", "gpus", "offers", since=late)
        assert said[-1] == "offers: no rows since 2026-08-23"
        assert set(files_of(folder)) == {"datapackage.json", "gpus.csv", "price_history.csv"}
        assert (folder / "price_history.csv").read_text(encoding="utf-8").count("\n") == 1
    write(sample_home, folder, "offers", since=date(2026, 8, 22))
    assert "offers/2026-08-22.csv" in files_of(folder)
    # A key into a table that is not in the package is no foreign key of it.
    assert '"foreignKeys"' not in (folder / "schemas" / "offers.json").read_text(encoding="utf-8")
    assert len(package_of(folder)["resources"]) == 1


def test_a_table_that_is_not_published_is_an_error_with_the_nearest(
    sample_home: Home, tmp_path: Path
) -> None:
    answer = gpufare("export", str(tmp_path / "out"), "--tables", "gpus,offer", home=sample_home)
    assert answer.returncode == 1
    assert "no table 'offer' is published; did you mean offers" in answer.stderr
    assert not (tmp_path / "out").exists()


def test_prices_that_may_not_be_published_are_refused(sample_home: Home, tmp_path: Path) -> None:
    answer = gpufare("export", str(tmp_path / "out"), "--republishable", home=sample_home)
    said = "Error: the published file has prices of crusoe, runpod, vast, whose terms forbid publishing them"
    assert (answer.returncode, answer.stderr[: len(said)]) == (1, said)
    assert not (tmp_path / "out").exists()
    tables = ("offers", "price_history", "ranking_history", "rejects")
    for rows in tables:
        with duckdb.connect() as connection:  # as after an earlier day
            for table in tables:
                connection.execute(f"CREATE TABLE {table} AS SELECT 'verda' AS source")
            layouts.check_republishable(connection)
            connection.execute(f"INSERT INTO {rows} VALUES ('vast')")
            with pytest.raises(ExportError, match="has prices of vast, whose terms"):
                layouts.check_republishable(connection)


def test_a_republished_export_has_no_rows_of_the_sources_pages(
    sample_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.export.layouts.check_republishable", lambda connection: None)
    with reader(sample_home.published, writes_files=True) as connection:
        columns = connection.sql("FROM main.rejects").columns
        assert "raw" in columns
        columns.remove("raw")
        for form in ("parquet", "csv"):
            folder = tmp_path / form
            layouts.write(connection, folder, None, form, ("rejects",), None, republishable=True)
            (file,) = (folder / "rejects").iterdir()
            assert duckdb.sql(f"FROM '{file}'").columns == columns
            assert list(fields(folder, package_of(folder)["resources"][0])) == columns
