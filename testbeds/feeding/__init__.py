"""What testbeds share to feed records at a set rate."""
