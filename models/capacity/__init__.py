"""Capacity: parameters, memory and time of a policy, estimated before it is built.

Read ``model_shape`` first, then ``footprint`` (bytes of memory and disk), ``iteration_time`` (seconds) and ``devices``
(hardware).
"""
