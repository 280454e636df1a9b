"""The process that talks to a DuckLake, in an environment with DuckDB 1.5.5 and its extensions.

It imports nothing of gpufare, which is on a newer DuckDB. Run as a script, it reads one request as JSON from
standard input and answers in JSON on standard output.
"""

import importlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb

SCHEMA = "gpufare_lake"
"""Of the catalogue's tables in PostgreSQL, so that they can be beside others."""

ATTEMPTS = 12
LONGEST_PAUSE_SECONDS = 2.0

Connection = duckdb.DuckDBPyConnection
Request = Mapping[str, Any]

_DAYS = """
CREATE TABLE IF NOT EXISTS lake.days (
    unit VARCHAR, source VARCHAR, day DATE, attempt VARCHAR, digest VARCHAR, parts VARCHAR, offers BIGINT,
    pushed_at TIMESTAMPTZ
)
"""
"""A row per unit, which is a source's day, or a day's exchange rates and ranking: its newest attempt, the
hash of its content, which folders of the record it is of, and how many offers it has."""

_JUDGED = """
CREATE OR REPLACE TEMP TABLE judged AS
SELECT
    ours.*,
    theirs.unit IS NOT NULL AS known,
    CASE
        WHEN theirs.digest = ours.digest THEN 'same'
        WHEN theirs.attempt > ours.attempt THEN 'newer there'
        ELSE 'pushed'
    END AS verdict
FROM read_parquet(?) AS ours
LEFT JOIN lake.days AS theirs USING (unit)
"""

_LISTED = "SELECT unit, source, day::VARCHAR, attempt, digest, parts, offers FROM lake.days"


def main() -> int:
    """Answer one request; exit code 1 with the reason when it cannot be done."""
    request = json.loads(sys.stdin.read())
    try:
        answer = _ACTIONS[request["action"]](_attached(request), request)
    except Exception as error:
        print(json.dumps({"error": _scrubbed(f"{error}", request)}))
        return 1
    print(json.dumps(answer))
    return 0


def _attached(request: Request) -> Connection:
    """A connection whose database ``lake`` is the lake. Raises duckdb.Error."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    _load(connection, "ducklake")
    _load(connection, "postgres_scanner")
    _allow_s3(connection)
    options = [f"META_SCHEMA '{SCHEMA}'"]
    if request.get("data"):
        options.append(f"DATA_PATH {_text(request['data'])}")
    else:
        options.append("CREATE_IF_NOT_EXISTS false")
    lake = f"ducklake:postgres:{request['catalogue']}"
    connection.execute(f"ATTACH {_text(lake)} AS lake ({', '.join(options)})")
    connection.execute("SET ducklake_max_retry_count = 50")
    return connection


def _load(connection: Connection, name: str) -> None:
    package = importlib.import_module(f"duckdb_extension_{name}")
    (file,) = Path(str(package.__file__)).parent.glob(f"extensions/*/{name}.duckdb_extension")
    connection.execute(f"LOAD {_text(str(file))}")


def _allow_s3(connection: Connection) -> None:
    """From the environment variables that other tools of S3 have, too."""
    names = {
        "KEY_ID": "AWS_ACCESS_KEY_ID",
        "SECRET": "AWS_SECRET_ACCESS_KEY",
        "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    }
    options = {option: os.environ[name] for option, name in names.items() if os.environ.get(name)}
    if not options:
        return
    _load(connection, "httpfs")
    options["REGION"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    written = [f"{option} {_text(value)}" for option, value in options.items()]
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        address = urlsplit(endpoint)
        written += [f"ENDPOINT {_text(address.netloc)}", "URL_STYLE 'path'"]
        written.append(f"USE_SSL {'true' if address.scheme == 'https' else 'false'}")
    connection.execute(f"CREATE SECRET (TYPE s3, {', '.join(written)})")


def _create(connection: Connection, request: Request) -> Any:
    connection.execute(_DAYS)
    return {"data": request["data"]}


def _list(connection: Connection, request: Request) -> Any:
    """What the lake has since a day."""
    return {"days": connection.execute(f"{_LISTED} WHERE day >= ?::DATE", [request["since"]]).fetchall()}


def _push(connection: Connection, request: Request) -> Any:
    """Put whole units into the lake, all in one transaction, in place of what it has of them; not those of
    which it has a newer attempt. Tried again when another writer was in the way."""
    folder = Path(request["folder"])
    parts = sorted(path.stem for path in folder.glob("*.parquet") if path.stem != "days")
    _in_transaction(
        connection, lambda: _fit_tables(connection, [folder / f"{part}.parquet" for part in parts])
    )

    def replace() -> Any:
        connection.execute(_JUDGED, [str(folder / "days.parquet")])
        replaced = connection.execute(
            "SELECT count(*) FROM judged WHERE known AND verdict = 'pushed'"
        ).fetchall()
        for table in _tables(connection) if replaced[0][0] else ():
            connection.execute(
                f'DELETE FROM lake."{table}"'  # noqa: S608 - a table of the lake
                " WHERE unit IN (SELECT unit FROM judged WHERE verdict = 'pushed')"
            )
        for part in parts:
            connection.execute(
                f'INSERT INTO lake."{part}" BY NAME FROM read_parquet(?)'
                " SEMI JOIN (FROM judged WHERE verdict = 'pushed') USING (unit)",
                [str(folder / f"{part}.parquet")],
            )
        connection.execute(
            "INSERT INTO lake.days BY NAME SELECT * EXCLUDE (verdict, known), now() AS pushed_at FROM judged"
            " WHERE verdict = 'pushed'"
        )
        return connection.execute("SELECT unit, verdict FROM judged").fetchall()

    return {"verdicts": _in_transaction(connection, replace)}


def _fit_tables(connection: Connection, files: Sequence[Path]) -> None:
    """Make the tables, and the columns that they lack. What another writer makes at the same time is fine."""
    tables = _tables(connection)
    for file in files:
        wanted = connection.execute("DESCRIBE FROM read_parquet(?)", [str(file)]).fetchall()
        if file.stem not in tables:
            columns = ", ".join(f'"{name}" {kind}' for name, kind, *_ in wanted)
            connection.execute(f'CREATE TABLE lake."{file.stem}" ({columns})')
            continue
        known = {name for name, *_ in connection.execute(f'DESCRIBE lake."{file.stem}"').fetchall()}
        for name, kind, *_ in wanted:
            if name not in known:
                connection.execute(f'ALTER TABLE lake."{file.stem}" ADD COLUMN "{name}" {kind}')


def _tables(connection: Connection, database: str = "lake", schema: str = "main") -> list[str]:
    rows = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND schema_name = ? ORDER BY ALL",
        [database, schema],
    ).fetchall()
    return [name for (name,) in rows]


def _pull(connection: Connection, request: Request) -> Any:
    """Write the rows of some units as a file per table. They and the list of them are of one moment."""
    folder = Path(request["folder"])

    def copy() -> Any:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE wanted AS SELECT unnest(?::VARCHAR[]) AS unit", [request["units"]]
        )
        for table in _tables(connection):
            if table != "days":
                connection.execute(
                    f'COPY (FROM lake."{table}" SEMI JOIN wanted USING (unit))'
                    f" TO {_text(str(folder / f'{table}.parquet'))} (FORMAT parquet)"
                )
        return connection.execute(f"{_LISTED} SEMI JOIN wanted USING (unit)").fetchall()

    return {"days": _in_transaction(connection, copy)}


def _publish(connection: Connection, request: Request) -> Any:
    """Make the schema ``published`` the tables of a published file, in one transaction: a reader sees all
    tables of one publication. Tables that are the same already stay; a newer publication does, too."""
    connection.execute(f"ATTACH {_text(request['file'])} AS ours (READ_ONLY)")
    ours = _tables(connection, "ours")

    def replace() -> Any:
        connection.execute("CREATE SCHEMA IF NOT EXISTS lake.published")
        theirs = _tables(connection, "lake", "published")
        if "publication" in theirs and (newer := connection.execute(_NEWER).fetchall()):
            return {"newer": newer[0][0]}
        for table in {*theirs} - {*ours}:
            connection.execute(f'DROP TABLE lake.published."{table}"')
        changed = [t for t in ours if t not in theirs or not _is_same(connection, t)]
        for table in changed:
            connection.execute(
                f'CREATE OR REPLACE TABLE lake.published."{table}" AS FROM ours.main."{table}"'
            )
            if not _is_same(connection, table):
                raise ValueError(f"the table {table} in the lake has not the rows of the published file")
        return {"newer": None, "tables": len(ours), "replaced": len(changed)}

    return _in_transaction(connection, replace)


_NEWER = """
SELECT concat_ws(', ', there.as_of_day, strftime(there.as_of_time, '%Y-%m-%d %H:%M'))
FROM lake.published.publication AS there, ours.main.publication AS here
WHERE (there.as_of_day, there.as_of_time) > (here.as_of_day, here.as_of_time)
"""


def _is_same(connection: Connection, table: str) -> bool:
    """Whether the lake's table has the columns and the rows of the published file's."""
    found = []
    for place in ("lake.published", "ours.main"):
        name = f'{place}."{table}"'
        columns = connection.execute(f"DESCRIBE {name}").fetchall()
        rows = f"SELECT count(*), sum(hash(t)::HUGEINT) FROM {name} AS t"  # noqa: S608 - one of its tables
        found.append(([each[:2] for each in columns], connection.execute(rows).fetchall()))
    return bool(found[0] == found[1])


def _in_transaction(connection: Connection, action: Callable[[], Any]) -> Any:
    """Do it all or nothing of it; again, after a pause, when another writer was in the way."""
    for attempt in range(1, ATTEMPTS + 1):
        connection.begin()
        try:
            answer = action()
            connection.commit()
        except duckdb.Error as error:
            with suppress(duckdb.Error):  # a commit that failed has rolled back
                connection.rollback()
            if attempt == ATTEMPTS or not _is_conflict(error):
                raise
            time.sleep(random.uniform(0.5, 1) * min(LONGEST_PAUSE_SECONDS, 0.05 * 2**attempt))  # noqa: S311
        else:
            return answer
    raise AssertionError


def _is_conflict(error: duckdb.Error) -> bool:
    text = str(error).lower()
    return isinstance(error, duckdb.TransactionException) or any(
        word in text
        for word in ("conflict", "could not serialize", "deadlock", "duplicate key", "already exists")
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _scrubbed(message: str, request: Request) -> str:
    """One line without the address of the catalogue, its password, or keys."""
    secrets = [
        request["catalogue"],
        *(os.environ.get(name, "") for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")),
    ]
    password = urlsplit(request["catalogue"]).password or ""
    for secret in (*secrets, password, unquote(password)):
        if secret:
            message = message.replace(secret, "***")
    return " ".join(message.split())[:500]


_ACTIONS: Mapping[str, Callable[[Connection, Request], Any]] = {
    "create": _create,
    "list": _list,
    "push": _push,
    "pull": _pull,
    "publish": _publish,
}

if __name__ == "__main__":
    sys.exit(main())
