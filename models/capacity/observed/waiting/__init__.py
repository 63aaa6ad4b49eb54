"""Records that wait in a running job: before its sources, and on their way from one vertex to the next."""
