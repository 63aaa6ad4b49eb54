"""MLflow: tracking, registered capacity models, and their review."""
