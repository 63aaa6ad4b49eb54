"""The review of capacity models: the rule, its run in MLflow, and what people decide."""
