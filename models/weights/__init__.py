"""Weights as files and on servers: written tensor by tensor, and compared by digest.

Read ``tensor_file`` first (the safetensors format, written as a stream), then ``tensor_digest``.
"""
