"""Subcommands of `borelli`, one module each: parse, call, print."""
