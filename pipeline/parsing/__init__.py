"""Code shared by readers: HTML, text, prices, units, tables and JSON lists."""
