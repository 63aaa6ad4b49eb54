"""How a job is operated: the block `operations` of its file, and the blocks in it."""
