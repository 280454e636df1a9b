-- fail: an offer is matched without a GPU of the catalogue, or names one without being matched
SELECT o.day, o.source, o.raw_label, o.match_status, o.gpu_id
FROM main.offers AS o
LEFT JOIN main.gpus AS g USING (gpu_id)
WHERE (o.match_status = 'matched') <> (g.gpu_id IS NOT NULL)
