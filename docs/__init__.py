"""The documentation: pages, the site's settings, and `docs.generate`, which writes some of the pages."""
