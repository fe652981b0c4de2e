"""Damaged, implausible and malicious files: each is read or refused quickly and in one sentence."""
