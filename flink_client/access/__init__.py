"""How servers are reached: named connections, certificates, credentials, and what to do where access is refused."""
