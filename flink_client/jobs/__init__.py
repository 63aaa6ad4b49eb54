"""Running jobs: their tasks and slots, what a plan changes, their dataflow, checkpoints and rescales, and a restart."""
