"""Commands that run one model on files, without a workspace: capacity, scaling, placement."""
