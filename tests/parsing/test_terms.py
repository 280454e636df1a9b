"""The kind and the committed term of a price, as a header says them."""

from pipeline.parsing.terms import price_kind, term_days
from tests.parsing.cases import wrong


def test_kinds_of_price() -> None:
    kinds = {
        "on_demand": ["On-demand", "ON DEMAND", "ondemand", "Pay as you go"],
        "spot": ["Spot price", "Preemptible", "pre-emptible", "On-demand spot"],
        "reserved": ["Reserved", "1-year commitment", "3 year CUD", "CUDs", "Reserved on-demand capacity"],
        None: ["Spotlight", "Price", "", "CUDA"],
    }
    assert wrong(price_kind, [(text, kind) for kind, texts in kinds.items() for text in texts]) == []


def test_terms_in_days() -> None:
    days = {
        "1 day": 1, "7-30 days": 7, "31+ days": 31, "181 + days": 181, "2 weeks - 1 year": 14, "1 week": 7,
        "12-month commitment": 360, "1 year": 365, "3-Year": 1095, "Reserved (6 months)": 180,
        "9999 days": 9999, "monthly": None, "year": None, "24 hours": None, "": None,
    }  # fmt: skip
    assert wrong(term_days, days.items()) == []
