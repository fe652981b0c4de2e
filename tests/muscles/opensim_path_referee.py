"""OpenSim's muscle paths. Run in a process of its own, by a Python that has the package `opensim`.

    python opensim_path_referee.py ask.npz answer.npz

Lengths of paths with several wraps are summed up here: OpenSim 4.6 caches the positions of tangent points in the
first of its passes, so that `getLength` mixes old tangent points with new lengths over surfaces.
"""

import sys

import numpy as np
import opensim


def length(path, state) -> float:
    if path.getWrapSet().getSize() < 2:
        return path.getLength(state)
    points = path.getCurrentPath(state)
    total, before, surface_before = 0.0, None, None
    for i in range(points.getSize()):
        point = points.get(i)
        found = point.getParentFrame().findStationLocationInGround(state, point.getLocation(state))
        here = np.array([found.get(k) for k in range(3)])
        surface = point.getWrapObject().getName() if point.getWrapObject() else None
        if before is not None:
            if surface and surface == surface_before:
                total += opensim.PathWrapPoint.safeDownCast(point).getWrapLength(state)
            else:
                total += float(np.linalg.norm(here - before))
        before, surface_before = here, surface
    return total


def wrapped(path, state) -> list[bool]:
    points = path.getCurrentPath(state)
    touched = {
        points.get(i).getWrapObject().getName() for i in range(points.getSize()) if points.get(i).getWrapObject()
    }
    wraps = path.getWrapSet()
    return [wraps.get(i).getWrapObjectName() in touched for i in range(wraps.getSize())]


def main(ask: str, answer: str) -> None:
    opensim.Logger.setLevelString("Off")
    given, result = np.load(ask), {}
    for k in range(int(given["models"])):
        model = opensim.Model(str(given[f"path_{k}"]))
        state = model.initSystem()
        coordinates = [model.getCoordinateSet().get(str(name)) for name in given[f"names_{k}"]]
        for coordinate in coordinates:
            coordinate.setLocked(state, False)
        muscles = [model.getMuscles().get(str(name)) for name in given[f"muscles_{k}"]]
        paths = [opensim.GeometryPath.safeDownCast(muscle.getPath()) for muscle in muscles]
        lengths, states, arms = [], [], []
        for f, row in enumerate(given[f"q_{k}"]):
            for coordinate, value in zip(coordinates, row, strict=True):
                coordinate.setValue(state, float(value), False)
            model.realizePosition(state)
            lengths.append([length(path, state) for path in paths])
            states.append([one for path in paths for one in wrapped(path, state)])
            for frame, m, c in given[f"arms_{k}"]:
                if frame == f:
                    arms.append(paths[m].computeMomentArm(state, coordinates[c]))
        result |= {f"length_{k}": lengths, f"wrapped_{k}": np.array(states, bool), f"arm_{k}": arms}
    np.savez(answer, **result)


if __name__ == "__main__":
    main(*sys.argv[1:])
