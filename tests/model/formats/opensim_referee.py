"""What OpenSim's own API says of models. Run in a process of its own, by a Python that has the package `opensim`.

    python opensim_referee.py ask.npz answer.npz

`ask` holds, per model i: `path_i`, `names_i` (coordinates), and `q_i`, `u_i`, `a_i` (frames, coordinates); `points_i`
says whether path points are wanted, which need the muscles; if not, forces are removed and inverse dynamics is solved.
Stops, locks and constraints do not act.
"""

import multiprocessing
import sys

import numpy as np
import opensim

KEYS = ("path", "names", "q", "u", "a", "points")


def main(ask: str, answer: str) -> None:
    with np.load(ask) as asked:
        count = sum(key.startswith("path_") for key in asked)
        jobs = [{key: asked[f"{key}_{i}"] for key in KEYS} for i in range(count)]
    # each model in a fresh process: OpenSim keeps the <defaults> of one file for all it reads after it
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        answers = pool.map(judge, jobs, chunksize=1)
    np.savez(answer, **{f"{key}_{i}": value for i, said in enumerate(answers) for key, value in said.items()})


def judge(job) -> dict[str, np.ndarray]:
    """Everything OpenSim says of one model."""
    opensim.Logger.setLevelString("Off")
    path, names, q, u, a, points = (job[key] for key in KEYS)
    model = opensim.Model(str(path))
    said = muscle_parameters(model)
    model.updControllerSet().clearAndDestroy()
    if not points:
        model.updForceSet().clearAndDestroy()
    coordinates = model.updCoordinateSet()
    for k in range(coordinates.getSize()):
        for wish in ("locked", "clamped", "prescribed"):
            getattr(coordinates.get(k), f"set_{wish}")(False)
    state = model.initSystem()
    coordinates = model.getCoordinateSet()
    for k in range(coordinates.getSize()):
        coordinates.get(k).setLocked(state, False)  # the property alone leaves some of them locked
    every = [coordinates.get(k).getName() for k in range(coordinates.getSize())]
    if sorted(every) != sorted(names):
        raise ValueError(f"{path}: OpenSim knows the coordinates {sorted(every)}, asked for {sorted(names)}")
    ordered = [coordinates.get(str(name)) for name in names]
    places = speed_places(state, ordered)
    said["kind"] = np.array([c.getMotionType() for c in ordered])
    said |= bodies(model)
    frames = [one_frame(model, state, ordered, places, *row, bool(points)) for row in zip(q, u, a, strict=True)]
    return said | {key: np.array([frame[key] for frame in frames]) for key in frames[0]}


def speed_places(state, ordered) -> list[int]:
    """Index of each coordinate among OpenSim's speeds, found by moving one at a time."""
    found = []
    for c in ordered:
        state.updU().setToZero()
        c.setSpeedValue(state, 1.0)
        found.append(int(np.flatnonzero(state.getU().to_numpy())[0]))
    return found


def one_frame(model, state, ordered, places, q, u, a, points) -> dict[str, np.ndarray]:
    for c, value, speed in zip(ordered, q, u, strict=True):
        c.setValue(state, float(value), False)
        c.setSpeedValue(state, float(speed))
    model.realizeVelocity(state)
    body_set, marker_set = model.getBodySet(), model.getMarkerSet()
    poses = [body_set.get(k).getTransformInGround(state) for k in range(body_set.getSize())]
    acceleration = opensim.Vector(len(a), 0.0)
    for place, value in zip(places, a, strict=True):
        acceleration.set(place, float(value))
    said = {
        "position": np.array([pose.p().to_numpy() for pose in poses]),
        "rotation": np.array([[[pose.R().get(i, j) for j in range(3)] for i in range(3)] for pose in poses]),
        "marker": np.array(
            [marker_set.get(k).getLocationInGround(state).to_numpy() for k in range(marker_set.getSize())]
        ).reshape(-1, 3),
    }
    if points:
        said["point"] = path_points(model, state)
    else:
        torque = opensim.InverseDynamicsSolver(model).solve(state, acceleration).to_numpy()
        said["torque"] = torque[places]
    return said


def path_points(model, state) -> np.ndarray:
    found = []
    muscles = model.getMuscles()
    for k in range(muscles.getSize()):
        path = muscles.get(k).getGeometryPath().getPathPointSet()
        for i in range(path.getSize()):
            point = path.get(i)
            on = opensim.ConditionalPathPoint.safeDownCast(point)
            active = 1.0 if on is None else float(on.isActive(state))
            found.append([*point.getLocationInGround(state).to_numpy(), active])
    return np.array(found).reshape(-1, 4)


def bodies(model) -> dict[str, np.ndarray]:
    found = [model.getBodySet().get(k) for k in range(model.getBodySet().getSize())]
    inertia = [body.getInertia() for body in found]
    return {
        "body": np.array([body.getName() for body in found]),
        "mass": np.array([body.getMass() for body in found]),
        "center": np.array([body.getMassCenter().to_numpy() for body in found]),
        "inertia": np.array([[*i.getMoments().to_numpy(), *i.getProducts().to_numpy()] for i in inertia]),
        "marker_name": np.array([model.getMarkerSet().get(k).getName() for k in range(model.getMarkerSet().getSize())]),
        "gravity": model.getGravity().to_numpy(),
    }


def muscle_parameters(model) -> dict[str, np.ndarray]:
    found, names = [], []
    muscles = model.getMuscles()
    for k in range(muscles.getSize()):
        muscle = muscles.get(k)
        names.append(muscle.getName())
        path = muscle.getGeometryPath()
        found.append(
            [
                muscle.getMaxIsometricForce(),
                muscle.getOptimalFiberLength(),
                muscle.getTendonSlackLength(),
                muscle.getPennationAngleAtOptimalFiberLength(),
                muscle.getMaxContractionVelocity(),
                path.getPathPointSet().getSize(),
                path.getWrapSet().getSize(),
                *(
                    float(muscle.getPropertyByName(name).toString()) if muscle.hasProperty(name) else np.nan
                    for name in ("activation_time_constant", "deactivation_time_constant", "default_activation")
                ),
            ]
        )
    return {"muscle_name": np.array(names), "muscle": np.array(found).reshape(-1, 10)}


if __name__ == "__main__":
    main(*sys.argv[1:])
