"""The tasks that measure: each waits in the triggerer for a process of its own, and holds a slot of the testbeds' pool."""
