"""The figures of papers and peers with Sluice's beside them, sorted by topic; each script runs as a module."""
