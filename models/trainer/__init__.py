"""The trainer child: DeepSpeed in a process of its own."""
