"""What the pages in Airflow show of plans, read from the workspace. Nothing here writes, measures or asks a server."""
