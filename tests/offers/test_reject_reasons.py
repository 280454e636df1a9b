"""The published reasons for leaving out a row."""

from pipeline.contracts.paths import Home
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.warehouse.query import ask, reader


def test_every_reason_is_published_with_its_sentence(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        published = dict(ask(connection, "FROM reject_reasons").rows)
        used = {reason for (reason,) in ask(connection, "SELECT DISTINCT reason FROM rejects").rows}
    assert published == {reason.value: reason.sentence for reason in RejectReason}
    assert used
    assert used <= published.keys()


def test_sentences_are_sentences_and_differ() -> None:
    sentences = [reason.sentence for reason in RejectReason]
    assert len(set(sentences)) == len(sentences)
    assert [sentence for sentence in sentences if not (sentence[0].isupper() and sentence[-1] == ".")] == []
