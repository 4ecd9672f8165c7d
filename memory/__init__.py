"""The experience bank: store, index, retrieval, writers, admission."""
