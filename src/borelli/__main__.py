"""`python -m borelli` is the command `borelli`."""

from borelli.cli import main

main()
