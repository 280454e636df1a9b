"""Where things lie: paths of the home, writing files to disk, the lock that one publisher holds."""
