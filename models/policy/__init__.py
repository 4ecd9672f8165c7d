"""The policy: weights, tokenizer, prompt.

Read ``policy`` first, then ``context`` (a moment as a prompt) with its styles ``terse``, ``prose``, ``conversation``.
``sound`` checks weights before they are used.
``encoding`` turns text into tokens, control tokens apart from data, and ``lines`` each line once; ``piece`` and
``layout`` find out what a chat template writes around messages, ``template`` renders it within limits, and ``trial``
tries it first. ``tokenizer`` and ``warmstart`` (cloning) are for small policies; ``foreign`` checks models from
elsewhere; ``standin`` provides a tokenizer before the policy exists; ``decoder`` shows prompts without the model.
"""
