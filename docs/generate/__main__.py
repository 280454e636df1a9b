"""Write every generated page, and delete the pages of tables that no longer exist."""

from docs.generate import DOCS, PAGES

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
for path in (DOCS / "reference" / "tables").glob("*.md"):
    if str(path.relative_to(DOCS)) not in PAGES:
        path.unlink()
