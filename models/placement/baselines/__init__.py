"""What CAPS is compared with: Flink's own policies, a random plan, and ODRP."""
