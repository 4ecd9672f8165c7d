"""``python -m flows`` is the ``coevo`` command of this interpreter and this checkout."""

from flows.start import main

main()
