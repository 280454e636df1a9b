"""Days on disk: offers and rejects for each source and day, the outcome of each attempt, and incidents.

``months``: offers, rejects and rankings, one Parquet file per source and month.
``journal``: outcomes, exchange rates and incidents, one SQLite file.
``records``: months and journal, as the other rooms read and write them; only this room knows the paths.
``mending``: a damaged file is set aside and reported, and its days are read again from the archive.
"""
