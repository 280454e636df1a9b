"""A database for many jobs joins in another order than one for a question, and plans the same."""

from pipeline.warehouse import plan_grid
from pipeline.warehouse.database import in_memory, planner

MODEL = "smollm2-135m"


def test_the_planner_of_many_jobs_has_the_same_plans() -> None:
    computed = f"FROM main.plan_grid WHERE model = '{MODEL}' ORDER BY ALL"
    macros = ("grid_plans", "grid_jobs", "plans_in_full")
    with planner(*macros) as connection, in_memory(*macros) as database:
        assert connection.execute("SELECT current_setting('disabled_optimizers')").fetchall() != [("",)]
        for each in (connection, database):
            plan_grid.compute(each, MODEL)
        assert connection.execute(computed).fetchall() == database.execute(computed).fetchall()
