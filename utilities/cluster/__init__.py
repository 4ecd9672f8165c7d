"""A Ray cluster: joining one, placing actors and processes on its nodes, and starting one on this machine.

Ray is imported here alone, and only once a cluster is joined. Read ``joined_cluster`` (nodes, actors, and what is
lacking) first, then ``node_agent`` (the program of an actor), ``node_places`` (processes on nodes, and their files) and
``raylets`` (a cluster of this machine).
"""
