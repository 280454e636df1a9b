"""Types that pass between rooms."""
