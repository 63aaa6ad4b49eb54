"""How the MST of a job grows with task slots and memory: growth laws, fitted to observations, and weighed against each
other."""
