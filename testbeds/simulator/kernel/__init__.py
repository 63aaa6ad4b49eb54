"""The compiled kernel: tables of a deployment, and one step of its dataflow."""
