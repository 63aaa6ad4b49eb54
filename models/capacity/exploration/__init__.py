"""Which budget to measure next: as StreamBed does, or as the question asked needs it."""
