-- fail: a matched offer does not name a GPU in the catalogue, or an unmatched offer names one
SELECT o.day, o.source, o.raw_label, o.match_status, o.gpu_id
FROM main.offers AS o
LEFT JOIN main.gpus AS g USING (gpu_id)
WHERE (o.match_status = 'matched') <> (g.gpu_id IS NOT NULL)
