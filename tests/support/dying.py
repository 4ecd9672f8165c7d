"""A process that dies within, as far as a test in the same process can tell."""


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill."""


def dying(original):
    """The function, after which nothing more is done."""

    def call(*args, **kwargs):
        original(*args, **kwargs)
        raise Killed

    return call
