"""A fit of the constants from runs that known constants made."""

import numpy as np
import pytest

from pipeline.model.fitting import QUANTITIES, Fitter, gemm_ratio, read_parameters
from pipeline.warehouse.database import in_memory


def test_a_fit_repeats_to_the_digit_and_recovers_the_true_constants() -> None:
    """Speeds made by known constants are fitted twice: the same digits, and close to what made them."""
    connection = in_memory("memory_of", "speed_of")
    quantity = QUANTITIES[1]
    true = {
        p.name: p.prior * (1.3 if p.name == "attention_mosaic" else 1.0) for p in read_parameters()
    } | gemm_ratio(connection)
    connection.execute("DELETE FROM main.measured_runs WHERE source <> 'llm_foundry' OR gpu_count > 64")
    connection.execute("DELETE FROM main.model_constants")
    connection.executemany("INSERT INTO main.model_constants VALUES ('all', ?, ?)", list(true.items()))
    connection.execute(
        "UPDATE main.measured_runs SET measured_tokens_per_second_per_gpu = s.tokens_per_second_per_gpu "
        "FROM (SELECT run_id, tokens_per_second_per_gpu FROM speed_terms_of('main.measured_runs')) s WHERE s.run_id = measured_runs.run_id"  # noqa: E501
    )
    points = []
    for _ in range(2):
        fitter = Fitter(connection, quantity, read_parameters(), gemm_ratio(connection))
        points.append(fitter.fit(np.ones(len(fitter.run_ids), dtype=bool)).point)
    connection.close()
    assert points[0].tolist() == points[1].tolist()
    assert fitter.constants_at(points[0])["attention_mosaic"] == pytest.approx(
        true["attention_mosaic"], rel=0.15
    )
