"""HTTP servers of the tests' own, whose answers a test decides."""
