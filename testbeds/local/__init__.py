"""What testbeds on this machine share: cached folders, a Java development kit, Maven, memory and ports."""
