"""Capacity: parameters, memory and time of a policy, estimated before it is built.

Read ``model_shape`` first, then ``footprint`` (bytes), ``storage`` (on disk), ``iteration_time`` (seconds) and
``devices`` (hardware).
"""
