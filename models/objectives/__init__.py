"""What a plan must achieve beside its rate: lag, recovery from an outage, price; stated, parsed, and reported."""
