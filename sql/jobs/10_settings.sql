-- The columns of a job: what they may be, their defaults, and what is said where one is wrong.

CREATE OR REPLACE MACRO job_columns() AS [
    'job', 'model', 'method', 'tokens', 'examples', 'tokens_per_example', 'epochs', 'seq_len', 'lora_rank',
    'lora_targets', 'micro_batch', 'global_batch_tokens', 'checkpointing', 'offload', 'stack', 'optimizer',
    'training_precision', 'quantization', 'gpu', 'exclude_gpu', 'gpus', 'max_gpus', 'min_gpus', 'max_nodes',
    'provider', 'exclude_provider', 'source', 'exclude_source', 'tier', 'country', 'continent', 'kind',
    'price_kind', 'max_term_days', 'max_usd', 'max_age_days', 'quote', 'own', 'max_hours',
    'min_fit_probability', 'evidence', 'assumed_sizes', 'objective'
];
COMMENT ON FUNCTION job_columns IS 'The columns of a relation of jobs that completed_jobs reads.';

-- A third of the letters may differ where the names begin alike: countries is country, and note is not quote.
CREATE OR REPLACE MACRO misspelt_columns(names) AS list_filter(
    list_transform(
        list_filter(names::VARCHAR[], lambda name: NOT list_contains(job_columns(), lower(name))),
        lambda name: {
            'name': name,
            'nearest': list_max(list_filter(
                list_transform(job_columns(), lambda known: {
                    'similarity': jaro_winkler_similarity(lower(name), known),
                    'name': known,
                    'differing': damerau_levenshtein(lower(name), known) / greatest(len(name), len(known))
                }),
                lambda near: near.similarity >= 0.9 AND near.differing <= 0.34
            ))
        }
    ),
    lambda misspelt: misspelt.nearest IS NOT NULL
);
COMMENT ON FUNCTION misspelt_columns IS
    'Of the names of columns those that are none of job_columns but close to one, with the nearest of them.';

CREATE OR REPLACE MACRO nearest_names_text(names, listed_in) AS
    CASE
        WHEN len(names) > 0 THEN '; the nearest are ' || array_to_string(names, ', ')
        ELSE '; main.' || listed_in || ' lists them'
    END;
COMMENT ON FUNCTION nearest_names_text IS
    'The end of a refusal of a name: the names that are close to it, or the table that has all of them.';

CREATE OR REPLACE MACRO name_key(name) AS regexp_replace(lower(name), '[^a-z0-9.]', '', 'g');
COMMENT ON FUNCTION name_key IS
    'How names are compared: without case, blanks, dashes and the like, so that "RTX 4090" is rtx-4090.';

CREATE OR REPLACE MACRO names_in(text) AS list_filter(
    list_transform(
        string_split(trim(text, '[] '), ','), lambda name: trim(trim(name), chr(39) || '" ')
    ),
    lambda name: name <> ''
);
COMMENT ON FUNCTION names_in IS 'The names in a text with commas, or in the text of a list.';

CREATE OR REPLACE MACRO gpu_names() AS TABLE
WITH _named_gpus AS (
    SELECT
        gpu_id,
        unnest(list_concat(
            [model, architecture, vendor],
            -- Its id up to each dash.
            list_transform(
                range(1, len(string_split(gpu_id, '-'))),
                lambda parts: array_to_string(string_split(gpu_id, '-')[:parts], '-')
            ),
            -- People say 4090, too, and mean what rtx-4090 does.
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
    'What a GPU may be called in a job: its gpu_id, which is that card alone, or a family of cards: the id up to a dash (h100), the model, the architecture (hopper) or the vendor (nvidia). An id may lack its rtx- (4090). One row per name and card.';

CREATE OR REPLACE MACRO machines_in(texts) AS list_transform(texts, lambda machines: list_transform(
    list_filter(
        list_transform(
            string_split_regex(trim(machines, '[] '), '[;,]'), lambda part: trim(part, ' "' || chr(39))
        ),
        lambda part: part <> ''
    ),
    lambda part: regexp_extract(
        part, '^((?:(\d+) *[xX] *(.*?)(?: +at +\$?([0-9.]+))?)|.*)$', ['text', 'gpus', 'gpu', 'usd']
    )
));
COMMENT ON FUNCTION machines_in IS
    'The machines in each of some texts such as "8 x h100-sxm-80gb at 1.50; 2 x rtx-4090": text, gpus, gpu and usd (per GPU and hour), as text, empty where it has none.';

CREATE OR REPLACE MACRO asked_machines(source, machines, gpu_ids) AS list_transform(
    list_zip(machines, gpu_ids),
    lambda q: {
        'source': source, 'text': q[1].text, 'gpus': try_cast(q[1].gpus AS INTEGER), 'gpu_id': q[2],
        'usd': coalesce(try_cast(q[1].usd AS DECIMAL(18, 8)), 0)
    }
);
COMMENT ON FUNCTION asked_machines IS 'machines_in with their source (quote or own) and the gpu_id of each; without a price they cost nothing.';

CREATE OR REPLACE MACRO evidences_from(least) AS
    list_slice(
        ['measured', 'traced', 'interpolated', 'extrapolated'],
        1,
        list_position(['measured', 'traced', 'interpolated', 'extrapolated'], least)
    );
COMMENT ON FUNCTION evidences_from IS 'The kinds of evidence that are at least as good as one.';

CREATE OR REPLACE MACRO unplaced_offers(unplaced, kinds, asks_country) AS
    nullif(list_sum(list_transform(
        list_filter(unplaced, lambda u: list_contains(kinds, u.kind)),
        lambda u: CASE WHEN asks_country THEN u.country ELSE u.continent END
    )), 0)::BIGINT;
COMMENT ON FUNCTION unplaced_offers IS
    'The number of offers of some price kinds whose place is not known; null if 0.';

CREATE OR REPLACE MACRO is_number_in(text, least, most, is_whole) AS
    text IS NULL OR coalesce(
        try_cast(text AS DOUBLE) BETWEEN least AND most
        AND (NOT is_whole OR try_cast(text AS DOUBLE) = floor(try_cast(text AS DOUBLE))),
        FALSE
    );
COMMENT ON FUNCTION is_number_in IS
    'Whether a text is a number within bounds, a whole one where that is wanted; null is none and fine.';

CREATE OR REPLACE MACRO number_refusal(name, text, least, most, is_whole) AS
    CASE
        WHEN try_cast(text AS DOUBLE) IS NULL OR isnan(try_cast(text AS DOUBLE)) THEN
            name || ' must be a ' || CASE WHEN is_whole THEN 'whole ' ELSE '' END || 'number; '
            || coalesce(nullif(trim(text), ''), 'an empty text') || ' is not a number'
        WHEN isinf(try_cast(text AS DOUBLE)) AND isfinite(most) THEN name || ' must be finite, not ' || text
        WHEN is_whole AND try_cast(text AS DOUBLE) <> floor(try_cast(text AS DOUBLE))
            THEN name || ' must be a whole number, not ' || text
        ELSE name || ' must be ' || CASE
            WHEN try_cast(text AS DOUBLE) > most THEN 'at most ' || format('{:g}', most)
            WHEN least = 1e-9 THEN 'above 0'
            ELSE 'at least ' || format('{:g}', least)
        END || ', not ' || format('{:g}', try_cast(text AS DOUBLE))
    END;
COMMENT ON FUNCTION number_refusal IS 'What is wrong with a text that is not is_number_in its bounds.';

CREATE OR REPLACE MACRO base_model(name) AS array_to_string(list_filter(
    string_split(lower(name), '-'),
    lambda part: part NOT IN ('instruct', 'base', 'it', 'chat', 'hf', 'pt')
), '-');
COMMENT ON FUNCTION base_model IS
    'The name of a model without the usual suffixes of its variants (-Instruct, -Base, -it, -chat, -hf, -pt), which train alike.';

CREATE OR REPLACE MACRO completed_jobs(jobs) AS TABLE
WITH _job_template AS (
    SELECT
        NULL::VARCHAR AS job, NULL::VARCHAR AS model, NULL::VARCHAR AS method, NULL::DOUBLE AS tokens,
        NULL::DOUBLE AS examples, NULL::DOUBLE AS tokens_per_example, NULL::DOUBLE AS epochs,
        NULL::INTEGER AS seq_len, NULL::INTEGER AS lora_rank, NULL::VARCHAR AS lora_targets,
        NULL::INTEGER AS micro_batch, NULL::DOUBLE AS global_batch_tokens,
        NULL::VARCHAR AS checkpointing, NULL::VARCHAR AS offload, NULL::VARCHAR AS stack,
        NULL::VARCHAR AS optimizer, NULL::VARCHAR AS training_precision, NULL::VARCHAR AS quantization,
        NULL::VARCHAR AS gpu, NULL::VARCHAR AS exclude_gpu, NULL::INTEGER AS gpus,
        NULL::INTEGER AS max_gpus, NULL::INTEGER AS min_gpus, NULL::INTEGER AS max_nodes,
        NULL::VARCHAR AS provider, NULL::VARCHAR AS exclude_provider, NULL::VARCHAR AS source,
        NULL::VARCHAR AS exclude_source, NULL::VARCHAR AS tier, NULL::VARCHAR AS country,
        NULL::VARCHAR AS continent, NULL::VARCHAR AS kind, NULL::VARCHAR AS price_kind,
        NULL::INTEGER AS max_term_days, NULL::DOUBLE AS max_usd, NULL::INTEGER AS max_age_days,
        NULL::VARCHAR AS quote, NULL::VARCHAR AS own, NULL::DOUBLE AS max_hours,
        NULL::DOUBLE AS min_fit_probability, NULL::VARCHAR AS evidence, NULL::BOOLEAN AS assumed_sizes,
        NULL::VARCHAR AS objective
    WHERE FALSE
),

_job_given AS (
    SELECT
        g.*,
        list_filter(struct_keys(g), lambda name: NOT list_contains(job_columns(), lower(name))) AS _ignored,
        misspelt_columns(struct_keys(g))[1] AS _misspelt
    FROM query_table(jobs) AS g
),

-- Values of wrong types are null from here on, and refused by _wrong_number.
_job_numbered AS (
    SELECT
        * REPLACE (
            coalesce(job::VARCHAR, 'job ' || row_number() OVER ()) AS job,
            try_cast(tokens::VARCHAR AS DOUBLE) AS tokens,
            try_cast(examples::VARCHAR AS DOUBLE) AS examples,
            try_cast(tokens_per_example::VARCHAR AS DOUBLE) AS tokens_per_example,
            try_cast(epochs::VARCHAR AS DOUBLE) AS epochs,
            try_cast(max_hours::VARCHAR AS DOUBLE) AS max_hours,
            try_cast(max_usd::VARCHAR AS DOUBLE) AS max_usd,
            try_cast(seq_len::VARCHAR AS INTEGER) AS seq_len,
            try_cast(lora_rank::VARCHAR AS INTEGER) AS lora_rank,
            try_cast(micro_batch::VARCHAR AS INTEGER) AS micro_batch,
            try_cast(global_batch_tokens::VARCHAR AS DOUBLE) AS global_batch_tokens,
            try_cast(gpus::VARCHAR AS INTEGER) AS gpus,
            try_cast(max_gpus::VARCHAR AS INTEGER) AS max_gpus,
            try_cast(min_gpus::VARCHAR AS INTEGER) AS min_gpus,
            try_cast(max_nodes::VARCHAR AS INTEGER) AS max_nodes,
            try_cast(max_term_days::VARCHAR AS INTEGER) AS max_term_days,
            try_cast(max_age_days::VARCHAR AS INTEGER) AS max_age_days,
            try_cast(min_fit_probability::VARCHAR AS DOUBLE) AS min_fit_probability,
            try_cast(assumed_sizes::VARCHAR AS BOOLEAN) AS assumed_sizes
        ),
        row_number() OVER () AS _row,
        tokens IS NOT NULL AS _gives_tokens,
        machines_in([quote::VARCHAR, own::VARCHAR]) AS _machines,
        -- Of each number its name, its text, its bounds, and whether it is a whole one.
        list_filter(list_zip(
            [
                'tokens', 'examples', 'tokens_per_example', 'epochs', 'max_hours', 'max_usd', 'seq_len',
                'lora_rank', 'micro_batch', 'global_batch_tokens', 'gpus', 'max_gpus', 'min_gpus',
                'max_nodes', 'max_term_days', 'max_age_days',
                'min_fit_probability, a share from 0 to 1,'
            ],
            [
                tokens::VARCHAR, examples::VARCHAR, tokens_per_example::VARCHAR, epochs::VARCHAR,
                max_hours::VARCHAR, max_usd::VARCHAR, seq_len::VARCHAR, lora_rank::VARCHAR,
                micro_batch::VARCHAR, global_batch_tokens::VARCHAR, gpus::VARCHAR, max_gpus::VARCHAR,
                min_gpus::VARCHAR, max_nodes::VARCHAR, max_term_days::VARCHAR, max_age_days::VARCHAR,
                min_fit_probability::VARCHAR
            ],
            [1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]::DOUBLE[],
            [
                1e17, 1e17, 1e17, 1e17, 'infinity', 'infinity', 1e9, 1e6, 1e6, 1e12, 1e6, 1e6, 1e6, 1e6,
                1e6, 1e6, 1
            ]::DOUBLE[],
            [
                FALSE, FALSE, FALSE, FALSE, FALSE, FALSE, TRUE, TRUE, TRUE, FALSE, TRUE, TRUE, TRUE, TRUE,
                TRUE, TRUE, FALSE
            ]
        ), lambda number: NOT is_number_in(number[2], number[3], number[4], number[5]))[1] AS _wrong_number,
        CASE
            WHEN try_cast(assumed_sizes::VARCHAR AS BOOLEAN) IS NULL AND assumed_sizes IS NOT NULL
                THEN 'assumed_sizes must be true or false, not ' || assumed_sizes
        END AS _wrong_truth
    FROM (FROM _job_template UNION ALL BY NAME FROM _job_given)
),

_job_texts AS (
    SELECT
        _row,
        unnest([
            {'setting': 'model', 'named': 'model', 'text': model::VARCHAR},
            {'setting': 'method', 'named': 'method', 'text': method::VARCHAR},
            {'setting': 'lora_targets', 'named': 'lora_targets',
                'text': replace(lora_targets::VARCHAR, '+', ',')},
            {'setting': 'checkpointing', 'named': 'checkpointing', 'text': checkpointing::VARCHAR},
            {'setting': 'offload', 'named': 'offload', 'text': offload::VARCHAR},
            {'setting': 'stack', 'named': 'stack', 'text': stack::VARCHAR},
            {'setting': 'optimizer', 'named': 'optimizer', 'text': optimizer::VARCHAR},
            {'setting': 'training_precision', 'named': 'training_precision',
                'text': training_precision::VARCHAR},
            {'setting': 'quantization', 'named': 'quantization', 'text': quantization::VARCHAR},
            {'setting': 'gpu', 'named': 'gpu', 'text': gpu::VARCHAR},
            {'setting': 'exclude_gpu', 'named': 'gpu', 'text': exclude_gpu::VARCHAR},
            {'setting': 'quote', 'named': 'gpu', 'text':
                CASE
                    WHEN len(_machines[1]) = 0 THEN ''
                    ELSE nullif(array_to_string(list_transform(_machines[1], lambda q: q.gpu), ','), '')
                END},
            {'setting': 'own', 'named': 'gpu', 'text':
                CASE
                    WHEN len(_machines[2]) = 0 THEN ''
                    ELSE nullif(array_to_string(list_transform(_machines[2], lambda q: q.gpu), ','), '')
                END},
            {'setting': 'provider', 'named': 'provider', 'text': provider::VARCHAR},
            {'setting': 'exclude_provider', 'named': 'provider', 'text': exclude_provider::VARCHAR},
            {'setting': 'source', 'named': 'source', 'text': source::VARCHAR},
            {'setting': 'exclude_source', 'named': 'source', 'text': exclude_source::VARCHAR},
            {'setting': 'tier', 'named': 'tier', 'text': tier::VARCHAR},
            {'setting': 'country', 'named': 'country', 'text': country::VARCHAR},
            {'setting': 'continent', 'named': 'continent', 'text': continent::VARCHAR},
            {'setting': 'kind', 'named': 'kind', 'text': coalesce(kind::VARCHAR, price_kind::VARCHAR)},
            {'setting': 'evidence', 'named': 'evidence', 'text': evidence::VARCHAR},
            {'setting': 'objective', 'named': 'objective', 'text': objective::VARCHAR}
        ], max_depth := 2)
    FROM _job_numbered
),

-- Of an id of the hub, the name after its owner counts.
_job_asked AS (
    SELECT
        _row, setting, named, name, position, name_key(regexp_extract(name, '[^/]*$')) AS key,
        CASE
            WHEN setting = 'model' THEN name_key(base_model(regexp_extract(name, '[^/]*$'))) ELSE key
        END AS base_key
    FROM (
        SELECT
            _row, setting, named, unnest(names_in(text)) AS name,
            generate_subscripts(names_in(text), 1) AS position
        FROM _job_texts
    )
),

_job_known AS (
    SELECT setting, name, key, meanings
    FROM main.job_names
    UNION ALL
    SELECT 'model', m.model, name_key(m.model), [m.model] AS meanings
    FROM main.models AS m
),

_job_resolved AS (
    SELECT
        a._row, a.setting, a.name, a.position,
        coalesce(
            any_value(k.meanings) FILTER (k.key = a.key), any_value(k.meanings) FILTER (k.key = a.base_key)
        ) AS meant,
        CASE
            WHEN bool_or(k.key = a.key) IS NOT TRUE AND meant IS NOT NULL
                THEN meant[1]
        END AS assumption,
        CASE
            WHEN meant IS NOT NULL THEN NULL
            WHEN a.name = 'NULL' THEN a.setting || ': one of its names is null; leave it out'
            WHEN a.setting = 'continent' AND a.key = 'eu'
                THEN 'the European Union is no continent: give country eu'
            WHEN count(k.key) <= 9 THEN a.setting || ' ' || a.name || ' is none of ' || array_to_string(
                list_sort(arg_max(k.name, jaro_winkler_similarity(k.key, a.key), 9)), ', '
            )
            ELSE 'no ' || a.named || ' ' || a.name
                || CASE WHEN a.named = a.setting THEN '' ELSE ' (in ' || a.setting || ')' END
                || nearest_names_text(
                    (list(
                        k.name
                        ORDER BY
                            jaro_winkler_similarity(k.key, a.key) DESC, levenshtein(k.key, a.key), k.name
                    ) FILTER (jaro_winkler_similarity(k.key, a.key) >= 0.85))[:3],
                    CASE WHEN a.named = 'model' THEN 'models' ELSE 'job_names' END
                )
        END AS refusal
    FROM _job_asked AS a
    LEFT JOIN _job_known AS k ON k.setting = a.named
    GROUP BY a._row, a.setting, a.named, a.name, a.key, a.base_key, a.position
),

_job_named AS (
    SELECT
        _row,
        map_from_entries(list((setting, meant))) AS meant,
        map_from_entries(list((setting, asked))) AS asked_names,
        min(assumption) AS assumption,
        min(refusal) AS refusal
    FROM (
        SELECT
            _row, setting, flatten(list(meant ORDER BY position)) AS meant, min(assumption) AS assumption,
            string_agg(name, ', ' ORDER BY position) AS asked,
            coalesce(min(refusal), CASE
                WHEN setting IN ('quote', 'own') AND max(len(meant)) > 1 THEN
                    setting || ': ' || arg_max(name, len(meant)) || ' is several GPUs, name one of '
                    || array_to_string(arg_max(meant, len(meant)), ', ')
                WHEN count(*) > 1 AND setting IN (
                    'model', 'method', 'checkpointing', 'offload', 'stack', 'optimizer',
                    'training_precision', 'quantization', 'evidence', 'objective'
                ) THEN setting || ': name one, not ' || string_agg(name, ', ' ORDER BY position)
            END) AS refusal
        FROM _job_resolved
        GROUP BY _row, setting
        UNION ALL
        SELECT
            _row, setting, NULL, NULL, NULL,
            setting || ': names nothing; leave the column out (null) for any'
        FROM _job_texts
        WHERE len(names_in(text)) = 0
    )
    GROUP BY _row
),

_job_places AS (
    SELECT list({'kind': price_kind, 'country': no_country, 'continent': no_continent}) AS unplaced
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
        j.* REPLACE (
            n.meant['model'][1] AS model,
            coalesce(n.meant['method'][1], 'lora') AS method,
            coalesce(j.tokens, j.examples * j.tokens_per_example) AS tokens,
            coalesce(j.epochs, 1) AS epochs,
            coalesce(j.gpus, j.max_gpus) AS gpus
        ),
        n.meant, n.asked_names, n.assumption,
        coalesce(n.meant['kind'], ['on_demand']) AS price_kinds,
        n.meant['method'] IS NULL OR n.meant['method'][1] IN ('lora', 'qlora') AS _has_adapters,
        list_filter([
            'no column ''' || j._misspelt.name || '''; did you mean ' || j._misspelt.nearest.name || '?',
            n.refusal,
            number_refusal(
                j._wrong_number[1], j._wrong_number[2], j._wrong_number[3], j._wrong_number[4],
                j._wrong_number[5]
            ),
            j._wrong_truth,
            CASE WHEN n.meant['model'] IS NULL THEN 'name a model; main.models lists them' END,
            CASE
                WHEN coalesce(j.tokens, j.examples * j.tokens_per_example) IS NULL
                    THEN 'give tokens, or examples and tokens_per_example, above 0'
            END,
            CASE
                WHEN coalesce(j.tokens, j.examples * j.tokens_per_example) * coalesce(j.epochs, 1) > 1e17
                    THEN 'tokens of all epochs must be at most 1e+17, not ' || format(
                        '{:g}', coalesce(j.tokens, j.examples * j.tokens_per_example) * coalesce(j.epochs, 1)
                    )
            END,
            CASE WHEN count(*) OVER (PARTITION BY j.job) > 1 THEN 'there are two jobs of this name' END,
            CASE
                WHEN j.gpus IS NOT NULL AND j.max_gpus IS NOT NULL
                    THEN 'give gpus or max_gpus, which is its older name'
            END,
            CASE
                WHEN j.kind IS NOT NULL AND j.price_kind IS NOT NULL
                    THEN 'give kind or price_kind, which is its older name'
            END,
            CASE
                WHEN n.meant['quantization'] IS NOT NULL AND coalesce(n.meant['method'][1], 'lora') <> 'qlora'
                    THEN 'quantization is for method qlora'
            END,
            CASE
                WHEN j.min_gpus > coalesce(j.gpus, j.max_gpus)::INTEGER
                    THEN 'min_gpus ' || j.min_gpus || ' is more than gpus ' || coalesce(j.gpus, j.max_gpus)
            END,
            'quote ' || list_filter(
                j._machines[1],
                lambda q: coalesce(try_cast(q.gpus AS INTEGER) < 1, TRUE) OR try_cast(q.usd AS DOUBLE) IS NULL
            )[1].text || ' is not like 8 x h100-sxm-80gb at 1.50 (USD per GPU and hour)',
            'own ' || list_filter(
                j._machines[2],
                lambda q: coalesce(try_cast(q.gpus AS INTEGER) < 1, TRUE)
                    OR (q.usd <> '' AND try_cast(q.usd AS DOUBLE) IS NULL)
            )[1].text
            || ' is not like 2 x rtx-4090 or 2 x rtx-4090 at 0.12 (USD of electricity per GPU and hour)'
        ], lambda refusal: refusal IS NOT NULL)[1] AS refusal
    FROM _job_numbered AS j
    LEFT JOIN _job_named AS n USING (_row)
)

SELECT
    j.job, j.model, j.method, j.tokens * j.epochs AS tokens, j.epochs,
    coalesce(j.seq_len, 2048) AS seq_len,
    CASE WHEN j._has_adapters THEN coalesce(j.lora_rank, 16) END AS lora_rank,
    CASE WHEN j._has_adapters THEN array_to_string(j.meant['lora_targets'], '+') END AS lora_targets,
    j.micro_batch, j.global_batch_tokens,
    j.meant['checkpointing'][1] AS checkpointing, j.meant['offload'][1] AS offload,
    j.meant['stack'][1] AS stack, j.meant['optimizer'][1] AS optimizer,
    j.meant['training_precision'][1] AS training_precision, j.meant['quantization'][1] AS quantization,
    coalesce(j.gpus, greatest(
        8, j.min_gpus,
        list_max(list_transform(flatten(j._machines), lambda q: try_cast(q.gpus AS INTEGER)))
    )) AS max_gpus,
    j.min_gpus, j.max_nodes,
    j.meant['gpu'] AS gpu_ids, j.meant['exclude_gpu'] AS excluded_gpu_ids,
    j.meant['provider'] AS providers, j.meant['exclude_provider'] AS excluded_providers,
    j.meant['source'] AS sources, j.meant['exclude_source'] AS excluded_sources,
    j.meant['tier'] AS tier_classes, j.meant['country'] AS countries, j.meant['continent'] AS continents,
    j.asked_names, j.price_kinds, j.max_term_days, j.max_usd,
    j.max_age_days,
    list_concat(
        asked_machines('quote', j._machines[1], j.meant['quote']),
        asked_machines('own', j._machines[2], j.meant['own'])
    ) AS machines,
    coalesce(j.max_hours, c.value) AS max_hours,
    j.max_hours IS NOT NULL AS deadline_is_strict,
    coalesce(j.min_fit_probability, d.min_fit_probability) AS min_fit_probability,
    evidences_from(j.meant['evidence'][1]) AS evidences,
    coalesce(j.assumed_sizes, FALSE) AS assumed_sizes,
    coalesce(j.meant['objective'], ['cost']) AS objectives, FALSE AS ranks_each_kind,
    NULL::INTEGER AS most_rows,
    json_object_of(concat_ws(',',
        json_member('model', j.assumption),
        assumed(TRUE, 'method', j.meant['method'], j.method),
        assumed(TRUE, 'seq_len', j.seq_len, 2048),
        assumed(j._has_adapters, 'lora_rank', j.lora_rank, 16),
        json_names('unused_settings', list_concat(
            CASE WHEN j.lora_rank IS NOT NULL AND NOT j._has_adapters THEN ['lora_rank'] END,
            CASE WHEN j.meant['lora_targets'] IS NOT NULL AND NOT j._has_adapters THEN ['lora_targets'] END,
            CASE WHEN j._gives_tokens AND j.examples IS NOT NULL THEN ['examples'] END
        )),
        assumed(j.epochs <> 1, 'epochs', NULL, j.epochs),
        assumed(j.epochs <> 1, 'tokens_per_epoch', NULL, j.tokens),
        assumed(coalesce(j.seq_len, 2048) > m.max_context, 'max_context', NULL, m.max_context),
        assumed(
            j.meant['country'] IS NOT NULL OR j.meant['continent'] IS NOT NULL, 'offers_without_place', NULL,
            unplaced_offers(p.unplaced, j.price_kinds, j.meant['country'] IS NOT NULL)
        ),
        assumed(TRUE, 'max_hours', j.max_hours, c.value),
        json_names('ignored_columns', j._ignored)
    )) AS job_assumptions
FROM _job_filled AS j
CROSS JOIN plan_defaults() AS d
CROSS JOIN _job_places AS p
JOIN main.cost_parameters AS c ON c.name = 'deadline_hours' AND c.applies_to = 'default'
LEFT JOIN main.models AS m USING (model)
-- A filter is never left out, whatever columns are read.
WHERE CASE WHEN j.refusal IS NULL THEN TRUE ELSE error('Job ' || j.job || ': ' || j.refusal) END;
COMMENT ON MACRO TABLE completed_jobs IS
    'The jobs of a relation, checked, with their defaults; all that constrains an answer is applied before answers are ranked. Columns, all but model and tokens optional. The job: job (its name), model, method (lora), tokens of one epoch or examples x tokens_per_example, epochs (1; tokens are multiplied by them), seq_len (2048), lora_rank (16), lora_targets (all linear layers), micro_batch, global_batch_tokens, checkpointing, offload (cpu plans with weights and optimizer in host memory, on two GPUs or more; not planned otherwise), stack, optimizer, training_precision, quantization. GPUs: gpu, exclude_gpu (a gpu_id, which is that card alone: rtx-4090 is not rtx-4090-48gb; or a family such as h100, hopper or nvidia, see gpu_names), gpus (the most, 8; max_gpus is its older name), min_gpus, max_nodes. Where: provider, exclude_provider, source, exclude_source, tier (tier classes), country (two letters, or eu for the members of the European Union), continent; offers whose place is unknown are left out where a place is asked for, and counted in job_assumptions. Price: kind (on_demand; any = every kind but reserved, which has to be named; price_kind is its older name), max_term_days, max_usd, max_age_days, quote (8 x h100-sxm-80gb at 1.50, in USD per GPU and hour; several with semicolons), own (2 x rtx-4090 at 0.12, electricity in USD per GPU and hour, 0 where it is left out). The answer: max_hours (deadline_hours of cost_parameters, a week, where any answer keeps to it; one that is given is kept to strictly, infinity is none), min_fit_probability (0.9), evidence (the least: measured, traced, interpolated, extrapolated), assumed_sizes (false; true also ranks machines of which nothing says that they are sold), objective (cost, time, or pareto: only answers that no other beats in both). Columns that name something take several with commas, or a list; the table job_names has what each may contain. Raises an error that names the job, and the nearest known names, when a value is wrong, and the nearest known column when the name of a column looks misspelt (metod); other columns, such as a note, are ignored and listed in job_assumptions.';
