"""Parts that readers share: HTML, text, prices, units, tables and JSON lists."""
