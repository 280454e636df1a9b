"""The examples of the tables' pages, answered at the sample prices when the site is built."""

from docs.generate.markdown import table, text
from docs.generate.questions import question_and_query
from pipeline.home.paths import SQL_DIR, Home
from pipeline.questions.tables import cell_text
from pipeline.warehouse.query import ask, reader

ROWS_SHOWN, CHARACTERS_SHOWN = 5, 60


def result(home: Home, name: str) -> str:
    """Return the size of a table at the sample prices and the first rows of its example, as Markdown.

    Raises NotPublishedError, DamagedError and QueryError.
    """
    _, query = question_and_query(SQL_DIR / "examples" / f"{name}.sql")
    with reader(home.published) as connection:
        ((rows,),) = ask(connection, f'SELECT count(*) FROM main."{name}"').rows
        answer = ask(connection, query)
    size = (
        f"At the sample prices, the table has {_rows(rows)}, and this query returns {_rows(len(answer.rows))}"
    )
    if not answer.rows:
        return f"{size}."
    first = f", of which these are the first {ROWS_SHOWN}" if len(answer.rows) > ROWS_SHOWN else ""
    cells = ([text(_cut(cell_text(value))) for value in row] for row in answer.first(ROWS_SHOWN).rows)
    return f'{size}{first}:\n\n<div class="result">\n\n{table(answer.columns, cells)}\n\n</div>'


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _cut(cell: str) -> str:
    return cell if len(cell) <= CHARACTERS_SHOWN else f"{cell[: CHARACTERS_SHOWN - 1]}…"
