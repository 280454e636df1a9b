"""The published reasons for leaving out a row."""

from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home.paths import Home
from pipeline.warehouse.query import ask, reader


def test_every_reason_is_published_with_its_sentence(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        published = {row["reason"]: row for row in ask(connection, "FROM reject_reasons").dicts()}
        used = {reason for (reason,) in ask(connection, "SELECT DISTINCT reason FROM rejects").rows}
    assert published == {
        reason.value: {"reason": reason.value, "sentence": reason.sentence, "held": reason.held}
        for reason in RejectReason
    }
    assert used
    assert used <= published.keys()


def test_sentences_are_sentences_and_differ() -> None:
    sentences = [reason.sentence for reason in RejectReason]
    assert len(set(sentences)) == len(sentences)
    assert [sentence for sentence in sentences if not (sentence[0].isupper() and sentence[-1] == ".")] == []


def test_a_jump_is_held_and_an_unreadable_price_is_not() -> None:
    assert RejectReason.PRICE_JUMP.held
    assert not RejectReason.UNREADABLE_PRICE.held
