"""Odd recordings (`odd_content`) through every command, in processes that must outlive every one of them.

`python -m tests.hostile.odd_campaign 2000` runs the campaign; `python -m tests.hostile.odd_campaign 0 17` runs the
commands on number 17 alone and shows what they print. Commands run in the process of a worker, with warnings as errors.
"""

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .campaign import ROOT, TooSlowError

SECONDS = 60
"""Processor time that a command may take [s]."""
MEMORY = 3 * 1024**3
"""Memory that a worker may take beyond what it begins with [bytes]."""
MAX_FAILURES = 200
RAW_VALUES = re.compile(r"np\.\w+\(|array\(|dtype=|Warning:|Traceback|<borelli|object at 0x")
"""Words of Python that no user should read."""
CLEAN_TO = ("c3d", "trc", "csv", "nc")
ID_METHODS = ("newton-euler", "stepped")
EXPERIMENTS = ("noise", "reduced-markers", "ground", "jump", "armswing", "inertia-swap")
"""Experiments that take a recording."""
IK_METHODS = ("framewise", "framewise", "smoothed", "marker-driven")


def commands(number, path, folder, deep):
    """Yield the commands for a file, each of which may need the output of those before it; with `deep` all of them."""
    target = CLEAN_TO[number % len(CLEAN_TO)]
    json_too = ["--json"] if number % 2 else []
    yield ["info", path, "--json"]
    yield ["info", path, *(["--plot", folder / "plot.png"] if number % 4 == 0 else [])]
    yield ["markers", path, "--write", folder / "map.toml", *json_too]
    yield ["doctor", path, *json_too]
    yield ["clean", path, folder / f"clean.{target}", *json_too]
    yield ["convert", path, folder / f"other.{target}", *json_too]
    yield ["simulate", path, *json_too]
    if not deep:
        return
    ik_method, id_method = IK_METHODS[number % len(IK_METHODS)], ID_METHODS[number // 4 % len(ID_METHODS)]
    methods = ["--ik-method", ik_method, "--id-method", id_method]
    muscles = ["--muscles"] if number % 5 < 2 else []
    yield ["analyze", path, "-o", folder / "analysis", *methods, *muscles, *json_too]
    if number % 3 == 0:
        model, strong = folder / "model.toml", folder / "strong.toml"
        yield ["fit", path, "-o", model, *json_too]
        yield ["compare", model, folder / "walk.toml", "--poses", "2", *json_too]
        posed = model if model.exists() and number % 2 else strong
        yield ["ik", posed, path, "-o", folder / "motion.nc", *json_too]
        yield ["id", folder / "motion.nc", "-o", folder / "torques.nc", "--method", id_method, *json_too]
        yield ["muscles", folder / "torques.nc", "-o", folder / "muscles.nc", *json_too]
        source = folder / "muscles.nc" if (folder / "muscles.nc").exists() else folder / "torques.nc"
        yield ["energy", source, "-o", folder / "energy.nc", *json_too]
        yield ["report", folder / "energy.nc", "-o", folder / "report.html"]
    if number % 3 == 1:
        yield ["animate", path, "-o", folder / "animation", "--no-video", *json_too]
    if number % 3 == 2:
        mapped = [path, "--markers", folder / "map.toml"]
        yield ["markers", *mapped, "--picture", folder / "markers.svg"]
        yield ["clean", *mapped, folder / "mapped.nc", *json_too]
    if number % 12 == 2:
        name = EXPERIMENTS[number // 12 % len(EXPERIMENTS)]
        yield ["experiment", name, "--recording", path, "--quick", "-o", folder / "experiment", *json_too]


def run(arguments):
    """Run a command in this process; return its exit code, what it printed, and a failure or ""."""
    from borelli.cli import main

    printed, errors, failure = io.StringIO(), io.StringIO(), ""
    sys.argv = ["borelli", *map(str, arguments)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(10 * SECONDS, exit=True)  # where no signal reaches: inside a kernel
    code = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else (0 if stop.code is None else 1)
    except BaseException as error:
        code = -1
        steps = [step for step in traceback.extract_tb(error.__traceback__) if "/site-packages/" not in step.filename]
        where = " > ".join(f"{Path(step.filename).name}:{step.lineno}" for step in steps[-4:])
        failure = f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({where})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    return code, printed.getvalue(), errors.getvalue(), failure


def judge(arguments, code, printed, errors, failure):
    """Return what is wrong with the outcome of a command, or ""."""
    if failure:
        return failure
    if code not in (0, 1):
        return f"exit code {code}: {errors[-300:]}"
    if found := RAW_VALUES.search(printed + errors):
        text = printed + errors
        return f"prints {found[0]!r}: {text[max(0, found.start() - 100) : found.end() + 100]!r}"
    lines = errors.strip().splitlines()
    if lines and (len(lines) > 1 or not re.match(r"borelli: .*[.?!)]$", lines[0])):
        return f"not one sentence: {errors[:300]!r}"
    if code == 0 and lines:
        return f"an error, but exit code 0: {errors[:300]!r}"
    if code == 1 and not lines and "doctor" not in arguments:
        return "exit code 1 without a reason"
    if "--json" in arguments:
        return _judge_json(arguments, code, printed)
    return ""


def _judge_json(arguments, code, printed):
    try:
        value = json.loads(printed, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return f"not JSON: {printed[:200]!r}"
    if not isinstance(value, dict):
        return f"not one object: {printed[:200]!r}"
    if code == 1 and "doctor" not in arguments and not {"error", "file"} <= set(value):
        return f'no "error" and "file": {printed[:200]!r}'
    return ""


def check_file(number, folder, deep):
    """Run all commands on the file of a number; return [(command, exit code, failure)] and its description."""
    from .odd_content import write_odd

    place = folder / "work"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("walk.toml", "strong.toml"):
        shutil.copy(folder / name, place)
    path, described = write_odd(number, place)
    outcomes = []
    for arguments in commands(number, path, place, deep):
        begun = time.process_time()
        code, printed, errors, failure = run(arguments)
        failure = judge(arguments, code, printed, errors, failure)
        outcomes.append((arguments[0], code, failure, time.process_time() - begun))
    return outcomes, described


def write_bodies(folder):
    """Write the model of the synthetic walk, with muscles and without."""
    from borelli.model.io import write_model
    from borelli.people.human_muscles import add_muscles
    from borelli.synthetic.recordings import synthetic_recording

    model = synthetic_recording("walk").model
    write_model(model, folder / "walk.toml")
    write_model(add_muscles(model), folder / "strong.toml")


def work(start, count, step, every):
    """Check every `step`-th file, and print one line of JSON for each; every `every`-th goes through all commands."""
    from borelli.kernels.compile_cache import compile_kernels, missing_tasks

    folder = Path.cwd()
    write_bodies(folder)
    signal.signal(signal.SIGPROF, _too_slow)
    os.environ["BORELLI_QUIET"] = "1"
    compile_kernels(tasks=missing_tasks())
    run(["info", "missing"])  # imports are done before memory is measured
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(?!borelli)")  # Python hides them
    limit_memory()
    for index, number in enumerate(range(start, start + count, step)):
        outcomes, described = check_file(number, folder, deep=index % every == 0)
        print(json.dumps([number, described, outcomes]), flush=True)


def _too_slow(*_):
    raise TooSlowError


def limit_memory():
    """Limit the memory of the process to `MEMORY` more than it has; on Linux only."""
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def campaign(count, start=0, workers=1, step=1, every=1):
    """What became of `count` files, `step` apart: outcomes by command, and failures."""
    total = {"files": 0, "runs": Counter(), "failed": [], "slowest": (0.0, ""), "work": Counter()}
    begun = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        firsts = [start + step * k for k in range(workers)]
        list(pool.map(lambda first: _collect(total, first, step * workers, start + step * count, every), firsts))
    total["seconds"] = time.perf_counter() - begun
    return total


@contextlib.contextmanager
def _worker(start, count, step, every):
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "errors").open("w+") as errors:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        numbers = map(str, (start, count, step, every))
        command = [sys.executable, "-m", "tests.hostile.odd_campaign", "work", *numbers]
        process = subprocess.Popen(
            command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=errors
        )
        process.errors = errors
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def _collect(total, following, step, end, every):
    """Add the outcomes of every `step`-th file to the total; go on in another process after a file that ended one."""
    while following < end and len(total["failed"]) < MAX_FAILURES:
        with _worker(following, end - following, step, every) as process:
            for text in process.stdout:
                number, described, outcomes = json.loads(text)
                following = number + step
                _add(total, number, described, outcomes)
            if process.wait() == 0:
                return
            process.errors.seek(0)
            said = process.errors.read()[-800:]
        total["failed"].append(f"{following}: the process died ({process.returncode}): {said}")
        print(total["failed"][-1], file=sys.stderr, flush=True)
        following += step


def _add(total, number, described, outcomes):
    total["files"] += 1
    for command, code, failure, seconds in outcomes:
        total["runs"][f"{command} {code}"] += 1
        total["work"][command] += seconds
        total["slowest"] = max(total["slowest"], (seconds, f"{number} {command} ({described})"))
        if failure:
            total["failed"].append(f"{number} ({described}) {command}: {failure}")
            print(total["failed"][-1], file=sys.stderr, flush=True)
    if total["files"] % 50 == 0:
        print(f"{total['files']} files, {len(total['failed'])} failed", file=sys.stderr, flush=True)


def line(total):
    """The figures of a campaign in one line."""
    runs = ", ".join(f"{name}: {count}" for name, count in sorted(total["runs"].items()))
    work = ", ".join(f"{name}: {seconds:.0f}" for name, seconds in total["work"].items())
    return (
        f"{total['files']} files, {sum(total['runs'].values())} runs, {len(total['failed'])} failed, slowest "
        f"{total['slowest'][0]:.1f} s ({total['slowest'][1]}), {total['seconds']:.0f} s in all; command and exit code: "
        f"{runs}; processor time by command [s]: {work}"
    )


def show(number):
    """Run the commands on the file of a number, and print everything."""
    from .odd_content import write_odd

    folder = Path(tempfile.mkdtemp())
    write_bodies(folder)
    path, described = write_odd(number, folder)
    print(path, described)
    signal.signal(signal.SIGPROF, _too_slow)
    warnings.simplefilter("error")
    for arguments in commands(number, path, folder, deep=True):
        code, printed, errors, failure = run(arguments)
        print(*arguments, f"\n    exit code {code}", failure, judge(arguments, code, printed, errors, failure))
        print("\n".join(f"    {text[:200]}" for text in (printed + errors).splitlines()[:30]))


def main(arguments):
    """The command line."""
    if arguments[0] == "work":
        return work(*map(int, arguments[1:]))
    if len(arguments) == 2 and arguments[0] == "0":
        return show(int(arguments[1]))
    total = campaign(int(arguments[0]), *map(int, arguments[1:]))
    print(*total["failed"], sep="\n")
    print(line(total))


if __name__ == "__main__":
    main(sys.argv[1:])
