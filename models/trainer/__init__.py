"""The trainer child: DeepSpeed in its own process.

Read ``client`` first (the parent's side), then ``child`` and ``session`` (its requests), ``learner`` and ``critic`` (an
update). ``samples`` are files of rows, ``batch`` their tensors and ``microbatches`` how they are cut. ``order`` sorts
rows, ``packing`` makes tries of them, ``attention`` and ``head`` are what a model uses in ``forward`` over a trie, and
``check`` compares that with single rows. ``engine``, ``ranks``, ``launch``, ``reference``, ``activations`` and
``checkpoint`` are DeepSpeed, its processes, and what they hold and write.
"""
