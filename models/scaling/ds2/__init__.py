"""DS2: its model of the tasks needed, and the scaling manager that acts on it."""
