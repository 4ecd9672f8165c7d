"""Recipes: read, merged in the order of their defaults, checked.

Read ``load`` first. ``source`` bounds YAML text, ``setting_place`` changes the type of a part and names the key that an
error is about, and ``load_study`` reads studies.
"""
