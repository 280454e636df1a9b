-- How far an estimate stands from what somebody measured, and how wide its band is.

create or replace macro gpu_class(vendor, architecture, segment, form_factor) as
    case when vendor <> 'nvidia' then 'other vendor'
        when architecture like 'Blackwell%' then 'blackwell'
        when architecture in ('Hopper', 'Ampere') and form_factor = 'SXM' then 'hopper and a100 sxm'
        when architecture in ('Kepler', 'Maxwell', 'Pascal', 'Volta', 'Turing') then 'before ampere'
        when segment = 'consumer' then 'consumer'
        else 'pcie' end;
comment on macro gpu_class is 'Class of a GPU, for error bands: cards of a class share form factor, cooling and generation.';

create or replace macro evidence_of(needs) as table
with _runs as (
    select r.source, case r.method when 'pretrain' then 'full' else r.method end as method, r.gpu, g.architecture,
        gpu_class(g.vendor, g.architecture, g.segment, g.form_factor) as class, m.params_total::double as params, r.gpu_count, min(r.run_id) as run_id
    from main.measured_runs r
    join main.models m on m.model = r.model
    join main.gpus g on g.gpu_id = r.gpu
    where r.measured_memory_gib is not null or r.measured_tokens_per_second_per_gpu is not null
    group by all
),
_needs as (
    select distinct n.calibration, n.gpu, n.method, n.params_total::double as params, n.gpu_count::double as gpu_count, g.architecture,
        gpu_class(g.vendor, g.architecture, g.segment, g.form_factor) as class
    from query_table(needs) n join main.gpus g on g.gpu_id = n.gpu
),
_nearest as (
    select n.calibration, n.gpu, n.method, n.params, n.gpu_count, n.class,
        min({
            'rank': case when r.gpu = n.gpu and abs(ln(r.params / n.params)) <= ln(1.25e0) and abs(ln(r.gpu_count::double / n.gpu_count)) <= ln(2.01e0) then 0
                when r.run_id is not null and abs(ln(r.params / n.params)) <= ln(3e0) then 1 else 2 end,
            'distance': coalesce(abs(ln(r.params / n.params)) + abs(ln(r.gpu_count::double / n.gpu_count)), 99e0),
            'run_id': r.run_id
        }) as best
    from _needs n
    left join _runs r on r.method = case n.method when 'pretrain' then 'full' else n.method end and r.architecture = n.architecture and r.class = n.class
        -- Constants fitted without a source may not lean on its runs either.
        and n.calibration <> 'without ' || r.source
    group by n.calibration, n.gpu, n.method, n.params, n.gpu_count, n.class
)
select calibration, gpu, method, params, gpu_count, class,
    case best.rank when 0 then 'measured' when 1 then 'interpolated' else 'extrapolated' end as evidence,
    case when best.rank = 0 then best.run_id end as evidence_run
from _nearest;
comment on macro table evidence_of is
    'measured: a published run of the same GPU and method, within 1.25 x the parameters and 2 x the count (named in evidence_run); interpolated: a GPU of the same class and generation, same method, within 3 x the parameters; else extrapolated.';
