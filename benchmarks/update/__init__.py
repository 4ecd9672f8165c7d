"""Speed, memory and exactness of the policy update, beside TRL's and beside single rows.

Read ``turns`` (batches of long episodes) first, then ``forwarded``, ``update_turns``, ``micro_batches`` and
``output_layer``. ``trainer``, ``update_peers`` and ``padded_updates`` measure updates of the embedded recipe.
"""
