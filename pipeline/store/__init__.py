"""A home kept in an object store: sent there, and fetched from there to another machine.

Work is done in the home, on a disk with locks and hard links; the store has what must outlive that disk.
Every object is written once and never changed, except the pointer to the newest published file. Numbered
pushes (see ledger) list what the record consists of: a push appears in one step, and readers of the store see
all of it or nothing.
"""
