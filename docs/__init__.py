"""The documentation: pages, the site's settings, and `docs.generate`, which makes some of the pages."""
