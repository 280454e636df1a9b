"""Numbers as text."""

from decimal import Decimal

from pipeline.questions.numbers import amount_text, number_text, price_text


def test_a_number_has_as_many_decimals_as_matter() -> None:
    texts = {
        1234.5: "1,234",
        999.95: "1,000.0",
        1000.0: "1,000",
        12.345: "12.3",
        10.0: "10.0",
        9.999: "10.00",
    }
    texts |= {
        9.994: "9.99",
        1.0: "1.00",
        0.958: "0.96",
        0.1: "0.10",
        0.0894: "0.089",
        0.0: "0",
        -2.5: "-2.50",
    }
    assert {value: number_text(value) for value in texts} == texts


def test_an_amount_is_written_as_people_do() -> None:
    texts = {1e8: "100M", 1.5e9: "1.5B", 3e4: "30K", 2e12: "2T", 999.0: "999", 1234567.0: "1.23457M"}
    assert {value: amount_text(value) for value in texts} == texts


def test_a_price_as_text_has_two_decimals_or_all_below_a_dollar() -> None:
    texts = {"1": "1.00", "-1.005": "-1.00", "1234.5": "1,234.50", "0.999": "0.999", "0.5": "0.50"}
    texts |= {"0": "0.00", "0.00012000": "0.00012", "-0.125": "-0.125"}
    assert {value: price_text(Decimal(value)) for value in texts} == texts
