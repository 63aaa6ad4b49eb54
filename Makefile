.PHONY: help
help:
	@echo "under construction"
