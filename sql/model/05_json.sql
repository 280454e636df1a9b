-- JSON objects as text, such as the assumptions of an answer, written with core functions: DuckDB in a
-- browser has no others until it loads them.

CREATE OR REPLACE MACRO json_text(text) AS
    '"' || regexp_replace(regexp_replace(text, '(["\\])', '\\\1', 'g'), '[[:cntrl:]]', ' ', 'g') || '"';
COMMENT ON FUNCTION json_text IS 'A text escaped for a JSON string; control characters become blanks.';

CREATE OR REPLACE MACRO json_member(name, value) AS
    '"' || name || '":'
    || CASE typeof(value) WHEN 'VARCHAR' THEN json_text(value::VARCHAR) ELSE value::VARCHAR END;
COMMENT ON FUNCTION json_member IS
    'A member of a JSON object: a name with a text, a finite number or a boolean. Null for null.';

CREATE OR REPLACE MACRO json_names(name, names) AS
    CASE
        WHEN len(names) > 0
            THEN '"' || name || '":['
                || array_to_string(list_transform(names, lambda each: json_text(each)), ',') || ']'
    END;
COMMENT ON FUNCTION json_names IS 'A member of a JSON object whose value is a list of texts. Null for no texts.';

CREATE OR REPLACE MACRO json_object_of(members) AS '{' || members || '}';
COMMENT ON FUNCTION json_object_of IS 'The JSON object with the given members, a comma-separated text.';

CREATE OR REPLACE MACRO json_members(object) AS nullif(object[2:-2], '');
COMMENT ON FUNCTION json_members IS 'The members of a JSON object as a comma-separated text. Null for none.';

CREATE OR REPLACE MACRO json_with(object, members) AS
    json_object_of(concat_ws(',', json_members(object), members));
COMMENT ON FUNCTION json_with IS 'A JSON object extended by more members, a comma-separated text; null adds none.';

CREATE OR REPLACE MACRO assumed(applies, name, given, value) AS
    CASE WHEN applies AND given IS NULL THEN json_member(name, value) END;
COMMENT ON FUNCTION assumed IS 'The member of assumptions for a setting that applies and was left open; otherwise null.';
