"""docs/how-to/object-stores.md: its lines are run against an S3 server, its queries by DuckDB."""

import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import gpufare
from tests.documentation.pages import PROJECT, blocks
from tests.nightly.processes import output_of
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


def walked(commands: list[str], home: Path) -> str:
    """Run lines of the page in bash, where the remote named ``bucket`` leads to the server of the tests."""
    remote = "export RCLONE_CONFIG_BUCKET_PROVIDER=Other RCLONE_CONFIG_BUCKET_ENDPOINT=$AWS_ENDPOINT_URL"
    python = f'gpufare() {{ "{sys.executable}" -m pipeline.cli "$@"; }}'
    environment = os.environ | {HOME_VARIABLE: str(home), "RCLONE_CONFIG": "", "RCLONE_RETRIES": "1"}
    environment.pop("AWS_CA_BUNDLE", None)  # rclone 1.60 cannot use it
    command = ["bash", "-e", "-c", "\n".join([python, REMOTE, remote, *commands])]
    return output_of(command, env=environment, cwd=PROJECT)


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
    assert "stored at s3://my-bucket/gpufare: database, page, parquet as of" in told
    assert "s3://my-bucket/gpufare/published/database-" in told
    walked(copying, first)
    gone = next((first / "record" / "offers").rglob("*.parquet"))
    replaced = gone.read_bytes()
    gone.unlink()
    walked(copying, first)
    assert "record    " in walked(restoring, second)
    (first / "record" / "offers" / ".half.1.tmp").unlink()
    assert files(second) == files(first)
    assert (second / "published" / "gpufare.duckdb").read_bytes() == Home(first).published.read_bytes()
    kept = walked([f"rclone cat bucket:my-bucket/replaced --include '{gone.name}' | sha256sum"], second)
    assert kept.split()[0] == hashlib.sha256(replaced).hexdigest()


def test_the_queries_read_what_the_pointer_names(sample_home: Home, tmp_path: Path) -> None:
    """By this DuckDB in a folder: its extension for S3 cannot be had."""
    folder = tmp_path / "bucket"
    stored = gpufare("store", "--store", f"file://{folder}", "publish", home=sample_home)
    assert stored.returncode == 0, stored.stderr
    queries = re.sub(r"^(INSTALL|CREATE SECRET).*\n", "", QUERIES, flags=re.MULTILINE)
    with duckdb.connect() as connection:
        rows = connection.execute(queries.replace("s3://my-bucket/gpufare", str(folder))).fetchall()
    assert len(rows) == 10


def test_the_lifecycle_rule_is_one(server: S3) -> None:
    boto3 = pytest.importorskip("boto3", reason="no client that checks a rule: boto3 is missing")
    (rule,) = [block.text for block in blocks("json") if block.page == PAGE]
    client = boto3.client("s3", endpoint_url=server.url, region_name="us-east-1")
    client.put_bucket_lifecycle_configuration(Bucket="my-bucket", LifecycleConfiguration=json.loads(rule))
    (kept,) = client.get_bucket_lifecycle_configuration(Bucket="my-bucket")["Rules"]
    assert kept["Filter"] == {"Prefix": "gpufare/published/"}
    assert kept["Expiration"]["Days"] == 30
