"""Which prices are held and why: a reading is accepted, refused, or accepted without some of its prices."""
