"""Authors: language models that answer the questions of writers. Read ``base`` first."""
