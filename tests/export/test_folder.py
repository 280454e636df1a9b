"""The folder of an export is replaced as a whole, or not at all, and never holds what is somebody else's."""

import os
import shutil
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pytest

from pipeline.export import folder as folders
from pipeline.export import layouts
from pipeline.export.folder import ExportError, replaced
from pipeline.export.whole import export
from pipeline.home.paths import Home
from pipeline.warehouse.query import QueryError, reader
from tests.conftest import gpufare
from tests.export.conftest import package_of


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(home: Home, folder: Path, *tables: str, form: str = "csv", since: date | None = None) -> list[str]:
    with reader(home.published, writes_files=True) as connection:
        return export(connection, folder, form, tables, since)  # type: ignore[arg-type]


def test_an_export_replaces_only_an_earlier_one(sample_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(sample_home, folder, "gpus", "offers")
    assert set(files_of(folder)) == {
        "datapackage.json", "gpus.csv", "offers/2026-08-22.csv", "schemas/offers.json",
    }  # fmt: skip
    write(sample_home, folder, "gpus", form="parquet")
    assert set(files_of(folder)) == {"datapackage.json", "gpus.parquet"}
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    before = files_of(folder)
    refused = gpufare("export", str(folder), home=sample_home)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"Error: {folder} has mine/notes.txt in it, which no export wrote: give a new folder, or an empty "
        "one\n"
    )
    assert files_of(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_with_a_foreign_package_is_refused(sample_home: Home, tmp_path: Path) -> None:
    other = tmp_path / "datapackage.json"
    other.write_text('{"name": "another", "resources": []}')
    with pytest.raises(ExportError, match=r"has datapackage\.json in it, which no export wrote"):
        write(sample_home, tmp_path, "gpus")
    assert other.read_text() == '{"name": "another", "resources": []}'


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
        (new / "datapackage.json").write_text('{"name": "gpufare", "resources": []}')
    assert set(files_of(folder)) == {"datapackage.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_appears_meanwhile_is_not_lost(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(ExportError, match=r"notes\.txt"), replaced(folder):
        (folder / "notes.txt").write_text("mine")
    assert files_of(folder) == {"notes.txt": b"mine"}


def test_a_folder_that_cannot_be_renamed_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the mount point of a volume."""
    folder = tmp_path / "out"
    folder.mkdir()

    def busy(self: Path, target: Path) -> None:
        raise OSError(16, os.strerror(16))

    monkeypatch.setattr(folders.Path, "rename", busy)
    with pytest.raises(ExportError, match="cannot be replaced as a whole"), replaced(folder):
        pass
    assert folder.is_dir()


def test_table_without_rows_is_reported_and_can_be_exported_again(sample_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with reader(sample_home.published, writes_files=True) as connection:
        for _ in range(2):
            lines = layouts.write(connection, folder, None, None, ("offers", "gpus"), date(2026, 11, 23))
            assert lines[-1] == "offers: no rows since 2026-11-23"
            assert set(files_of(folder)) == {"datapackage.json", "gpus.parquet"}


def test_a_folder_of_empty_folders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out" / "photos" / "2026").mkdir(parents=True)
    with pytest.raises(ExportError, match="has photos/2026 in it"), replaced(tmp_path / "out"):
        pass
    assert (tmp_path / "out" / "photos" / "2026").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_second_export_to_the_same_folder_is_refused_and_the_first_one_ends(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with replaced(folder) as new:
        (new / "datapackage.json").write_text("{}")
        with pytest.raises(ExportError, match=r"another export is writing to .*out: wait"), replaced(folder):
            pass
        with replaced(tmp_path / "other"):  # another folder is no matter
            pass
    assert set(files_of(folder)) == {"datapackage.json"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


@pytest.mark.parametrize("tables", ["", " , "])
def test_no_table_at_all_is_refused(sample_home: Home, tmp_path: Path, tables: str) -> None:
    answer = gpufare("export", str(tmp_path / "out"), "--tables", tables, home=sample_home)
    assert answer.returncode == 1
    assert "no table '' is published" in answer.stderr
    assert not (tmp_path / "out").exists()


def test_the_folder_that_the_shell_is_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match="this shell is in it"), replaced(Path()):
        pass
    assert tmp_path.is_dir()


def test_only_the_tables_and_days_that_are_asked_for(sample_home: Home, tmp_path: Path) -> None:
    write(sample_home, tmp_path / "new", "offers", "price_history", "gpus", since=date(2026, 8, 23))
    assert set(files_of(tmp_path / "new")) == {
        "datapackage.json", "gpus.csv", "price_history.csv",
    }  # fmt: skip
    assert (tmp_path / "new" / "price_history.csv").read_text(encoding="utf-8").count("\n") == 1
    write(sample_home, tmp_path / "all", "offers", since=date(2026, 8, 22))
    assert "offers/2026-08-22.csv" in files_of(tmp_path / "all")
    # A key into a table that is not in the package is no foreign key of it.
    assert '"foreignKeys"' not in (tmp_path / "all" / "schemas" / "offers.json").read_text(encoding="utf-8")
    assert len(package_of(tmp_path / "all")["resources"]) == 1


def test_a_table_that_is_not_published_is_an_error_with_the_nearest(
    sample_home: Home, tmp_path: Path
) -> None:
    answer = gpufare("export", str(tmp_path / "out"), "--tables", "gpus,offer", home=sample_home)
    assert answer.returncode == 1
    assert answer.stderr.startswith("Error: no table 'offer' is published; did you mean offers")
    assert not (tmp_path / "out").exists()
