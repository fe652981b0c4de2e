"""Server that runs commands in forked processes: libraries and kernels are loaded once for hundreds of runs.

A line of stdin is a JSON list of runs that start together, each with `arguments`, `folder`, the largest file size
`limit` [bytes] or null, and the time of its SIGKILL `kill` [s] or null. The answer is a list of exit codes and stderr.
"""

import json
import os
import resource
import signal
import sys
import threading


def start(run):
    """Start a run; return its process, the pipe of its stderr and the timer that kills it."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        timer = threading.Timer(3600.0 if run["kill"] is None else run["kill"], os.kill, (process, signal.SIGKILL))
        timer.start()
        return process, read, timer
    os.chdir(run["folder"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(write, 2)
    if run["limit"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (run["limit"], run["limit"]))
    sys.argv = ["borelli", *run["arguments"]]
    from borelli.cli import main

    main()
    sys.exit(0)


def finish(process, err, timer):
    with os.fdopen(err, errors="replace") as pipe:
        text = pipe.read()
    status = os.waitpid(process, 0)[1]
    timer.cancel()
    timer.join()
    return [os.waitstatus_to_exitcode(status), text]


def warm_up(folder):
    """Load libraries and kernels by a run of each kind."""
    os.chdir(folder)
    from borelli.cli import main

    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for arguments in (["analyze", "walk.c3d", "-o", "warm"], ["simulate", "scene.toml", "--duration", "0.1"]):
        sys.argv = ["borelli", *arguments]
        try:
            main()
        except SystemExit as done:
            assert not done.code, arguments
    os.dup2(out, 1)


def serve(folder):
    warm_up(folder)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        runs = [start(run) for run in json.loads(line)]
        print(json.dumps([finish(*run) for run in runs]), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
