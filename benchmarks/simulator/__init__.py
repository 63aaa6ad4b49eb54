"""The simulator beside published rates and sizes, and its speed."""
