"""The common job as a motion and a recording: a squat with every joint swinging, whose torques are known exactly."""

from dataclasses import replace
from functools import cache

import numpy as np

from borelli.analysis.motion import make_motion
from borelli.bench.ground_truth import motion, torque_truth
from borelli.bench.workload import HARD_JOINT, human
from borelli.model.model import Coordinate, Joint
from borelli.recording.recording import Recording, make_dataset

ROOT_NAMES = ("root_x", "root_y", "root_z", "root_roll", "root_pitch", "root_yaw")


@cache
def job_model():
    """The job's human, its root on a free joint."""
    coordinates = tuple(Coordinate(name, rotational=i >= 3) for i, name in enumerate(ROOT_NAMES))
    model = human(HARD_JOINT)
    return replace(model, joints=(Joint("root", "free", "ground", "pelvis", coordinates=coordinates), *model.joints))


@cache
def job_truth(seconds=1.0, fps=120.0):
    """Coordinates (frames, 54) and torques (frames, 48), balls' along the child's axes."""
    made = motion(fps, seconds)
    q = np.concatenate([made.poses[:, 0, :3], np.zeros((made.frames, 3)), made.coordinates], axis=1)
    return q, torque_truth(fps, seconds)


@cache
def job(seconds=1.0, fps=120.0):
    """The motion."""
    q, _ = job_truth(seconds, fps)
    return make_motion(job_model(), q, np.arange(len(q)) / fps, fps)


@cache
def job_recording(seconds=1.0, fps=120.0):
    """Its markers."""
    names = [marker.name for marker in job_model().markers]
    data = make_dataset({"marker_position": motion(fps, seconds).markers}, {"marker": names}, rate=fps)
    return Recording(data, name="common job")
