"""Speed on a GPU, with random weights: nothing is downloaded.

Read ``cases`` (models and batches) first, then ``updates``, which needs torch, transformers, PEFT and DeepSpeed but no
server or store, then ``servers`` (a vLLM server that sleeps and gets weights). ``gpu``, the benchmark, measures all of
these and an iteration.
"""
