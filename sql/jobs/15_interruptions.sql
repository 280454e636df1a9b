-- The time that failures and reclaimed machines add to a run, and how often to checkpoint.

CREATE OR REPLACE MACRO daly_interval(checkpoint_seconds, seconds_between_interruptions) AS
    CASE
        WHEN checkpoint_seconds >= 2 * seconds_between_interruptions THEN seconds_between_interruptions
        ELSE sqrt(2 * checkpoint_seconds * seconds_between_interruptions)
            * (
                1 + sqrt(checkpoint_seconds / (2 * seconds_between_interruptions)) / 3
                + checkpoint_seconds / (2 * seconds_between_interruptions) / 9
            )
            - checkpoint_seconds
    END;
COMMENT ON FUNCTION daly_interval IS
    'The number of seconds of work between checkpoints that minimizes the expected loss, if a checkpoint takes checkpoint_seconds and interruptions occur every seconds_between_interruptions on average. From Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22 (2006), eq. 37, whose first term is Young''s interval (CACM 17, 1974).';

CREATE OR REPLACE MACRO daly_expected_seconds(
    work_seconds, interval_seconds, checkpoint_seconds, restart_seconds, seconds_between_interruptions
) AS
    seconds_between_interruptions * exp(restart_seconds / seconds_between_interruptions)
        * (exp((interval_seconds + checkpoint_seconds) / seconds_between_interruptions) - 1)
        * work_seconds / interval_seconds;
COMMENT ON FUNCTION daly_expected_seconds IS
    'Expected paid seconds, including checkpoints, lost work and restarts, for a job of work_seconds that is checkpointed every interval_seconds and interrupted at random, every seconds_between_interruptions on average. Daly (2006), eq. 20.';

CREATE OR REPLACE MACRO best_interval(work_seconds, checkpoint_seconds, stops_per_second) AS
    least(daly_interval(checkpoint_seconds, 1 / stops_per_second), work_seconds);
COMMENT ON FUNCTION best_interval IS
    'The daly_interval of a job that is stopped at a mean rate of stops_per_second, capped at work_seconds.';

CREATE OR REPLACE MACRO run_seconds_at(
    work_seconds, interval_seconds, checkpoint_seconds, restart_seconds, stops_per_second
) AS
    CASE
        WHEN stops_per_second = 0 THEN work_seconds
        ELSE daly_expected_seconds(
            work_seconds, interval_seconds, checkpoint_seconds, restart_seconds, 1 / stops_per_second
        )
    END;
COMMENT ON FUNCTION run_seconds_at IS
    'Expected paid seconds for a job of work_seconds that is checkpointed every interval_seconds and stopped at random, at a mean rate of stops_per_second. A job that is never stopped writes no checkpoints.';

CREATE OR REPLACE MACRO expected_run_seconds(
    work_seconds, checkpoint_seconds, restart_seconds, stops_per_second
) AS run_seconds_at(
    work_seconds, best_interval(work_seconds, checkpoint_seconds, stops_per_second),
    checkpoint_seconds, restart_seconds, stops_per_second
);
COMMENT ON FUNCTION expected_run_seconds IS
    'Expected paid seconds for a job of work_seconds that is stopped at random, at a mean rate of stops_per_second, and checkpointed at the best interval (at least once, at the end). A job that is never stopped writes no checkpoints.';

CREATE OR REPLACE MACRO hours_between_machine_failures(
    gpus_in_machine, gpu_hours_between_failures, host_hours_between_failures
) AS
    CASE
        WHEN gpus_in_machine / gpu_hours_between_failures + 1 / host_hours_between_failures = 0
            THEN 'infinity'::DOUBLE
        ELSE 1 / (gpus_in_machine / gpu_hours_between_failures + 1 / host_hours_between_failures)
    END;
COMMENT ON FUNCTION hours_between_machine_failures IS
    'Mean hours between failures of one machine, computed from the sum of the failure rates of its GPUs and of the rest of the machine.';
