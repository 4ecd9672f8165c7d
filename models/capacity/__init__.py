"""Capacity: parameters, memory and time of a policy, estimated before it is built.

Read ``shape`` first, then ``footprint`` (bytes), ``pace`` (seconds) and ``devices`` (hardware).
"""
