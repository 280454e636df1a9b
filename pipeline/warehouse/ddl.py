"""The SQL that creates the published tables of sql/schema, with their comments."""

from pipeline.catalog.schema import Column, Table


def create_sql(table: Table) -> str:
    """Return the statements that create a table and comment on it and on its columns."""
    columns = table.described()
    parts = [_column_sql(table, column) for column in columns]
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(map(_name, table.key))})")
    by_name = {column.name: column for column in columns}
    parts += [f"CHECK ({_condition(check, by_name.get(check))})" for check in table.checks]
    comments = [
        f"COMMENT ON COLUMN main.{table.name}.{_name(c.name)} IS {_text(c.meaning)};" for c in columns
    ]
    return "\n".join(
        [
            f"CREATE TABLE main.{table.name} ({', '.join(parts)});",
            f"COMMENT ON TABLE main.{table.name} IS {_text(table.comment)};",
            *comments,
        ]
    )


def _column_sql(table: Table, column: Column) -> str:
    head = f"{_name(column.name)} {column.type}"
    if expression := table.generated.get(column.name):
        return f"{head} GENERATED ALWAYS AS ({expression}) VIRTUAL"
    default = f" DEFAULT {table.defaults[column.name]}" if column.name in table.defaults else ""
    return head + ("" if column.nullable else " NOT NULL") + default


def _condition(check: str, column: Column | None) -> str:
    """Return a check as SQL; a column's name on its own means that only its declared values are allowed."""
    if column is None:
        return check
    return f"{_name(column.name)} IN ({', '.join(map(_text, column.values))})"


def _name(name: str) -> str:
    return f'"{name}"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
