"""Speed on a GPU, with random weights: nothing is downloaded.

Read ``cases`` (models and batches) first, then ``updates``, which needs torch, transformers, PEFT and DeepSpeed but no
server or store, and ``gpu`` (the benchmark: updates, vLLM, sleep, and an iteration).
"""
