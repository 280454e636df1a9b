"""What a store lacks of a home, from the home's own index: no request is sent."""

from dataclasses import dataclass

from pipeline.home.paths import Home
from pipeline.store import home_files
from pipeline.store.home_files import local_file
from pipeline.store.index import index_of, index_path


@dataclass(slots=True)
class Behind:
    """Captures and files that the store lacks, their bytes, and whether it lacks the published file.

    ``number`` and ``pushed_at`` are of the newest push that is known; ``complete_at`` is when one last left
    nothing out, '' for never.
    """

    number: int
    pushed_at: str
    complete_at: str
    captures: int = 0
    files: int = 0
    size_bytes: int = 0
    published: bool = False

    @property
    def nothing(self) -> bool:
        """Whether the store has everything."""
        return not (self.captures or self.files or self.published)


def behind(home: Home, address: str) -> Behind | None:
    """What the store lacks; None when nothing was ever sent. Raises StoreError, OSError."""
    if not index_path(home, address).exists():
        return None
    with index_of(home, address) as index:
        found = Behind(index.number, index.get("pushed_at") or "", index.get("complete_at") or "")
        stored = {path for (path,) in index.rows("SELECT path FROM captures")}
        for day, _ in home_files.day_folders(home):
            for capture, finished in home_files.captures_in(home, day):
                if finished and capture not in stored:
                    found.captures += 1
                    files = (home.archive / capture).iterdir()
                    found.size_bytes += sum(file.lstat().st_size for file in files)
        hashes = dict(index.rows("SELECT path, sha256 FROM files"))
        for file in home_files.record_files(home):
            if file.path in hashes and index.hash_of(home, file)[0] == hashes[file.path]:
                continue
            found.files += 1
            found.size_bytes += file.size_bytes
        published = local_file(home, str(home.published.relative_to(home.root)))
        if published and (index.get("published_state") or "").rpartition(" ")[0] != published.state:
            found.published = True
            found.size_bytes += published.size_bytes
        return found
