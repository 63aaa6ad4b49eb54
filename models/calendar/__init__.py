"""Planning ahead: from the seasons of a source rate and stated events to the rates to plan for, and when."""
