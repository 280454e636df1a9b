"""The meaning of a word in an answer."""

import pytest

from pipeline.questions.job import JobError
from pipeline.questions.tables import CHEAPEST, HEADINGS
from pipeline.questions.terms import IN_TABLES, columns_meanings, meanings
from tests.conftest import gpufare


@pytest.mark.parametrize("term", ["P(fits)", "p fits", "pfits", "fit_probability"])
def test_a_heading_is_known_in_any_spelling(term: str) -> None:
    (text,) = meanings(term, HEADINGS)
    assert text.startswith("P(fits) (column fit_probability): Probability that ")


def test_columns_values_picks_options_and_parameters_are_known() -> None:
    assert meanings("spot", HEADINGS)[0] == "spot (a value of price_kind): may be interrupted"
    for word in IN_TABLES:
        assert meanings(word, HEADINGS)[0].startswith(f"{word} (in a ranking): ")
    assert any(text.startswith("--kind (an option): ") for text in meanings("kind", HEADINGS))
    (text,) = meanings("hour_worth_share", HEADINGS)
    assert text.startswith("hour_worth_share (a cost parameter, ")


def test_an_unknown_word_names_the_nearest() -> None:
    with pytest.raises(JobError, match="nothing is called 'pfitts' in an answer; did you mean pfits"):
        meanings("pfitts", HEADINGS)


def test_every_column_of_a_ranking_is_described_in_its_help() -> None:
    assert set(columns_meanings(CHEAPEST)) == {*CHEAPEST}
    help_text = " ".join(gpufare("cheapest", "--help").stdout.split())
    assert "Columns (gpufare explain NAME tells more): rank Rank of the answer" in help_text
    assert gpufare("explain", "P(fits)").stdout.startswith("P(fits) (column fit_probability): ")
    both = gpufare("explain", "hours", "--model", "llama-3.1-8b")
    assert (both.returncode, both.stdout) == (2, "")
