"""From recordings to a report: read, clean, fit, pose, torques, energy, bands, report, each stage's file in one folder.

A stage's file carries a key made of what went into it: the content of the recordings, the settings so far, the version
and the code. A stage whose file has the right key is loaded, not computed; so a run that was stopped is taken up where
it was, and a changed setting computes only what follows from it. Files appear whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli import __version__
from borelli.analysis.derivatives import derivatives
from borelli.analysis.energy import Energy
from borelli.analysis.energy import energy as find_energy
from borelli.analysis.fit import Fit, fit_model
from borelli.analysis.ground import ground_forces
from borelli.analysis.motion import Motion
from borelli.analysis.pose import follow_markers
from borelli.analysis.torques import Torques, inverse_dynamics
from borelli.bands import bands_in, check_bands
from borelli.errors import BorelliError, SettingsError, listed
from borelli.export.bands import FILE, Bands, remove_bands, write_band_tables
from borelli.export.stages import made, plain, read_fit, read_stage, write_fit, write_stage
from borelli.export.summary import summarize
from borelli.export.tables import write_tables
from borelli.export.whole import sweep, write_whole
from borelli.model.human import human
from borelli.model.model import Model
from borelli.model.native import model_to_text
from borelli.model.read import read_model
from borelli.model.resize import scale_mass
from borelli.recording.clean import clean
from borelli.recording.in_view import keep_in_view
from borelli.recording.joints_as_markers import joints_as_markers
from borelli.recording.plates_to_feet import add_plates
from borelli.recording.read import read_recording
from borelli.recording.recording import Note, Recording
from borelli.recording.smooth import step_cutoff
from borelli.reports.report import report as write_report
from borelli.reports.warnings import warnings_of

if TYPE_CHECKING:
    from xarray import Dataset

Progress = Callable[[str, float], None]
"""Hears what is being done, and the share of all that is done."""

CODE = ("model", "recording", "reduced", "analysis", "export")
"""Rooms whose code decides what results are."""
MASS, HEIGHT = 75.0, 1.75
"""Of a subject of whom nothing is known [kg, m]; a warning says so."""
UNSEEN = 0.3
"""Part of the body's mass without markers that is told; two arms are a tenth."""
SHARES = {"read": 0.1, "fit": 0.35, "pose": 0.5, "torques": 0.8, "energy": 0.9, "report": 1.0}
"""Of the work without bands, when each stage has ended."""
REPEAT = 0.05
"""What a repeat takes of all that work."""


@dataclass(frozen=True)
class Plan:
    """What to analyse, and how.

    Attributes:
        model: A model file; None: a human of this mass, height and sex.
        mass: Of the subject [kg]; None: what the recording says.
        height: Of the subject [m]; None: what the recording says.
        sex: "male" or "female"; None: what the recording says.
        fit: Whether the model is fitted to the recordings; else it is taken as it is.
        static: A recording in which the subject stands still.
        forces: A second file with the plates of the recording.
        plates: Whether plates are used; else the ground's forces are computed from the motion.
        method: Of the poses: "converged", "smoothed" or "dynamic".
        torque_method: "smooth" or "stepped".
        cutoff: Of the low-pass on coordinates [Hz]; None: the default.
        start: Where to begin [s].
        stop: Where to end [s].
        reading: What the user says of the recordings: units, up, forward, skeleton.
        monte_carlo: How often the analysis is done again on shaken markers, for a band on every output; 0: no bands.
        noise: Deviation [m] along each axis by which markers are then shaken; None: as they are seen to shake.
    """

    model: Path | None = None
    mass: float | None = None
    height: float | None = None
    sex: str | None = None
    fit: bool = True
    static: Path | None = None
    forces: Path | None = None
    plates: bool = True
    method: str = "converged"
    torque_method: str = "smooth"
    cutoff: float | None = None
    start: float = -np.inf
    stop: float = np.inf
    reading: Mapping[str, Any] = field(default_factory=dict)
    monte_carlo: int = 0
    noise: float | None = None


@dataclass(frozen=True)
class Analysis:
    """What one recording gave.

    Attributes:
        energy: The last stage; the others are in it.
        fit: How the model was fitted; None: it was taken as it is.
        contacts: Forces of the feet computed from the motion, where plates measured them too.
        summary: The figures of `summary.json`.
        folder: Where the files are.
        loaded: Stages that were taken from earlier files.
        bands: How sure each output is; None: that was not asked for.
    """

    energy: Energy
    fit: Fit | None
    contacts: Dataset | None
    summary: Mapping[str, Any]
    folder: Path
    loaded: tuple[str, ...] = ()
    bands: Bands | None = None


def analyze(
    recordings: Sequence[Path], folder: Path, plan: Plan | None = None, progress: Progress = lambda what, share: None
) -> tuple[Analysis, ...]:
    """Analyses recordings of one subject; each one's files go into the folder, of several into folders of their own.

    Args:
        recordings: Files.
        folder: Where results go; it is made if need be.
        plan: How.
        progress: Hears what is done.

    Raises:
        SettingsError: no recording, two of one name, or a setting that does not fit.
    """
    plan = plan or Plan()
    if not recordings:
        raise SettingsError("no recording given: name at least one file")
    names = [path.stem for path in recordings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"two recordings are called {twice!r}, and so would their folders; rename one")
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file, but results go into a folder: name another with --out")
    check_bands(plan.monte_carlo, plan.noise)
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    start = perf_counter()
    progress("reading", 0.0)
    trials = [read_trial(path, plan) for path in recordings]
    static = None if plan.static is None else read_trial(plan.static, replace(plan, forces=None))
    read = perf_counter() - start
    ends = shares(plan.monte_carlo)
    progress("fitting the body", ends["read"])
    inputs = [file_hash(path) for path in (*recordings, plan.static, plan.forces, plan.model) if path is not None]
    model, fit, fitted = _fitted(trials, static, folder, plan, inputs)

    @cache
    def solved() -> Fit | None:
        """The fit with its solution, which its file does not hold: found again where it was loaded."""
        if fit is None or fit.solution is not None:
            return fit
        # of the mass that is in the file, which plates may have weighed
        return replace(fit_model(generic_model(plan, trials[0]), list(trials), static=static), model=fit.model)

    results = []
    for i, (path, trial) in enumerate(zip(recordings, trials, strict=True)):
        own = folder if len(recordings) == 1 else folder / path.stem
        own.mkdir(exist_ok=True)
        sweep(own)

        def tell(what: str, share: float, i: int = i) -> None:
            first = ends["fit"]
            progress(what, first + (1.0 - first) * (i + (share - first) / (1.0 - first)) / len(recordings))

        source = {"file": path.name, "sha256": file_hash(path)}
        results.append(_analyzed(trial, model, fit, own, plan, fitted, {"read": read}, source, tell, solved))
    progress("done", 1.0)
    return tuple(results)


def shares(repeats: int) -> dict[str, float]:
    """Of the work, when each stage has ended."""
    rest = 1.0 / (1.0 + REPEAT * repeats)
    found = {stage: rest * share for stage, share in SHARES.items() if stage != "report"}
    return {**found, "bands": 1.0 - rest * (1.0 - SHARES["energy"]), "report": 1.0}


def read_trial(path: Path, plan: Plan) -> Recording:
    """A recording read and cleaned: gaps filled, swaps and spikes undone, plates zeroed and given to feet."""
    given = {key: value for key, value in plan.reading.items() if value is not None}
    recording = joints_as_markers(read_recording(path, **given))
    if not recording.markers:
        raise SettingsError(f"{path.name} holds no markers, which a body is fitted to: {_instead(recording, path)}")
    if plan.forces is not None:
        recording = add_plates(recording, read_recording(plan.forces))
    # no low-pass: poses follow what was seen, and coordinates are filtered before they are differentiated
    cleaned = clean(recording, cutoff=None, start=plan.start, stop=plan.stop)
    return keep_in_view(cleaned, start=not np.isfinite(plan.start), stop=not np.isfinite(plan.stop))


def _instead(recording: Recording, path: Path) -> str:
    """What a recording without markers holds, and what to do with it."""
    if "plate_force" in recording.data:
        return f"it holds force plates. Name the file with the markers, and this one with --forces {path.name}"
    if "coordinates" in recording.data:
        return "it holds joint angles. Name the file with the markers they were made from, such as a .trc or .c3d"
    return "see what it holds with `borelli info`, and name a .c3d or .trc file with markers"


def generic_model(plan: Plan, recording: Recording) -> Model:
    """The model before it is fitted: that of the plan, or a human of the subject's size."""
    about = recording.subject
    mass = plan.mass if plan.mass is not None else _number(about.get("mass"))
    if plan.model is not None:
        model = read_model(plan.model)
        return scale_mass(model, plan.mass) if plan.mass is not None else model
    height = plan.height if plan.height is not None else _number(about.get("height"))
    said = str(about.get("sex", "male"))
    sex = plan.sex or (said if said in ("male", "female") else "male")
    return human(mass or MASS, height or HEIGHT, sex)


def size_notes(plan: Plan, recording: Recording) -> tuple[Note, ...]:
    """What had to be guessed of the subject's size."""
    if plan.model is not None:
        return ()
    notes = []
    for name, unit, taken in (("mass", "kg", MASS), ("height", "m", HEIGHT)):
        if getattr(plan, name) is None and not _number(recording.subject.get(name)):
            said = f"the subject's {name} is not known: {taken:g} {unit} is taken, and results scale with it"
            # of a body that is fitted, the height is soon forgotten
            notes.append(Note(said, "guess" if name == "height" and plan.fit else "fault", f"--{name}"))
    return tuple(notes)


def weigh(model: Model, trials: Sequence[Recording]) -> tuple[float, float] | None:
    """Mass [kg] that the plates of the trials find, and for how long [s] they weighed it; None where they do not."""
    best: tuple[float, float] | None = None
    for trial in trials:
        if "foot_force" in trial.data:
            attrs = inverse_dynamics(follow_markers(model, trial), forces="plates").data.attrs
            if attrs["plate_mass_kg"] > 0.0 and (best is None or attrs["weighed_s"] > best[1]):
                best = (float(attrs["plate_mass_kg"]), float(attrs["weighed_s"]))
    return best


def _fitted(
    trials: Sequence[Recording], static: Recording | None, folder: Path, plan: Plan, inputs: Sequence[str]
) -> tuple[Model, Fit | None, dict[str, Any]]:
    """The model, how it was fitted, and the stage's key and seconds."""
    start = perf_counter()
    settings = {name: getattr(plan, name) for name in ("mass", "height", "sex", "fit", "start", "stop", "plates")}
    key = _key("fit", inputs, settings | {"reading": plan.reading})
    path = folder / "fit.nc"
    if plan.fit and made(path).get("key") == key:
        known = read_fit(path)
        if known is not None:
            return known.model, known, {**made(path), "loaded": True}
    model = generic_model(plan, trials[0])
    notes = size_notes(plan, trials[0])
    if not plan.fit:
        return model, None, {"key": key, "seconds": perf_counter() - start, "notes": notes}
    fit = fit_model(model, list(trials), static=static)
    guessed = next((note for note in notes if note.remedy == "--mass"), None)
    on_plates = [*trials, static] if static is not None else trials
    weighed = weigh(fit.model, on_plates) if guessed is not None and plan.plates else None
    if weighed is not None:
        said = (
            f"the subject's mass is not given: plates weigh {weighed[0]:.1f} kg over {weighed[1]:.2f} s, which is taken"
        )
        notes = (*(note for note in notes if note is not guessed), Note(said, "guess", "--mass"))
        fit = replace(fit, model=scale_mass(fit.model, weighed[0]))
    fit = replace(fit, notes=(*notes, *fit.notes))
    about = {"key": key, "seconds": perf_counter() - start}
    write_fit(fit, path, about)
    write_whole(model_to_text(fit.model), folder / "model.toml")
    return fit.model, fit, about


def _analyzed(
    trial: Recording,
    model: Model,
    fit: Fit | None,
    folder: Path,
    plan: Plan,
    fitted: Mapping[str, Any],
    seconds: dict[str, float],
    source: Mapping[str, str],
    tell: Progress,
    solved: Callable[[], Fit | None],
) -> Analysis:
    """The stages from pose to report of one recording."""
    loaded = ["fit"] if fitted.get("loaded") else []
    ends = shares(plan.monte_carlo)
    seconds["fit"] = float(fitted["seconds"])
    settings = {"method": plan.torque_method, "plates": plan.plates, "cutoff": plan.cutoff}
    keys = {"pose": _key("pose", [str(fitted["key"]), source["sha256"]], {"method": plan.method})}
    keys["torques"] = _key("torques", [keys["pose"]], settings)
    keys["energy"] = _key("energy", [keys["torques"]], {})

    def stage(name: str, file: str, make: Callable[[], Any]) -> Any:
        """From its file, which holds the stages before it, or made: then those before it are asked for."""
        path = folder / file
        known = made(path)
        if known.get("key") == keys[name]:
            try:
                found = read_stage(path)
            except BorelliError:
                pass  # damaged: made anew
            else:
                seconds.update(known["seconds"])
                loaded.extend(known["seconds"])
                return found
        found = make()
        own = {one: seconds[one] for one in keys if one in seconds}
        write_stage(found, path, {"key": keys[name], "seconds": own})
        return found

    def timed(name: str, what: str, share: float, make: Callable[[], Any]) -> Any:
        tell(what, share)
        start = perf_counter()
        found = make()
        seconds[name] = perf_counter() - start
        return found

    def make_motion() -> Motion:
        notes = tuple(fitted.get("notes", ())) if fit is None else fit.notes
        follow = partial(follow_markers, model, trial, method=plan.method)
        motion: Motion = timed("pose", "following the markers", ends["fit"], follow)
        return replace(motion, notes=(*notes, *motion.notes, *unseen_notes(motion)))

    def make_torques() -> Torques:
        motion = stage("pose", "motion.nc", make_motion)
        found: Torques = timed("torques", "finding torques", ends["pose"], partial(find_torques, motion, plan))
        return found

    def make_energy() -> Energy:
        torques = stage("torques", "torques.nc", make_torques)
        found: Energy = timed("energy", "finding energy", ends["torques"], partial(find_energy, torques))
        return found

    energy: Energy = stage("energy", "energy.nc", make_energy)
    bands = None
    if plan.monte_carlo:

        def count(done: int) -> None:
            share = ends["energy"] + (ends["bands"] - ends["energy"]) * done / plan.monte_carlo
            tell(f"repeating: {done} of {plan.monte_carlo}", share)

        told = {"repeats": plan.monte_carlo, "noise": plan.noise}
        own = {"key": _key("bands", [keys["energy"], code_hash(("reports",))], told), "energy": keys["energy"]}
        bands, seconds["bands"], known = bands_in(
            folder, own, energy, solved, repeats=plan.monte_carlo, noise=plan.noise, progress=count
        )
        loaded += ["bands"] if known else []
    elif made(folder / FILE).get("energy", keys["energy"]) != keys["energy"]:
        remove_bands(folder)
    tell("writing the report", ends["bands"])
    start = perf_counter()
    contacts = contacts_beside(energy.torques)
    about = {
        **source, "settings": plain(asdict(plan)), "seconds": {**seconds}, "version": __version__, "code": code_hash(),
    }  # fmt: skip
    write_tables(energy, folder)
    if bands is not None:
        write_band_tables(bands, folder)
    write_report(energy, folder / "report.html", fit=fit, contacts=contacts, bands=bands, about=about)
    seconds["report"] = perf_counter() - start
    warned = [warning.what for warning in warnings_of(energy)]
    warned += [note.what for note in bands.notes if note.kind == "fault"] if bands is not None else []
    summary = summarize(energy, fit=fit, contacts=contacts, bands=bands, seconds=seconds, warnings=warned)
    summary |= {**source, "loaded": loaded}
    write_whole(json.dumps(summary, indent=1, allow_nan=False) + "\n", folder / "summary.json")
    return Analysis(energy, fit, contacts, summary, folder, tuple(loaded), bands)


def unseen_notes(motion: Motion) -> tuple[Note, ...]:
    """Says so where much of the body has no markers, on itself or beyond, and so keeps its rest pose."""
    model = motion.model
    seen = {marker.body for marker in model.markers if marker.name in motion.data["marker"].values}
    above = {joint.child: joint.parent for joint in model.joints if not joint.closes_loop}
    for name in tuple(seen):
        while (name := above.get(name, "")) and name not in seen:
            seen.add(name)
    unseen = [body for body in model.bodies if body.name not in seen]
    share = sum(body.mass for body in unseen) / model.mass
    if share < UNSEEN:
        return ()
    said = (
        f"no markers are on {listed([body.name for body in unseen], 6)}, {100.0 * share:.0f} % of the mass: they keep "
        "their rest pose, and forces of the ground from the motion, residuals and moments of the hips err by it"
    )
    return (Note(said, "fault", "put markers on the trunk"),)


def find_torques(motion: Motion, plan: Plan) -> Torques:
    """Torques with the plates' forces, where there are any and they are wanted, else, or beside them, computed ones."""
    has_plates = motion.recording is not None and "foot_force" in motion.recording.data
    measured = plan.plates and has_plates
    if plan.cutoff is None and measured and motion.recording is not None:
        cutoff, note = step_cutoff(motion.recording)
        if note is not None:
            found = find_torques(motion, replace(plan, cutoff=cutoff))
            return replace(found, notes=(*found.notes, note))
    forces = "plates and contacts" if measured else "contacts"
    try:
        return inverse_dynamics(motion, method=plan.torque_method, forces=forces, cutoff=plan.cutoff)
    except BorelliError as error:
        if measured:  # such as a model without soles, which has contacts nowhere
            found = inverse_dynamics(motion, method=plan.torque_method, forces="plates", cutoff=plan.cutoff)
            said = f"steps beside the plates are not filled in: {error}"
            return replace(found, notes=(*found.notes, Note(said, "fault", "look at frames that are covered")))
        found = inverse_dynamics(motion, method=plan.torque_method, forces=None, cutoff=plan.cutoff)
        said = f"no forces of the ground are known, so all of its part is residual: {error}"
        return replace(found, notes=(*found.notes, Note(said, "fault", "record plates")))


def contacts_beside(torques: Torques) -> Dataset | None:
    """Forces of the feet computed from the motion, where plates measured them; None where that cannot be done."""
    if not torques.contact_source.startswith("plates"):
        return None
    try:
        return ground_forces(torques.motion, derivatives(torques.motion, cutoff=torques.settings.get("cutoff_hz")))
    except BorelliError:
        return None


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content, or of all files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def code_hash(rooms: tuple[str, ...] = CODE) -> str:
    """A hash of the code that decides what results are."""
    digest = hashlib.sha256()
    home = Path(__file__).parent
    for room in rooms:
        for file in sorted((home / room).glob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _key(stage: str, inputs: Sequence[str], settings: Mapping[str, Any]) -> str:
    told = [stage, __version__, code_hash(), list(inputs), plain(settings)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None
