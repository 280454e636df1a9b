-- The settings of a job (main.job_settings), checked and with defaults filled in.

CREATE OR REPLACE MACRO nearest_names_text(names, listed_in) AS
    CASE
        WHEN len(names) > 0 THEN '; the nearest are ' || array_to_string(names, ', ')
        WHEN listed_in IN ('models', 'gpus') THEN '; gpufare ' || listed_in || ' lists them'
        ELSE '; gpufare sql "FROM ' || listed_in || '" lists them'
    END;
COMMENT ON FUNCTION nearest_names_text IS
    'The end of the error message for an unknown name: the nearest names, or the query that lists all names. listed_in: a table, with a condition if needed.';

CREATE OR REPLACE MACRO is_near_name(name, asked) AS jaro_winkler_similarity(name, asked) >= 0.85e0;
COMMENT ON FUNCTION is_near_name IS 'True if a name is close enough to an unknown one for the error message to suggest it. Assumed.';

CREATE OR REPLACE MACRO is_meant_setting(setting, asked) AS
    jaro_winkler_similarity(setting, asked) >= 0.9e0
    AND damerau_levenshtein(setting, asked) <= 0.34e0 * greatest(len(setting), len(asked));
COMMENT ON FUNCTION is_meant_setting IS
    'True if a column is probably a misspelt setting: the two begin alike and differ in at most a third of their letters, so countries matches country, but note does not match quote. Assumed.';

CREATE OR REPLACE MACRO name_key(name) AS regexp_replace(
    -- Llama 3 3B is not llama-33b.
    regexp_replace(lower(name), '([0-9])[^a-z0-9.]+([0-9])', '\1~\2', 'g'), '[^a-z0-9.~]', '', 'g'
);
COMMENT ON FUNCTION name_key IS
    'The form in which names are compared, ignoring case, and spaces, dashes and the like unless they separate two digits, so that "RTX 4090" matches rtx-4090.';

CREATE OR REPLACE MACRO has_words(name, text) AS
    contains(name_key(name), name_key(text))
    OR list_bool_and(list_transform(
        string_split(lower(trim(text)), ' '), lambda word: contains(lower(name), word)
    ));
COMMENT ON FUNCTION has_words IS
    'True if a name contains a text in any spelling (name_key), or every word of it in any order.';

CREATE OR REPLACE MACRO names_in(text) AS list_filter(
    list_transform(
        string_split(trim(text, '[] '), ','), lambda name: trim(trim(name), chr(39) || '" ')
    ),
    lambda name: name <> ''
);
COMMENT ON FUNCTION names_in IS 'The names in a comma-separated string, or in a list converted to a string.';

CREATE OR REPLACE MACRO gpu_names() AS TABLE
WITH _named_gpus AS (
    SELECT
        gpu_id,
        unnest(list_concat(
            [model, architecture, vendor],
            -- The id up to each dash.
            list_transform(
                range(1, len(string_split(gpu_id, '-'))),
                lambda parts: array_to_string(string_split(gpu_id, '-')[:parts], '-')
            ),
            -- People also say 4090 for rtx-4090.
            list_transform(
                range(2, CASE WHEN gpu_id LIKE 'rtx-%' THEN len(string_split(gpu_id, '-')) + 1 ELSE 2 END),
                lambda parts: array_to_string(string_split(gpu_id, '-')[2:parts], '-')
            )
        )) AS family
    FROM main.gpus
)

SELECT gpu_id AS name, name_key(gpu_id) AS key, gpu_id
FROM main.gpus
UNION ALL
SELECT any_value(lower(family)), name_key(family), gpu_id
FROM _named_gpus
WHERE name_key(family) NOT IN (SELECT name_key(gpu_id) FROM main.gpus)
    AND (
        'rtx' || name_key(family) = name_key(gpu_id)
        OR 'rtx' || name_key(family) NOT IN (SELECT name_key(gpu_id) FROM main.gpus)
    )
GROUP BY name_key(family), gpu_id;
COMMENT ON MACRO TABLE gpu_names IS
    'The names by which a job may refer to a GPU: its gpu_id, which means that card alone (but see any_form_factor), or a family of cards: the id up to a dash (h100), the model, the architecture (hopper) or the vendor (nvidia). The prefix rtx- may be omitted (4090). One row per name and card.';

CREATE OR REPLACE MACRO currency_of(word) AS
    CASE
        WHEN word IN ('', 'usd') OR regexp_matches(word, '\$|^dollar') THEN 'USD'
        WHEN regexp_matches(word, '^(€|euro)') THEN 'EUR'
        WHEN regexp_matches(word, '^(£|pound)') THEN 'GBP'
        WHEN regexp_matches(word, '^(¥|yen)') THEN 'JPY'
        WHEN regexp_matches(word, '^(₹|rupee)') THEN 'INR'
        ELSE upper(word)
    END;
COMMENT ON FUNCTION currency_of IS
    'The currency (ISO 4217) that a sign, a word or a code in lower case stands for; USD for an empty string.';

CREATE OR REPLACE MACRO price_basis(words, gpus) AS list_transform(
    [{
        -- The number of GPUs stands for all of them, unless it counts hours or machines.
        'words': CASE
            WHEN regexp_matches(words, '\d *-?(h|hr|hour|node|machine|server|instance|boxe?)s?\b') THEN words
            ELSE regexp_replace(words, '\b(all |the )*' || gpus || '([ -]*(gpu|card)s?)?\b', 'all', 'g')
        END
    }],
    lambda w: CASE
        WHEN regexp_full_match(w.words, '[ /]*(per|a)? *(kwh|kw-h|kilowatt[ -]?hour)') THEN 'kwh'
        WHEN NOT regexp_full_match(
            w.words, '([ /-]|\b(per|an?|the|for|in|each|every|gpu|card|h|hr|hour|hourly'
            || '|all|total|whole|together|node|machine|server|instance|box)s?\b)*'
        ) THEN NULL
        WHEN NOT regexp_matches(w.words, '\b(all|total|whole|together|node|machine|server|instance|box)\b')
            -- "For the GPUs" may mean all of them.
            THEN CASE WHEN NOT regexp_matches(w.words, '\b(gpu|card)s\b') THEN 'gpu_hour' END
        WHEN NOT regexp_matches(
            regexp_replace(w.words, '(each|every) *(h|hr|hour|node|machine|server|instance|box)\b', ''),
            '(/|\bper|\ban?) *(gpu|card)\b|\b(each|every)\b'
        ) THEN 'machine_hour'
    END
)[1];
COMMENT ON FUNCTION price_basis IS
    'What a price is for, from the words behind it in lower case: kwh, machine_hour (such as "/h total", "per node" or, if there are 8 GPUs, "for 8 GPUs"), or otherwise gpu_hour; null if the words are not understood, such as "for 24 hours". gpus: the number of GPUs, as text.';

CREATE OR REPLACE MACRO price_in(text, gpus) AS list_transform(
    [regexp_extract(
        -- A price begins with a digit: a shell turns "$2.10" into .10.
        text,
        '^((?:us ?)?\$|[€£¥₹])? *(\d+\.?\d*) *'
        || '((?:us ?)?\$|[€£¥₹]|(?:dollar|euro|pound|rupee)s?\b|yen\b|[a-z]{3}\b)?(.*)$',
        ['sign', 'amount', 'word', 'rest']
    )],
    lambda p: CASE
        -- Three letters that are no code of a currency.
        WHEN p.word IN ('per', 'for', 'all', 'the', 'kwh', 'box', 'hrs') THEN {
            'amount': p.amount, 'currency': currency_of(p.sign), 'per': price_basis(p.word || p.rest, gpus)
        }
        ELSE {
            'amount': p.amount, 'currency': currency_of(coalesce(nullif(p.word, ''), p.sign)),
            'per': price_basis(p.rest, gpus)
        }
    END
)[1];
COMMENT ON FUNCTION price_in IS
    'A price such as "$2.10/h" or "0.30 eur/kwh", in lower case: amount (an empty string if the text is no price), currency (currency_of) and per (price_basis). gpus: the number of GPUs that it is for, as text.';

CREATE OR REPLACE MACRO machine_before_price(text) AS
    regexp_replace(
        text,
        '(?i)[ :=-]*(?:(?:\bat\b|\bfor\b|@) *((?:us ?)?[$€£¥₹]? *\.?\d)|((?:us ?)?[$€£¥₹] *\.?\d))',
        ' at \1\2'
    );
COMMENT ON FUNCTION machine_before_price IS
    'A machine as a job lists it, with " at " before its price: "8x h100 @ 2.10" becomes "8x h100 at 2.10".';

CREATE OR REPLACE MACRO machines_in(machines) AS list_transform(
    list_transform(
        list_filter(
            list_transform(
                -- The comma in 1,000 separates no machines.
                string_split_regex(
                    regexp_replace(trim(machines, '[] '), '\b([1-9]\d{0,2}),(\d{3})\b', '\1\2', 'g'), '[;,]'
                ),
                lambda part: trim(part, ' "' || chr(39))
            ),
            lambda part: part <> ''
        ),
        lambda part: {
            'text': part,
            'parts': regexp_extract(
                machine_before_price(part),
                '(?i)^(?:((\d+) *[x×*] *|(\d{1,3}) +))?(.*?)(?: +[x×*] *(\d+))?(?: +(at) +(.*))?$',
                ['ahead', 'gpus', 'gpus_of', 'gpu', 'gpus_behind', 'at', 'price']
            )
        }
    ),
    lambda m: list_transform(
        [CASE
            WHEN m.parts.gpus_behind <> ''
                THEN {'gpus': m.parts.gpus_behind, 'gpu': trim(m.parts.ahead || m.parts.gpu)}
            -- 4090 x 2 is two cards, for no plan has 4090.
            WHEN try_cast(m.parts.gpus AS BIGINT) > list_max(planned_counts())
                AND try_cast(m.parts.gpu AS BIGINT) <= list_max(planned_counts())
                THEN {'gpus': m.parts.gpu, 'gpu': m.parts.gpus}
            ELSE {
                'gpus': coalesce(nullif(m.parts.gpus, ''), nullif(m.parts.gpus_of, ''), '1'),
                'gpu': m.parts.gpu
            }
        END],
        lambda n: {
            'text': m.text, 'gpus': n.gpus, 'gpu': n.gpu, 'is_priced': m.parts.at <> '',
            'price': price_in(lower(m.parts.price), n.gpus)
        }
    )[1]
);
COMMENT ON FUNCTION machines_in IS
    'The machines in a string such as "8xH100 at $2.10/h; 2 x rtx-4090 at 0.30 EUR/kWh; a100", with the fields text, gpus (1 if missing), gpu, is_priced and price (price_in).';

CREATE OR REPLACE MACRO is_machine(setting, machine) AS
    machine.gpu <> '' AND coalesce(try_cast(machine.gpus AS INTEGER) >= 1, FALSE)
    AND CASE
        -- No more digits, so that the price of all GPUs is in range.
        WHEN machine.is_priced THEN
            try_cast(machine.price.amount AS DECIMAL(14, 8)) IS NOT NULL
            AND coalesce(setting = 'own' OR machine.price.per <> 'kwh', FALSE)
            AND machine.price.per IS NOT NULL
        ELSE setting = 'own'
    END;
COMMENT ON FUNCTION is_machine IS
    'True if one of machines_in is a machine that the setting quote or own takes: it has a GPU and, if it is a quote, a price that is not per kWh.';

CREATE OR REPLACE MACRO asked_machines(source, machines, gpu_ids, others, watts) AS list_transform(
    list_zip(machines, gpu_ids, others),
    lambda q: {
        'source': source, 'text': q[1].text, 'gpus': try_cast(q[1].gpus AS INTEGER), 'gpu_id': q[2],
        'usd': CASE
            WHEN NOT q[1].is_priced THEN 0
            ELSE try_cast(q[1].price.amount AS DOUBLE) * q[1].usd_per_unit * CASE q[1].price.per
                WHEN 'kwh' THEN watts[q[2]] / 1000
                WHEN 'machine_hour' THEN 1 / try_cast(q[1].gpus AS DOUBLE)
                ELSE 1
            END
        END::DECIMAL(18, 8),
        'asked_gpu': q[1].gpu, 'other_cards': q[3], 'price': CASE WHEN q[1].is_priced THEN q[1].price END,
        'usd_per_unit': q[1].usd_per_unit, 'watts': CASE WHEN q[1].price.per = 'kwh' THEN watts[q[2]] END
    }
);
COMMENT ON FUNCTION asked_machines IS
    'The machines of given_machines, with the source (quote or own), the gpu_id of each, and usd: its price per GPU-hour in USD, 0 for a machine without a price, and null if a price per kWh meets a card of unknown power. asked_gpu is the GPU as written, and other_cards are those of the same family; price, usd_per_unit (of its currency) and watts (per GPU) are what usd was computed from. watts: a map from gpu_id to the card''s power.';

CREATE OR REPLACE MACRO evidences_from(least) AS
    string_split(regexp_extract('own measured traced interpolated extrapolated', '.*' || least), ' ');
COMMENT ON FUNCTION evidences_from IS 'The kinds of evidence that are at least as good as a given kind.';

CREATE OR REPLACE MACRO unplaced_offers(unplaced, kinds, asks_country) AS
    nullif(list_sum(list_transform(
        list_filter(unplaced, lambda u: list_contains(kinds, u.kind)),
        lambda u: CASE WHEN asks_country THEN u.country ELSE u.continent END
    )), 0)::BIGINT;
COMMENT ON FUNCTION unplaced_offers IS
    'The number of offers that have one of the given price kinds and an unknown location; null if 0.';

CREATE OR REPLACE MACRO is_number_in(text, least, most, is_whole) AS
    text IS NULL OR coalesce(
        try_cast(text AS DOUBLE) BETWEEN least AND most
        AND (NOT is_whole OR try_cast(text AS DOUBLE) = floor(try_cast(text AS DOUBLE))),
        FALSE
    );
COMMENT ON FUNCTION is_number_in IS
    'True if a string is null, or is a number within bounds (a whole number if is_whole is true).';

CREATE OR REPLACE MACRO number_refusal(name, text, least, most, is_whole) AS
    CASE
        WHEN try_cast(text AS DOUBLE) IS NULL OR isnan(try_cast(text AS DOUBLE)) THEN
            name || ' must be a ' || CASE WHEN is_whole THEN 'whole ' ELSE '' END || 'number; '
            || coalesce(nullif(trim(text), ''), 'an empty text') || ' is not a number'
        WHEN is_whole AND try_cast(text AS DOUBLE) <> floor(try_cast(text AS DOUBLE))
            THEN name || ' must be a whole number, not ' || text
        ELSE name || ' must be ' || CASE
            WHEN try_cast(text AS DOUBLE) > most THEN 'at most ' || format('{:g}', most)
            WHEN least = 1e-9 THEN 'above 0'
            ELSE 'at least ' || format('{:g}', least)
        END || ', not ' || format('{:g}', try_cast(text AS DOUBLE))
    END;
COMMENT ON FUNCTION number_refusal IS 'The reason why a string fails the test is_number_in.';

CREATE OR REPLACE MACRO base_model(name) AS array_to_string(list_filter(
    string_split(regexp_extract(lower(name), '[^/]*$'), '-'),
    lambda part: part NOT IN (
        'instruct', 'base', 'it', 'chat', 'hf', 'pt', 'thinking', 'meta', 'unsloth', 'bnb', '4bit'
    )
), '-');
COMMENT ON FUNCTION base_model IS
    'The name of a model without its owner on a hub and without what hubs add to it for variants that are trained in the same way (Meta-, -Instruct, -Base, -it, -chat, -hf, -pt, -Thinking), and for those whose weights are quantized for QLoRA (-unsloth-bnb-4bit).';

CREATE OR REPLACE MACRO job_entries(jobs) AS TABLE
SELECT
    _row, unnest(given).key AS column_name, lower(column_name) AS setting, unnest(given).value AS text,
    generate_subscripts(given, 1) AS position
FROM (
    SELECT row_number() OVER () AS _row, map_entries(_job::MAP (VARCHAR, VARCHAR)) AS given
    FROM query_table(jobs) AS _job
);
COMMENT ON MACRO TABLE job_entries IS
    'The columns of a relation of jobs as rows: _row (the number of the job), column_name, position (of the column), setting (the name in lower case) and text (null if left open).';

CREATE OR REPLACE MACRO unknown_settings(given) AS TABLE
SELECT
    g.column_name, g.position,
    list_max(list_transform(
        list_filter(
            k.settings,
            lambda s: g.setting = s.other_name OR is_meant_setting(s.setting, g.setting)
        ),
        lambda s: {'similarity': jaro_winkler_similarity(g.setting, s.setting), 'name': s.setting}
    )).name AS nearest
FROM (
    SELECT DISTINCT e.column_name, e.position, e.setting
    FROM query_table(given) AS e
    WHERE e.setting <> 'job'
) AS g
CROSS JOIN (
    SELECT list(s) AS settings
    FROM (
        SELECT setting, other_name FROM main.job_settings
        UNION ALL
        VALUES ('job', NULL)
    ) AS s
) AS k
WHERE g.setting NOT IN (SELECT s.setting FROM main.job_settings AS s);
COMMENT ON MACRO TABLE unknown_settings IS
    'The columns of jobs that are not settings, each with the setting it was probably meant to be, if one is close. given: rows of job_entries.';

CREATE OR REPLACE MACRO number_text(value) AS
    CASE WHEN value % 1 = 0 AND abs(value) < 1e15 THEN value::BIGINT::VARCHAR ELSE format('{:g}', value) END;
COMMENT ON FUNCTION number_text IS 'A number as text: whole numbers with all their digits, other numbers with six significant digits.';

CREATE OR REPLACE MACRO given_numbers(given) AS TABLE
SELECT
    _row, setting,
    CASE kind WHEN 'flag' THEN try_cast(text AS BOOLEAN)::DOUBLE ELSE try_cast(text AS DOUBLE) END AS number,
    CASE WHEN kind = 'flag' THEN (number = 1)::VARCHAR ELSE number_text(number) END AS asked,
    CASE
        WHEN kind = 'flag' AND number IS NULL THEN setting || ' must be true or false, not ' || text
        WHEN kind <> 'flag' AND NOT is_number_in(text, least, most, kind = 'whole')
            THEN number_refusal(setting, text, least, most, kind = 'whole')
    END AS refusal
FROM (
    SELECT
        g._row, g.setting, g.text, s.kind, coalesce(s.least, 1e-9) AS least,
        coalesce(s.most, 'infinity') AS most
    FROM query_table(given) AS g
    JOIN main.job_settings AS s USING (setting)
    WHERE s.kind IN ('amount', 'number', 'whole', 'flag') AND g.text IS NOT NULL
);
COMMENT ON MACRO TABLE given_numbers IS
    'The numbers and flags (1 or 0) in jobs, or the reason why one is refused: _row, setting, number, asked (the number or flag as text) and refusal. given: rows of job_entries.';

CREATE OR REPLACE MACRO given_machines(given) AS TABLE
WITH _machine_rates AS (
    SELECT map_from_entries(list((currency, usd_per_unit::DOUBLE))) AS usd
    FROM main.exchange_rates
    WHERE day = (SELECT max(r.day) FROM main.exchange_rates AS r)
),

_machines_read AS (
    SELECT
        g._row, g.setting,
        list_transform(machines_in(g.text), lambda q: {
            'text': q.text, 'gpus': q.gpus, 'gpu': q.gpu, 'is_priced': q.is_priced, 'price': q.price,
            'usd_per_unit':
                CASE q.price.currency WHEN 'USD' THEN 1e0 ELSE r.usd[q.price.currency]::DOUBLE END
        }) AS machines
    FROM query_table(given) AS g
    CROSS JOIN _machine_rates AS r
    WHERE g.setting IN ('quote', 'own') AND g.text IS NOT NULL
)

SELECT
    _row, setting, machines,
    coalesce(
        setting || ' ' || list_filter(machines, lambda q: NOT is_machine(setting, q))[1].text
        || CASE
            WHEN list_filter(machines, lambda q: NOT is_machine(setting, q))[1].price.per IS NULL
                THEN ': what its price is for is not clear; write it like '
            ELSE ' is not like '
        END
        || CASE setting
            WHEN 'quote' THEN '"8xH100 at 2.10 USD/h" (per GPU-hour) or "8xH100 at 16.80 USD/h total"'
            ELSE '"2 x rtx-4090", "2 x rtx-4090 at 0.30 EUR/kWh" or "2 x rtx-4090 at 0.12" '
                || '(USD of electricity per GPU-hour)'
        END,
        setting || ' ' || list_filter(machines, lambda q: q.usd_per_unit IS NULL)[1].text
        || ': no exchange rate of '
        || list_filter(machines, lambda q: q.usd_per_unit IS NULL)[1].price.currency
        || ' is published; give the price in USD'
    ) AS refusal
FROM _machines_read;
COMMENT ON MACRO TABLE given_machines IS
    'The machines in jobs (machines_in), with usd_per_unit (the value in USD of one unit of the price''s currency, by the newest rates in exchange_rates), or the reason why one is refused: _row, setting, machines and refusal. given: rows of job_entries.';

CREATE OR REPLACE MACRO card_offers() AS TABLE
SELECT
    list({'gpu_id': gpu_id, 'model_key': model_key, 'open_id': open_id} ORDER BY offers DESC, gpu_id)
        AS cards
FROM (
    SELECT
        g.gpu_id, name_key(g.model) AS model_key, any_value(f.gpu_id) AS open_id, count(o.gpu_id) AS offers
    FROM main.gpus AS g
    LEFT JOIN main.gpus AS f
        ON f.form_factor IS NULL AND f.model = g.model AND f.memory_gb = g.memory_gb
        AND name_key(f.gpu_id) IN (
            name_key(f.model), name_key(f.model || '-' || f.memory_gb::INTEGER || 'gb')
        )
        -- These are slower cards, which people name.
        AND g.form_factor NOT IN ('Laptop', 'Max-Q', 'SFF')
    LEFT JOIN main.offers_latest AS o ON o.gpu_id = g.gpu_id AND o.ranked
    GROUP BY g.gpu_id, g.model
);
COMMENT ON MACRO TABLE card_offers IS
    'One row with cards: a list of all cards (gpu_id), those with the most ranked offers first, with the key of their model, and open_id: the id that names their model and memory, and leaves their form factor open (a100-80gb for a100-sxm-80gb), if there is one.';

CREATE OR REPLACE MACRO any_form_factor(cards, meant) AS list_distinct(list_concat(
    meant,
    list_transform(list_filter(cards, lambda c: list_contains(meant, c.open_id)), lambda c: c.gpu_id)
));
COMMENT ON FUNCTION any_form_factor IS
    'The cards that a constraint on the GPU means: those that it names and, if it names a card without a form factor, those of the same model and memory, except laptop, Max-Q and SFF cards. cards: the list of card_offers; meant: the meanings of the name in job_names.';

CREATE OR REPLACE MACRO cards_meant(cards, meant, key) AS list_transform(
    [list_filter(cards, lambda c: list_contains(meant, c.gpu_id))],
    -- A 3080 is an RTX 3080, not an RTX 3080 Ti.
    lambda family: CASE
        WHEN len(list_filter(family, lambda c: c.model_key IN (key, 'rtx' || key))) > 0
            THEN list_filter(family, lambda c: c.model_key IN (key, 'rtx' || key))
        ELSE family
    END
)[1];
COMMENT ON FUNCTION cards_meant IS
    'The cards of a family that somebody means who names the family instead of one card: those of the model of that name, if there is one. cards: the list of card_offers, whose order is kept; meant: the meanings of the name in job_names; key: the key of the name.';

CREATE OR REPLACE MACRO usual_card(cards) AS
    CASE WHEN len(list_distinct(list_transform(cards, lambda c: c.model_key))) = 1 THEN cards[1].gpu_id END;
COMMENT ON FUNCTION usual_card IS
    'The card that most current offers have; null if the cards are of several models. cards: the list of cards_meant.';

CREATE OR REPLACE MACRO other_cards(cards) AS list_filter(
    list_transform(cards, lambda c: c.gpu_id), lambda card: card <> usual_card(cards)
);
COMMENT ON FUNCTION other_cards IS 'The cards (gpu_id) of the list of cards_meant except the usual_card.';

CREATE OR REPLACE MACRO several_models_text(name, cards) AS
    name || ' is several models of GPU: name one of '
    || array_to_string(list_transform(cards, lambda c: c.gpu_id)[:12], ', ')
    || CASE WHEN len(cards) > 12 THEN ', ...' ELSE '' END;
COMMENT ON FUNCTION several_models_text IS
    'The reason why a family of several models names no card, with up to twelve of its cards. cards: the list of cards_meant.';

CREATE OR REPLACE MACRO short_key(setting, key) AS
    CASE setting
        WHEN 'method' THEN regexp_replace(key, '(finetune|finetuning|ing)$', '')
        WHEN 'gpu' THEN regexp_replace(
            regexp_replace(
                regexp_replace(key, '(gpus?|s|hbm[0-9]e?)$', ''),
                (SELECT '^(' || string_agg(DISTINCT name_key(g.vendor), '|') || ')' FROM main.gpus AS g), ''
            ),
            -- As nvidia-smi writes GeForce RTX 4090, Tesla T4 and A100-SXM4-80GB.
            '^(geforce|tesla)|([0-9]sxm)[0-9]~?', '\2'
        )
        ELSE key
    END;
COMMENT ON FUNCTION short_key IS
    'The key of a name without what adds nothing: full fine-tuning is full, NVIDIA H100 or H100s is H100, and NVIDIA A100-SXM4-80GB is A100 SXM 80GB.';

CREATE OR REPLACE MACRO scope_refusal(setting, name, out_of_scope) AS list_transform(
    list_filter(out_of_scope, lambda s: s.setting = setting AND regexp_matches(
        regexp_replace(lower(name), '[^a-z0-9.]+', '-', 'g'),
        '^(' || replace(s.names, ';', '|') || ')([^a-z]|$)'
    )),
    lambda s: setting || ' ' || name || ' is out of scope: ' || s.why || '; nearest is ' || s.nearest
)[1];
COMMENT ON FUNCTION scope_refusal IS
    'The reason why a job cannot have this name, from the rows of main.out_of_scope as a list; null if they do not list it.';

CREATE OR REPLACE MACRO given_names(given, machines) AS TABLE
WITH _name_texts AS (
    SELECT
        g._row, s.setting, s.named, s.kind,
        names_in(CASE WHEN g.setting = 'lora_targets' THEN replace(g.text, '+', ',') ELSE g.text END) AS names
    FROM query_table(given) AS g
    JOIN main.job_settings AS s USING (setting)
    WHERE s.kind IN ('name', 'names') AND g.text IS NOT NULL
    UNION ALL
    SELECT m._row, s.setting, s.named, s.kind, list_transform(m.machines, lambda q: q.gpu)
    FROM query_table(machines) AS m
    JOIN main.job_settings AS s USING (setting)
),

-- In a hub id, only the name after the owner counts.
_names_asked AS (
    SELECT
        _row, setting, named, kind, name, position, name_key(regexp_extract(name, '[^/]*$')) AS key,
        CASE
            WHEN setting = 'model' THEN name_key(base_model(name))
            ELSE key
        END AS near_key,
        CASE WHEN setting = 'model' THEN near_key ELSE short_key(named, key) END AS base_key,
        scope_refusal(named, regexp_extract(name, '[^/]*$'), o.entries) AS out_of_scope
    FROM (
        SELECT
            _row, setting, named, kind, unnest(names) AS name, generate_subscripts(names, 1) AS position
        FROM _name_texts
    )
    CROSS JOIN (SELECT list(s) AS entries FROM main.out_of_scope AS s) AS o
),

_names_known AS (
    SELECT setting, name, key, meanings
    FROM main.job_names
    UNION ALL
    SELECT 'model', m.model, name_key(m.model), [m.model] AS meanings
    FROM main.models AS m
),

_names_resolved AS (
    SELECT
        a._row, a.setting, a.named, a.kind, a.name, a.base_key, a.position,
        -- A whole name comes before a shortened one, and a model's own name before another name of a model.
        arg_max(k.meanings, 2 * (k.key = a.key)::INTEGER + (k.name = k.meanings[1])::INTEGER)
            FILTER (k.key IN (a.key, a.base_key)) AS meant,
        CASE
            WHEN a.setting = 'model' AND a.key <> name_key(meant[1]) THEN meant[1]
        END AS assumption,
        CASE
            WHEN meant IS NOT NULL THEN NULL
            WHEN a.name = 'NULL' THEN a.setting || ': one of its names is null; leave it out'
            WHEN a.setting = 'continent' AND a.key = 'eu'
                THEN 'the European Union is no continent: give country eu'
            WHEN a.out_of_scope IS NOT NULL THEN a.out_of_scope
            WHEN count(k.key) <= 9 THEN a.setting || ' ' || a.name || ' is none of ' || array_to_string(
                list_sort(arg_max(k.name, jaro_winkler_similarity(k.key, a.key), 9)), ', '
            )
            ELSE 'no ' || a.named || ' ' || a.name
                || CASE WHEN a.named = a.setting THEN '' ELSE ' (in ' || a.setting || ')' END
                || nearest_names_text(
                    (list(
                        k.name
                        ORDER BY
                            jaro_winkler_similarity(k.key, a.near_key) DESC, levenshtein(k.key, a.near_key),
                            k.name
                    ) FILTER (
                        is_near_name(k.key, a.near_key) AND (a.named <> 'model' OR k.name = k.meanings[1])
                    ))[:3],
                    CASE
                        WHEN a.named IN ('model', 'gpu') THEN a.named || 's'
                        ELSE 'job_names WHERE setting = ''' || a.named || ''''
                    END
                )
        END
        || CASE
            WHEN a.named = 'model' AND a.out_of_scope IS NULL
                THEN '; or give its config.json, or add it with gpufare model add CONFIG'
            ELSE ''
        END AS refusal
    FROM _names_asked AS a
    LEFT JOIN _names_known AS k ON k.setting = a.named
    WHERE a.name <> '' OR a.kind <> 'machines'
    GROUP BY
        a._row, a.setting, a.named, a.kind, a.name, a.key, a.base_key, a.near_key, a.position,
        a.out_of_scope
),

_names_meant AS (
    SELECT
        r.* REPLACE (
            CASE
                WHEN r.kind = 'machines' AND len(r.meant) > 1 THEN [usual_card(m.cards)]
                WHEN r.kind = 'names' AND r.named = 'gpu' THEN any_form_factor(o.cards, r.meant)
                ELSE r.meant
            END AS meant
        ),
        CASE WHEN len(r.meant) > 1 THEN other_cards(m.cards) END AS other_cards, m.cards
    FROM _names_resolved AS r
    CROSS JOIN card_offers() AS o
    CROSS JOIN LATERAL (SELECT cards_meant(o.cards, r.meant, r.base_key) AS cards) AS m
)

SELECT
    _row, setting, flatten(list(meant ORDER BY position)) AS meant,
    list(other_cards ORDER BY position) AS other_cards,
    string_agg(name, ', ' ORDER BY position) AS asked,
    min(assumption) AS assumption,
    coalesce(min(refusal), CASE
        WHEN kind = 'machines' AND count(*) > count(meant[1]) THEN
            setting || ': '
            || min(several_models_text(name, cards)) FILTER (meant[1] IS NULL)
        WHEN kind = 'name' AND count(*) > 1
            THEN setting || ': name one, not ' || string_agg(name, ', ' ORDER BY position)
    END) AS refusal
FROM _names_meant
GROUP BY _row, setting, kind
UNION ALL
SELECT
    _row, setting, NULL AS meant, NULL AS other_cards, NULL AS asked, NULL AS assumption,
    setting || ': names nothing; leave the column out (null) for any' AS refusal
FROM _name_texts
WHERE len(names) = 0;
COMMENT ON MACRO TABLE given_names IS
    'The meanings of the names in jobs (main.job_names), or the reason why one is refused: _row, setting, meant, other_cards (the rest of each family that a machine names instead of a card), asked (as written in the job), assumption and refusal. given: rows of job_entries; machines: rows of given_machines.';

CREATE OR REPLACE MACRO job_constraints(names, most) AS {
    'gpu_id': {'wanted': names['gpu_id'], 'unwanted': names['not gpu_id']},
    'provider': {'wanted': names['provider'], 'unwanted': names['not provider']},
    'source': {'wanted': names['source'], 'unwanted': names['not source']},
    'tier_class': {'wanted': names['tier_class'], 'unwanted': names['not tier_class']},
    'country': {'wanted': names['country'], 'unwanted': names['not country']},
    'continent': {'wanted': names['continent'], 'unwanted': names['not continent']},
    'term_days': most['term_days']::INTEGER, 'price_age_days': most['price_age_days']::INTEGER
};
COMMENT ON FUNCTION job_constraints IS
    'The constraints of a job, by the column of rentals that they constrain (job_settings.constrains): the wanted and unwanted names, or the highest number; null if the job leaves the column open. names: a map keyed by column name, prefixed with "not " for unwanted names; most: a map keyed by column name.';

CREATE OR REPLACE MACRO checked_jobs(jobs) AS TABLE
WITH _job_given AS MATERIALIZED (
    FROM job_entries(jobs)
),

_job_unknown AS (
    SELECT
        list(column_name ORDER BY position) AS ignored,
        'no column ''' || arg_min(column_name, nearest) || '''; did you mean ' || min(nearest) || '?'
            AS refusal
    FROM unknown_settings('_job_given')
),

_job_machines AS MATERIALIZED (
    FROM given_machines('_job_given')
),

_job_readings AS (
    FROM given_numbers('_job_given')
    UNION ALL BY NAME
    FROM given_names('_job_given', '_job_machines')
    UNION ALL BY NAME
    FROM _job_machines
),

_job_maps AS (
    SELECT
        _row,
        map_from_entries(list((setting, number)) FILTER (number IS NOT NULL)) AS number,
        map_from_entries(list((setting, meant)) FILTER (meant IS NOT NULL)) AS meant,
        map_from_entries(list((setting, asked)) FILTER (asked IS NOT NULL)) AS asked,
        map_from_entries(list((setting, machines)) FILTER (machines IS NOT NULL)) AS read_machines,
        map_from_entries(list((setting, other_cards)) FILTER (other_cards IS NOT NULL)) AS other_cards,
        map_from_entries(
            list((
                CASE WHEN starts_with(setting, 'exclude_') THEN 'not ' ELSE '' END || s.constrains, meant
            )) FILTER (s.constrains || meant::VARCHAR IS NOT NULL)
        ) AS names,
        map_from_entries(list((s.constrains, number)) FILTER (s.constrains || number IS NOT NULL)) AS most,
        min(assumption) AS assumption,
        coalesce(min(refusal) FILTER (setting = 'model'), min(refusal)) AS refusal
    FROM _job_readings
    LEFT JOIN main.job_settings AS s USING (setting)
    GROUP BY _row
),

_job_places AS (
    SELECT
        list({'kind': price_kind, 'country': no_country, 'continent': no_continent}) AS unplaced,
        (
            SELECT list(DISTINCT r.country ORDER BY r.country)
            FROM main.rentals AS r
            WHERE r.renter_notice = 'sanctions'
        ) AS sanctioned
    FROM (
        SELECT
            price_kind,
            count(*) FILTER (country IS NULL) AS no_country,
            count(*) FILTER (continent IS NULL) AS no_continent
        FROM main.offers_latest
        WHERE ranked
        GROUP BY price_kind
    )
),

_job_filled AS (
    SELECT
        g.job,
        n.meant['model'][1] AS model,
        coalesce(n.meant['method'][1], s.p['method']) AS method,
        method IN ('lora', 'qlora') AS _has_adapters,
        n.number['examples'] AS examples,
        n.number['tokens'] IS NOT NULL AS _gives_tokens,
        coalesce(n.number['tokens'], examples * n.number['tokens_per_example']) AS tokens,
        coalesce(n.number['epochs'], s.p['epochs']::DOUBLE) AS epochs,
        coalesce(try_cast(n.number['seq_len'] AS INTEGER), s.p['seq_len']::INTEGER) AS seq_len,
        try_cast(n.number['lora_rank'] AS INTEGER) AS lora_rank,
        try_cast(n.number['gpus'] AS INTEGER) AS gpus,
        try_cast(n.number['min_gpus'] AS INTEGER) AS min_gpus,
        n.number['max_hours'] AS max_hours,
        c.p[CASE
            WHEN tokens * epochs > c.p['long_job_tokens'] THEN 'long_job_deadline_hours'
            ELSE 'deadline_hours'
        END] AS default_max_hours,
        n.number, n.meant, n.asked, flatten(list_transform(
            ['quote', 'own'],
            lambda s: asked_machines(s, n.read_machines[s], n.meant[s], n.other_cards[s], w.watts)
        )) AS machines,
        job_constraints(n.names, n.most) AS constraints,
        coalesce(n.meant['country'], n.meant['exclude_country']) AS _place_countries,
        coalesce(n.meant['kind'], [s.p['kind']]) AS price_kinds,
        n.assumption, u.ignored AS _ignored,
        list_filter([
            u.refusal, n.refusal,
            'own ' || list_filter(machines, lambda q: q.usd IS NULL)[1].text || ': the power of '
            || list_filter(machines, lambda q: q.usd IS NULL)[1].gpu_id
            || ' is not known; give the price of its electricity in USD per GPU-hour',
            CASE WHEN n.meant['model'] IS NULL THEN 'name a model; gpufare models lists them' END,
            CASE WHEN tokens IS NULL THEN 'give tokens, or examples and tokens_per_example, above 0' END,
            CASE
                WHEN tokens * epochs > 1e17
                    THEN 'tokens of all epochs must be at most 1e+17, not ' || format('{:g}', tokens * epochs)
            END,
            CASE WHEN count(*) OVER (PARTITION BY g.job) > 1 THEN 'there are two jobs of this name' END,
            CASE
                WHEN n.meant['quantization'] IS NOT NULL AND method <> 'qlora'
                    THEN 'quantization is for method qlora'
            END,
            CASE
                WHEN n.assumption IS NOT NULL AND method <> 'qlora'
                    AND regexp_matches(n.asked['model'], '(?i)(^|-)4bit(-|$)')
                    THEN n.asked['model'] || ' is quantized to 4 bits: give method qlora, or model '
                        || n.assumption
            END,
            CASE WHEN min_gpus > gpus THEN 'min_gpus ' || min_gpus || ' is more than gpus ' || gpus END
        ], lambda refusal: refusal IS NOT NULL)[1] AS refusal,
        s.p AS defaults
    FROM (
        SELECT _row, coalesce(max(text) FILTER (setting = 'job'), 'job ' || _row) AS job
        FROM _job_given
        GROUP BY _row
    ) AS g
    LEFT JOIN _job_maps AS n USING (_row)
    CROSS JOIN _job_unknown AS u
    CROSS JOIN setting_defaults() AS s
    CROSS JOIN default_parameters() AS c
    CROSS JOIN (SELECT map_from_entries(list((gpu_id, tdp_w::DOUBLE))) AS watts FROM main.gpus) AS w
)

SELECT
    j.job, j.model, j.method, j.tokens * j.epochs AS tokens, j.epochs,
    j.seq_len,
    CASE WHEN j._has_adapters THEN coalesce(j.lora_rank, j.defaults['lora_rank']::INTEGER) END AS lora_rank,
    CASE WHEN j._has_adapters THEN array_to_string(j.meant['lora_targets'], '+') END AS lora_targets,
    try_cast(j.number['micro_batch'] AS INTEGER) AS micro_batch,
    j.number['global_batch_tokens'] AS global_batch_tokens,
    j.meant['checkpointing'][1] AS checkpointing, j.meant['offload'][1] AS offload,
    j.meant['stack'][1] AS stack, j.meant['optimizer'][1] AS optimizer,
    j.meant['training_precision'][1] AS training_precision, j.meant['quantization'][1] AS quantization,
    coalesce(j.gpus, greatest(
        j.defaults['gpus']::INTEGER, j.min_gpus,
        list_max(list_transform(j.machines, lambda q: q.gpus))
    )) AS max_gpus,
    j.min_gpus, try_cast(j.number['max_nodes'] AS INTEGER) AS max_nodes,
    j.constraints, j.asked, j.price_kinds, j.number['max_usd'] AS max_usd,
    j.machines,
    coalesce(j.max_hours, j.default_max_hours) AS max_hours,
    j.max_hours IS NOT NULL AS deadline_is_strict,
    coalesce(j.number['min_fit_probability'], d.min_fit_probability) AS min_fit_probability,
    evidences_from(j.meant['evidence'][1]) AS evidences,
    coalesce(j.number['assumed_sizes'] = 1, FALSE) AS assumed_sizes,
    j.number['hour_worth'] AS hour_worth, coalesce(j.number['bid'], j.defaults['bid']::DOUBLE) AS bid,
    coalesce(j.meant['objective'], [j.defaults['objective']]) AS objectives, FALSE AS ranks_each_kind,
    NULL::INTEGER AS most_rows, NULL::VARCHAR AS opened,
    j.refusal,
    json_object_of(concat_ws(',',
        json_member('model', j.assumption),
        assumed(TRUE, 'method', j.meant['method'], j.method),
        assumed(TRUE, 'seq_len', j.number['seq_len'], j.seq_len),
        assumed(j._has_adapters, 'lora_rank', j.lora_rank, j.defaults['lora_rank']::INTEGER),
        json_names('unused_settings', list_concat(
            CASE WHEN j.lora_rank IS NOT NULL AND NOT j._has_adapters THEN ['lora_rank'] END,
            CASE WHEN j.meant['lora_targets'] IS NOT NULL AND NOT j._has_adapters THEN ['lora_targets'] END,
            CASE WHEN j._gives_tokens AND j.examples IS NOT NULL THEN ['examples'] END
        )),
        assumed(j.epochs <> 1, 'epochs', NULL, j.epochs),
        assumed(j.epochs <> 1, 'tokens_per_epoch', NULL, j.tokens),
        assumed(j.seq_len > m.max_context, 'max_context', NULL, m.max_context),
        assumed(
            coalesce(j._place_countries, j.meant['continent']) IS NOT NULL, 'offers_without_place', NULL,
            unplaced_offers(p.unplaced, j.price_kinds, j._place_countries IS NOT NULL)
        ),
        json_names(
            'countries_left_out', CASE WHEN j.constraints.country.wanted IS NULL THEN p.sanctioned END
        ),
        assumed(TRUE, 'max_hours', j.max_hours, j.default_max_hours),
        json_names('ignored_columns', j._ignored)
    )) AS job_assumptions
FROM _job_filled AS j
CROSS JOIN plan_defaults() AS d
CROSS JOIN _job_places AS p
LEFT JOIN main.models AS m USING (model);
COMMENT ON MACRO TABLE checked_jobs IS
    'Like completed_jobs, but with a refusal column instead of an error; refusal is null if nothing is wrong with the job.';

CREATE OR REPLACE MACRO completed_jobs(jobs) AS TABLE
SELECT * EXCLUDE (refusal)
FROM checked_jobs(jobs)
-- DuckDB never drops a filter, even if the query does not read its columns.
WHERE CASE WHEN refusal IS NULL THEN TRUE ELSE error('Job ' || job || ': ' || refusal) END;
COMMENT ON MACRO TABLE completed_jobs IS
    'The jobs in a relation, checked and with defaults filled in; all constraints are applied before answers are ranked. jobs: a table or CTE; its columns are job (a name) and the settings of main.job_settings, all optional except model and tokens (or examples and tokens_per_example). Settings that take names accept several, separated by commas or as a list; main.job_names lists the names that each setting accepts. An invalid value raises an error that names the job and, if the value is a name, lists the nearest known names; a misspelt column (metod) raises an error that suggests the nearest setting. Other columns, such as a note, are ignored and listed in job_assumptions.';
