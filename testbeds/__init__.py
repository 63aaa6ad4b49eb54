"""Where a job can be measured: one protocol, several testbeds, one conformance suite."""
