"""The science of Sluice: pure Python, with no orchestrator, engine, tracker, server, file or clock in it."""
