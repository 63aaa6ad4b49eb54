"""Wrong files and wrong answers of servers, and the entry points that must survive them."""
