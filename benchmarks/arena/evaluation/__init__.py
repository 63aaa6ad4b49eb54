"""The findings of the evaluation of autoscalers, whether our replays agree, and why not."""
