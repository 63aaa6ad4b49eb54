"""Plans through a git repository that a job is deployed from: written into a branch, merged by people, then verified."""
