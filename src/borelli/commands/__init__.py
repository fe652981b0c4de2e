"""One module for each verb of the command `borelli`: parses, calls, prints."""
