"""The trainer child: DeepSpeed in its own process.

Read ``trainer_client`` first (the parent's side), then ``child`` and ``training_session`` (its requests, the critic,
and the check of packed rows), ``learner`` (an update). ``samples`` are files of rows, ``update_batch`` their tensors.
``order`` sorts rows, ``packing`` cuts them into micro-batches and makes tries of them, ``trie_attention`` is what a
model uses in ``packed_forward`` over a trie. ``deepspeed_engine``, ``ranks``, ``trainer_launch``, ``reference_policy``
and ``checkpoint`` are DeepSpeed, its processes, and what they hold and write.
"""
