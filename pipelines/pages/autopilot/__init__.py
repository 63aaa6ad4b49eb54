"""What the pages of the autopilots show: all jobs in short, and one job with its decisions and figures."""
