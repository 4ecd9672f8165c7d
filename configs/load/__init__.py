"""Recipes: read, merged in the order of their defaults, checked.

Read ``load`` first. ``shipped_files`` lists what comes with coevo, ``setting_place`` changes the type of a part and
names the key that an error is about, ``pairing`` composes an environment, a method and a model, ``paper_tables`` lists
those of the papers, ``load_study`` reads studies, and ``open_parts`` imports the parts of other packages.
"""
