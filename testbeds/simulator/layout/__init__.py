"""From a job, a configuration and a cluster to the kernel's tables: keys, buffers, memory, edges."""
