"""What an autopilot may do with a policy's recommendation: limits and guards, as pure functions of facts."""
