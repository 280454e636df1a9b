"""Types that the rooms of pipeline/ pass to each other."""
