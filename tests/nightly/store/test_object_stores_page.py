"""docs/how-to/object-stores.md: its lines are run against an S3 server, its queries by DuckDB."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pytest

from pipeline.cli.lake import PACKAGES
from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import gpufare
from tests.documentation.pages import PROJECT, blocks
from tests.nightly.store.conftest import S3

PAGE = "docs/how-to/object-stores.md"
(QUERIES,) = [block.text for block in blocks("sql") if block.page == PAGE]
CONSOLE = [block.commands for block in blocks("console") if block.page == PAGE]
(REMOTE,) = [line for lines in CONSOLE for line in lines if line.startswith("export RCLONE_")]
MADE_AGAIN = {"cache", "published", "report"}


@pytest.fixture
def server(s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server with the bucket of the page."""
    s3.make_bucket("my-bucket")
    monkeypatch.setenv("GPUFARE_STORE", "s3://my-bucket/gpufare")
    return s3


def walked(commands: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run lines of the page in bash, where the remote named ``bucket`` leads to the server of the tests."""
    remote = "export RCLONE_CONFIG_BUCKET_PROVIDER=Other RCLONE_CONFIG_BUCKET_ENDPOINT=$AWS_ENDPOINT_URL"
    python = f'gpufare() {{ "{sys.executable}" -m pipeline.cli "$@"; }}'
    environment = os.environ | {HOME_VARIABLE: str(home), "RCLONE_CONFIG": "", "RCLONE_RETRIES": "1"}
    environment.pop("AWS_CA_BUNDLE", None)  # rclone 1.60 cannot use it
    return subprocess.run(
        ["bash", "-e", "-c", "\n".join([python, REMOTE, remote, *commands])],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.relative_to(root).parts[0] not in MADE_AGAIN
    }


def test_a_home_is_published_copied_and_continued_elsewhere(
    server: S3, sample_home: Home, tmp_path: Path
) -> None:
    for tool in ("rclone", "jq"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (apt-get install {tool})")
    publishing, _, copying, restoring = CONSOLE
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(sample_home.root, first)
    (first / "cache" / ".half.1.tmp").write_text("half")
    (first / "record" / "offers" / ".half.1.tmp").write_text("half")

    told = walked(publishing, first)
    assert told.returncode == 0, told.stderr
    assert "stored at s3://my-bucket/gpufare: database, page, parquet as of" in told.stdout
    assert "s3://my-bucket/gpufare/published/database-" in told.stdout
    copied = walked(copying, first)
    assert copied.returncode == 0, copied.stderr
    gone = next((first / "record" / "offers").rglob("*.parquet"))
    replaced = gone.read_bytes()
    gone.unlink()
    assert walked(copying, first).returncode == 0

    restored = walked(restoring, second)

    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert "record    " in restored.stdout
    (first / "record" / "offers" / ".half.1.tmp").unlink()
    assert files(second) == files(first)
    assert (second / "published" / "gpufare.duckdb").read_bytes() == Home(first).published.read_bytes()
    kept = walked([f"rclone cat bucket:my-bucket/replaced --include '{gone.name}' | sha256sum"], second)
    here = subprocess.run(["sha256sum"], input=replaced, capture_output=True, check=True)
    assert kept.stdout == here.stdout.decode()


def test_the_queries_read_what_the_pointer_names(sample_home: Home, tmp_path: Path) -> None:
    """By this DuckDB in a folder: its extension for S3 cannot be had."""
    folder = tmp_path / "bucket"
    stored = gpufare("store", "--store", f"file://{folder}", "publish", home=sample_home)
    assert stored.returncode == 0, stored.stderr
    queries = re.sub(r"^(INSTALL|CREATE SECRET).*\n", "", QUERIES, flags=re.MULTILINE)
    with duckdb.connect() as connection:
        rows = connection.execute(queries.replace("s3://my-bucket/gpufare", str(folder))).fetchall()
    assert len(rows) == 10


def test_the_queries_read_it_on_s3(server: S3, sample_home: Home) -> None:
    """By the DuckDB of the lake, whose extension is a package, with the address in place of the variable."""
    if not (PACKAGES / ".ready").exists():
        pytest.skip("DuckDB's extension for S3 is not installed (make .venv/lake/.ready)")
    assert gpufare("store", "publish", home=sample_home).returncode == 0
    newest = json.loads(gpufare("store", "newest", "--format", "json").stdout)
    (row,) = (each for each in newest if each["part"] == "database")
    endpoint = f"ENDPOINT '{urlsplit(server.url).netloc}', URL_STYLE 'path', USE_SSL false"
    queries = QUERIES.replace("getvariable('newest')", f"'{row['url']}'")
    queries = queries.replace("KEY_ID '...', SECRET '...'", f"KEY_ID 'k', SECRET 's', {endpoint}")
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "import duckdb, duckdb_extension_httpfs as package, pathlib\n"
        "(file,) = pathlib.Path(package.__file__).parent.glob('extensions/*/httpfs.duckdb_extension')\n"
        "queries = sys.argv[1].replace('INSTALL httpfs; LOAD httpfs;', f\"LOAD '{file}';\")\n"
        "*first, last = queries.strip().removesuffix(';').split(';\\n')\n"
        "connection = duckdb.connect()\n"
        "for query in first: connection.execute(query)\n"
        "print(connection.sql(last).count('*').fetchall())\n"
        "print(connection.sql('SELECT getvariable($name)', params={'name': 'newest'}).fetchall())\n"
    )
    command = [sys.executable, "-c", code, queries, PACKAGES]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.stdout.splitlines()[-2:] == ["[(10,)]", f"[({row['url']!r},)]"], found.stderr


def test_the_lifecycle_rule_is_one(server: S3) -> None:
    boto3 = pytest.importorskip("boto3", reason="no client that checks a rule: boto3 is missing")
    (rule,) = [block.text for block in blocks("json") if block.page == PAGE]
    client = boto3.client("s3", endpoint_url=server.url, region_name="us-east-1")
    client.put_bucket_lifecycle_configuration(Bucket="my-bucket", LifecycleConfiguration=json.loads(rule))
    (kept,) = client.get_bucket_lifecycle_configuration(Bucket="my-bucket")["Rules"]
    assert kept["Filter"] == {"Prefix": "gpufare/published/"}
    assert kept["Expiration"]["Days"] == 30
