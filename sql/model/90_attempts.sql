-- The attempts to read a source, whether their outcomes could be saved or not.

CREATE OR REPLACE MACRO attempt_outcomes() AS TABLE
WITH _unsaved AS (
    -- Only their incident is left of them, until the day is read again.
    SELECT DISTINCT ON (i.source, i.day, i.path)
        i.source, i.day,
        parse_filename(i.path, TRUE) AS attempt,
        'failed' AS status,
        FALSE AS accepted,
        'its outcome could not be written: ' || i.reason AS error,
        0 AS requests,
        0 AS failed_requests
    FROM main.incidents AS i
    ANTI JOIN main.capture_outcomes AS o
        ON o.source = i.source AND o.day = i.day AND o.attempt = parse_filename(i.path, TRUE)
    WHERE i.kind = 'unwritable' AND i.path LIKE 'outcomes/%' AND i.source IS NOT NULL AND i.day IS NOT NULL
    ORDER BY i.source, i.day, i.path, i.noticed_at DESC, i.reason
)

SELECT * FROM main.capture_outcomes
UNION ALL BY NAME
SELECT * FROM _unsaved;
COMMENT ON MACRO TABLE attempt_outcomes IS
    'capture_outcomes, and a failed attempt for each outcome that could not be written, with the reason from incidents.';
