"""One commit a revision: policy, optimizer, bank, episodes, configuration and code."""
