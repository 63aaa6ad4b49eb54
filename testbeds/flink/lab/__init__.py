"""Laboratory equipment: CPU quotas, processors kept awake, and CPU time stolen by a hypervisor."""
