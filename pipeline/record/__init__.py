"""Days on disk: what was read of each source and day, what became of each attempt, and what went wrong.

``months``: offers, rejects and rankings, one Parquet file per source and month.
``journal``: outcomes, exchange rates and incidents, one SQLite file.
``records``: both, as the other rooms read and write them; no other room knows where anything lies.
``mending``: a damaged file is set aside and named, and its days are read again from the archive.
"""
