"""Polling something of many jobs at once, each in its own thread, from an event loop that must not be blocked."""
