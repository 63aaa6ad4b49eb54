"""The task that waits for the merge of a plan: in the triggerer, without a slot of a worker."""
