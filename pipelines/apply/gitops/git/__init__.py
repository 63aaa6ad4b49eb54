"""Files in branches of a remote git repository, by the git program: no working tree, no interface of a forge."""
