-- fail: an offer's source is not in the catalogue
SELECT DISTINCT source
FROM main.offers
ANTI JOIN main.sources USING (source)
