"""The effects: stages of planning, the workspace, MLflow, Flink, reports, and the command line."""
