"""Answers of a policy: from a completion's text to a thought and an action, or to the fault that prevents one.

A model's text is never trusted: it may be cut anywhere, hold several actions, invent the environment's reply, or
imitate any format. The environment names the form of an answer. In a labelled form, the first complete action counts;
in the others, and where no form is named, the last complete one before the first invented observation.

Read ``read`` first, which applies the rules. ``forms`` has the formats that a prompt can ask for. ``answer_page`` finds
labels, fences and invented turns, and ``label_payloads`` what follows a label: ``label_reader`` takes of them the
action of a labelled form, and ``labels`` the actions of an answer whose form is not known. ``thinking`` removes the
thinking of a reasoning model, ``observations`` finds what an answer invents, and ``spans`` the parts that are data.
``extent`` decides where an action ends, and ``wrappings`` which marks around it are no part of it. ``calls`` finds tool
calls in the forms of chat templates, of which ``python_notation`` reads those in Python's. ``call_tools``
compares a call with the tools that an environment offers, whose arguments ``tool_schema`` describes.
"""
