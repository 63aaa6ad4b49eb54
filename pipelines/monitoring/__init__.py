"""What Sluice exports to a monitoring system, as OpenMetrics: its autopilots, plans and models."""
