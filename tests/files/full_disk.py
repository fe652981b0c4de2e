"""A full disk: the system refuses to let any file grow beyond a size."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(size):
    """Let no file grow beyond `size` [bytes] in the block; Python ignores the signal SIGXFSZ."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
