"""The generated pages are up to date, and tables of hand-written ones name what exists."""

import re

from docs.conf import menu, with_the_demo
from docs.generate import DOCS, PAGES
from pipeline.catalog.schema import read_table, table_names
from pipeline.home.paths import SQL_DIR

TABLES = {name: DOCS / "reference" / "tables" / f"{name}.md" for name in table_names()}


def test_the_generated_pages_are_up_to_date() -> None:
    stale = [name for name, made in PAGES.items() if (DOCS / name).read_text(encoding="utf-8") != made()]
    assert stale == [], "run `make docs`"
    assert sorted((DOCS / "reference" / "tables").iterdir()) == sorted(TABLES.values())


def test_each_table_is_in_the_overview_and_has_a_page_with_its_columns_and_example() -> None:
    overview = (DOCS / "reference" / "tables.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\w+)\]\(tables/\1\.md\): .+\.$", overview, re.MULTILINE)
    assert sorted(listed) == list(TABLES)
    assert menu("reference/tables", overview).split()[2:-1] == [f"tables/{name}.md" for name in listed]
    for name, path in TABLES.items():
        page = path.read_text(encoding="utf-8")
        (query,) = re.findall(r"```sql\n(.*?)\n```", page, re.DOTALL)
        assert (SQL_DIR / "examples" / f"{name}.sql").read_text(encoding="utf-8").endswith(f"\n{query}\n")
        assert re.search(rf"\b{name}\b", query)
        columns = re.findall(r"^- \*\*`(\w+)`\*\* · (.+)\\\n  (.+)$", page, re.MULTILINE)
        plain = [(*each, re.sub(r"\[(\w+)\]\(\w+\.md\)|\\", r"\1", meaning)) for *each, meaning in columns]
        assert plain == [
            (
                column.name,
                " · ".join([column.type.lower(), *filter(None, [column.unit])])
                + " · may be null" * column.nullable,
                " ".join(column.meaning.replace("\\", "").split()),
            )
            for column in read_table(name).described()
        ]


def test_the_joins_of_a_table_are_listed_and_drawn() -> None:
    found = 0
    for name in TABLES:
        page = (DOCS / "reference" / "tables" / f"{name}.md").read_text(encoding="utf-8")
        drawn = with_the_demo(f"reference/tables/{name}", page, "")
        for column in read_table(name).described():
            if into := column.key_into:
                found += 1
                assert f"- `{column.name}` is a key into [{into}]({into}.md)." in page
                assert f">{column.name}</text>" in drawn
                assert f'<a href="{into}.html">' in drawn
                same = (column.name,) == read_table(into).key
                other = f"[{name}]({name}.md)" + ("" if same else f" (`{column.name}`)")
                assert other in TABLES[into].read_text(encoding="utf-8")
    assert found > 50


def test_the_first_page_begins_as_the_readme_does() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    opening = readme.partition("\n## ")[0].removeprefix("# gpufare\n").replace("(docs/", "(")
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    assert opening.strip() in page
    assert "```text\n" in opening
    assert "](images/report.png)" in opening


def test_the_page_of_environment_variables_has_all_and_no_others() -> None:
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    code = " ".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "pipeline").rglob("*.py"))
    variables = set(re.findall(r"\bGPUFARE_[A-Z_]+\b", code))
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == variables
