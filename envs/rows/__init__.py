"""Tables of tasks with reward functions and tools, as an environment.

Read ``task_table`` (rows of a file, and their hash) and ``table_splits`` (which of them train) first, then
``rows_environment``. User functions run in worker processes: ``user_functions`` imports and checks them,
``function_worker`` is what a worker does, ``function_pool`` asks workers and limits their time. ``row_rewards`` adds up
rewards, ``judge_reward`` asks a model for one, and ``python_tools`` describes functions as tools.

Nothing is imported here: workers need a small part of it.
"""
