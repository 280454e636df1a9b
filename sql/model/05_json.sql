-- JSON objects as text, such as the assumptions of an answer.
-- The macros use core functions only: DuckDB in a browser has no other functions until it loads extensions.

CREATE OR REPLACE MACRO json_text(text) AS
    '"' || regexp_replace(regexp_replace(text, '(["\\])', '\\\1', 'g'), '[[:cntrl:]]', ' ', 'g') || '"';
COMMENT ON FUNCTION json_text IS 'A string, quoted and escaped for JSON; control characters become spaces.';

CREATE OR REPLACE MACRO json_member(name, value) AS
    '"' || name || '":'
    || CASE typeof(value) WHEN 'VARCHAR' THEN json_text(value::VARCHAR) ELSE value::VARCHAR END;
COMMENT ON FUNCTION json_member IS
    'A member of a JSON object: a name with a value, which is a string, a finite number or a boolean. Null if the value is null.';

CREATE OR REPLACE MACRO json_names(name, names) AS
    CASE
        WHEN len(names) > 0
            THEN '"' || name || '":['
                || array_to_string(list_transform(names, lambda each: json_text(each)), ',') || ']'
    END;
COMMENT ON FUNCTION json_names IS 'A member of a JSON object: a name with a list of strings. Null if the list is null or empty.';

CREATE OR REPLACE MACRO json_object_of(members) AS '{' || members || '}';
COMMENT ON FUNCTION json_object_of IS 'The JSON object whose members are given as one comma-separated string.';

CREATE OR REPLACE MACRO json_members(object) AS nullif(object[2:-2], '');
COMMENT ON FUNCTION json_members IS 'The members of a JSON object as one comma-separated string. Null if the object has no members.';

CREATE OR REPLACE MACRO json_with(object, members) AS
    json_object_of(concat_ws(',', json_members(object), members));
COMMENT ON FUNCTION json_with IS 'A JSON object extended with members that are given as one comma-separated string; null adds no members.';

CREATE OR REPLACE MACRO assumed(applies, name, given, value) AS
    CASE WHEN applies AND given IS NULL THEN json_member(name, value) END;
COMMENT ON FUNCTION assumed IS 'The member of assumptions for a setting that applies and was left open; null for any other setting.';
