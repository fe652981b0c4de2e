"""Thousands of damaged files read in a process of their own, which must outlive every one of them.

`python -m tests.hostile.campaign TRC 20000` runs one campaign, `commands` in place of a format that of stage files read
by commands; a third number, as a failure names it, repeats a single mutant and shows what becomes of it. The process
that reads may take `MEMORY` more than it needs to begin with, and `SECONDS` for a file, working or waiting for
something, but not counting how long others keep it from the processor; warnings count as errors.
"""

import atexit
import faulthandler
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEMORY = 1024**3
SECONDS = 5
HANG = 60
"""Time [s] after which a process that no signal reaches is ended; on a busy machine most of it is waiting."""
LONGEST_MESSAGE = 2000
BATCH = 4000
"""Mutants read by one process."""
SAMPLE = 400
"""Messages kept, of different kinds."""


class TooSlowError(BaseException):
    """Not an Exception, lest a reader catches it."""


class Clock:
    """Time [s] spent on a file since `start`, without the time in which other processes ran."""

    def start(self):
        """Begins to count, and has `TooSlowError` raised after `SECONDS`."""
        self.begun, self.kept = time.perf_counter(), self._kept_waiting()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)

    def seconds(self):
        """Return the time so far [s]."""
        return time.perf_counter() - self.begun - (self._kept_waiting() - self.kept)

    def ring(self, *_):
        """Raises when the time is over, and otherwise waits for the rest of it."""
        left = SECONDS - self.seconds()
        if left <= 0.0:
            raise TooSlowError
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    @staticmethod
    def _kept_waiting():
        """Return how long this process has waited for a processor [s]; known on Linux only."""
        told = Path("/proc/self/schedstat")
        return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


CLOCK = Clock()


def mutant(kind, number):
    """The mutant of that number: the name of what is to be read, and the files."""
    from .mutations import mutate_c3d, mutate_text, mutate_xml
    from .netcdf_mutations import mutate_netcdf
    from .seeds import seeds
    from .stage_mutations import mutate_stage

    rng = random.Random(f"{kind} {number}")
    known = seeds("stages" if kind == "commands" else kind)
    # small ones more often, because they are read sooner
    name, files = rng.choices(known, [sum(map(len, files.values())) ** -0.5 for _, files in known])[0]
    others = [content for _, more in known for content in more.values()]
    target = name if name in files and rng.random() < 0.7 else rng.choice(sorted(files))
    if kind in ("C3D", "netCDF", "stages", "commands"):
        mutate_binary = {"C3D": mutate_c3d, "netCDF": mutate_netcdf}.get(kind, mutate_stage)
        changed = mutate_binary(files[target], rng, others)
    else:
        mutate = mutate_xml if kind in ("OpenSim", "MJCF", "URDF") else mutate_text
        changed = mutate(files[target], rng, others, vocabulary(kind))
    return name, files | {target: changed}


@cache
def vocabulary(kind):
    """Return the keywords and names in the seeds of a format."""
    from .mutations import WORD
    from .seeds import seeds

    return sorted({word for _, files in seeds(kind) for text in files.values() for word in WORD.findall(text)})


def reader(kind):
    """What users call to read a file of that format."""
    if kind == "scene":
        from borelli.scenes.scene_files import read_scene

        return read_scene
    if kind == "stages":
        from .stage_seeds import read_any

        return read_any
    if kind == "commands":
        from .stage_seeds import run_command

        return run_command
    from borelli.model.io import read_model
    from borelli.recording.io import read_recording

    from .seeds import RECORDINGS

    return read_recording if kind in RECORDINGS else read_model


def judged(read, path):
    """Return the verdict on a file ("read", "refused" or "failed") and its message."""
    from borelli.errors import BorelliError

    CLOCK.start()
    try:
        check_sound(read(path))
    except (BorelliError, OSError) as error:
        message = str(error)
        bad = "\n" in message or len(message) > LONGEST_MESSAGE or not message.isprintable()
        return ("failed", f"not one printable sentence: {message[:LONGEST_MESSAGE]!r}") if bad else ("refused", message)
    except TooSlowError:
        return "failed", f"took over {SECONDS} s: {''.join(traceback.format_stack(limit=3))}"
    except BaseException as error:
        steps = traceback.extract_tb(error.__traceback__)[-4:]
        where = " > ".join(f"{Path(step.filename).name}:{step.lineno}" for step in steps)
        return "failed", f"{type(error).__name__}: {str(error)[:300]} ({where})"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "read", ""


def check_sound(found):
    """Check the invariants of recordings: unique names, nothing infinite, increasing times."""
    import numpy as np

    from borelli.recording.recording import Recording

    if not isinstance(found, Recording):
        return
    for name, values in found.data.data_vars.items():
        if values.dtype.kind == "f":
            assert not np.isinf(values.values).any(), f"{name} contains an infinite number"
    for name in ("time", "analog_time"):
        if name in found.data.coords:
            times = found.data[name].values
            assert np.isfinite(times).all(), f"{name} is not finite"
            noted = any(note.code == "time_not_increasing" for note in found.notes)
            assert noted or (np.diff(times) > 0).all(), f"{name} does not increase, and no note reports it"
    assert len(set(found.markers)) == len(found.markers), "two markers have one name"


def work(kind, start, count):
    """Reads mutants and prints what became of them, as JSON; where it stands is kept in the file `progress`."""
    folder = Path.cwd()
    signal.signal(signal.SIGALRM, CLOCK.ring)
    read = reader(kind)
    mutant(kind, 0)  # imports are done before memory is measured
    judged(read, folder / "missing")
    warnings.simplefilter("error")
    limit_memory()
    result = {"read": 0, "refused": 0, "slowest": 0.0, "failed": [], "messages": {}}
    for number in range(start, start + count):
        Path("progress").write_text(str(number))
        name, files = mutant(kind, number)
        for each, content in files.items():
            (folder / "files" / each).write_bytes(content)
        path = folder / "files" / name
        faulthandler.dump_traceback_later(HANG, exit=True)  # where no signal reaches: inside a library
        verdict, said = judged(read, path)
        seconds = CLOCK.seconds()
        faulthandler.cancel_dump_traceback_later()
        if seconds > result["slowest"]:
            result |= {"slowest": seconds, "slowest_number": number}
        if verdict == "failed":
            result["failed"].append(f"{kind} {number}: {said}")
        else:
            result[verdict] += 1
        if verdict == "refused" and len(result["messages"]) < SAMPLE:
            short = said.replace(str(folder / "files") + os.sep, "")
            result["messages"].setdefault(re.sub(r"\d+|'[^']*'", "#", short)[:70], short)
    print(json.dumps(result | {"memory": peak_memory()}))


def judge():
    """Answers requests, [[format, path], ...] in one line each, by what became of the files, as JSON in one line.

    Every request has a process of its own, which is limited; what is imported is shared by all of them.
    """
    from .seeds import FORMATS

    signal.signal(signal.SIGALRM, CLOCK.ring)
    readers = {kind: reader(kind) for kind in FORMATS}
    for kind, read in readers.items():
        mutant(kind, 0)
        judged(read, Path("missing"))
    for request in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # further requests are not for it to read
            _answer(json.loads(request), readers)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"died": status}), flush=True)


def _answer(pairs, readers):
    warnings.simplefilter("error")
    limit_memory()
    verdicts = []
    for kind, path in pairs:
        Path("progress").write_text(f"{kind} {path!a}")
        faulthandler.dump_traceback_later(HANG, exit=True)
        verdicts.append(judged(readers[kind], path))
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps(verdicts), flush=True)


@cache
def _judge():
    """The process that judges, as long as this one lives, and the folder it works in."""
    folder = tempfile.TemporaryDirectory()
    with (Path(folder.name) / "errors").open("w") as errors:
        command, environment = _command(["judge"])
        process = subprocess.Popen(
            command, cwd=folder.name, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors,
        )  # fmt: skip
    atexit.register(folder.cleanup)
    atexit.register(process.communicate)  # ends it
    return process, folder.name


def judgements(pairs):
    """What became of files, [(format, path), ...], read in a process that may neither take long nor much memory."""
    process, folder = _judge()
    process.stdin.write(json.dumps([(kind, str(path)) for kind, path in pairs]) + "\n")
    process.stdin.flush()
    verdicts = json.loads(process.stdout.readline() or '{"died": 0}')
    if isinstance(verdicts, dict):
        said = {name: at.read_text() for name in ("progress", "errors") if (at := Path(folder) / name).exists()}
        raise AssertionError(f"the process died ({verdicts}) at {said.get('progress')}: {said['errors'][-1500:]}")
    return [tuple(verdict) for verdict in verdicts]


def peak_memory():
    """Most memory that the process has had [bytes]."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage reports begins with the memory of the process that started this one
        return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def limit_memory():
    """Limit the memory of the process to `MEMORY` more than it has; on Linux only."""
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def campaign(kind, count, start=0):
    """What became of `count` mutants of a format: numbers read and refused, failures, messages, time and memory."""
    total = {"format": kind, "read": 0, "refused": 0, "slowest": 0.0, "memory": 0, "failed": [], "messages": {}}
    begun = time.perf_counter()
    number, end = start, start + count
    while number < end and len(total["failed"]) < 50:
        batch = min(BATCH, end - number)
        result, number = _batch(kind, number, batch)
        for key in ("read", "refused"):
            total[key] += result.get(key, 0)
        total["slowest"] = max(total["slowest"], result.get("slowest", 0.0))
        total["memory"] = max(total["memory"], result.get("memory", 0))
        total["failed"] += result["failed"]
        total["messages"] = result.get("messages", {}) | total["messages"]
    total["seconds"] = time.perf_counter() - begun
    return total


def _command(arguments):
    """The command that runs this module, and its environment."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment["BORELLI_JIT"] = "0"  # the small seeds need no compiled kernels
    return [sys.executable, "-m", "tests.hostile.campaign", *arguments], environment


def _batch(kind, number, count):
    """The result of one process, and the number of the mutant to go on with."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "files").mkdir()
        command, environment = _command(["work", kind, str(number), str(count)])
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1]), number + count
        progress = Path(folder) / "progress"
        if not progress.exists():
            raise RuntimeError(f"the process that reads did not begin: {done.stderr[-2000:]}")
        died = int(progress.read_text())
    failed = [f"{kind} {died}: the process died ({done.returncode}): {done.stderr[-600:]}"]
    if died == number:
        return {"failed": failed}, died + 1
    before, _ = _batch(kind, number, died - number)  # once more, without the one that killed it
    return before | {"failed": before["failed"] + failed}, died + 1


def line(total):
    """The figures of a campaign in one line."""
    return (
        f"{total['format']:8} {total['read'] + total['refused'] + len(total['failed']):6} mutants, "
        f"{total['read']:6} read, {total['refused']:6} refused, {len(total['failed'])} failed; slowest "
        f"{total['slowest']:.2f} s, at most {total['memory'] / 1e6:.0f} MB, {total['seconds']:.0f} s in all"
    )


def main(arguments):
    """The command line."""
    if arguments[0] == "work":
        return work(arguments[1], int(arguments[2]), int(arguments[3]))
    if arguments[0] == "judge":
        return judge()
    if len(arguments) == 3:  # a single mutant, kept
        name, files = mutant(arguments[0], int(arguments[2]))
        folder = Path(tempfile.mkdtemp())
        for each, content in files.items():
            (folder / each).write_bytes(content)
        warnings.simplefilter("error")
        print(folder / name)
        return print(reader(arguments[0])(folder / name))
    total = campaign(arguments[0], int(arguments[1]))
    print(line(total))
    print(*total["failed"], sep="\n")
    for message in list(total["messages"].values())[:: max(1, len(total["messages"]) // 40)]:
        print("   ", message[:300])


if __name__ == "__main__":
    main(sys.argv[1:])
