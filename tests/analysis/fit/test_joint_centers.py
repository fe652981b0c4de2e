"""Joint centers: regressions and ties by closed forms, known centers under skin motion, references, warnings."""

import re
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.analysis.fit.anatomical_ties import add_ties, find_ties, virtual_hip
from borelli.analysis.fit.center_checks import center_notes
from borelli.analysis.fit.center_uncertainty import center_sensitivity
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.fit.hip_regressions import BACK_DEPTH, FRONT_DEPTH, regress_hip
from borelli.analysis.fit.least_squares import _solve_poses
from borelli.analysis.fit.parameters import make_parameters
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.analysis.tree_kernels.newton_ik import find_body_poses
from borelli.errors import SettingsError
from borelli.model.marker_sets import list_marker_sets
from borelli.people.human import human
from borelli.recording.io import read_recording

from ...shared_data import SHARED_DATA as DATA
from .skin_walker import BODIES, GAITS, SETS, gait, record, star_arc, static, subject

DISTAL = {"hip": "thigh", "knee": "shank", "ankle": "foot"}
"""Body whose origin is the joint."""
PROXIMAL = {"hip": "pelvis", "knee": "thigh", "ankle": "shank"}


def centers(motion):
    """Return joint centers (frames, 3) in the lab, and rotations of their parent bodies, by joint and side."""
    result = {}
    for joint, body in DISTAL.items():
        for side in "rl":
            parent = "pelvis" if joint == "hip" else f"{PROXIMAL[joint]}_{side}"
            quaternion = motion.data["body_orientation"].sel(body=parent).values
            at = motion.data["body_position"].sel(body=f"{body}_{side}").values
            result[f"{joint}_{side}"] = at, Rotation.from_quat(quaternion[:, [1, 2, 3, 0]])
    return result


def mean_errors(motion, truth):
    """Return the mean deviations (3,) [m] from known centers (frames, 3), in the axes of the parent bodies."""
    found = centers(motion)
    errors = {}
    for name, at in truth.items():
        known = np.isfinite(at).all(axis=1)
        errors[name] = found[name][1][known].inv().apply((found[name][0] - at)[known]).mean(axis=0)
    return errors


# regressions and ties


def pelvis(width=0.24, depth=0.2):
    """Return markers on the right and left anterior spines and the midpoint of the posterior ones."""
    return np.array([[0.0, -width / 2.0, 0.0], [0.0, width / 2.0, 0.0], [-depth, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "forward", "outward", "down"),
    [
        # width 240 mm, depth 200 - 17 - 27 mm; constants of the papers
        ("harrington", -(0.24 * 0.156 + 0.0099), 0.33 * 0.24 + 0.0073, -(0.30 * 0.24 + 0.0109)),
        ("bell", -0.22 * 0.24, 0.36 * 0.24, -0.30 * 0.24),
    ],
)
def test_regressions_are_those_of_the_papers_less_the_tissue_over_the_spines(name, forward, outward, down):
    assert pytest.approx(0.044) == FRONT_DEPTH + BACK_DEPTH
    for side in (-1.0, 1.0):
        hip = regress_hip(*pelvis(), side, name)
        assert hip == pytest.approx([forward - FRONT_DEPTH, side * outward, down], abs=1e-12)


def test_regressions_move_with_the_pelvis():
    rotation = Rotation.from_rotvec([0.3, -0.5, 1.1])
    for side in (-1.0, 1.0):
        place = np.array([1.0, 2.0, 3.0])
        moved = regress_hip(*(rotation.apply(pelvis()) + place), side)
        assert moved == pytest.approx(rotation.apply(regress_hip(*pelvis(), side)) + place, abs=1e-12)


@pytest.mark.parametrize("person", [(75.0, 1.75, "male"), (60.0, 1.62, "female")])
@pytest.mark.parametrize("marker_set", SETS)
def test_ties_hold_on_the_generic_human(marker_set, person):
    """The marker sets put landmarks where the regressions and widths of the literature have them, at mean stature."""
    parameters = make_parameters(human(*person, markers=marker_set), True, {})
    assert {tie.joint[:-2] for tie in parameters.ties} >= {"hip", "knee", "ankle"}
    for tie in parameters.ties:
        deviation = tie.evaluate(parameters.start)[0]
        assert np.abs(deviation).max() < 0.003, tie.joint


def test_derivatives_of_ties_agree_with_finite_differences():
    parameters = make_parameters(human(75.0, 1.75, markers="qualisys_cast"), True, {})
    rng = np.random.default_rng(0)
    p = parameters.start + rng.normal(0.0, 0.01, len(parameters.start))
    n = len(p)

    def energy(at):
        return add_ties(parameters.ties, at, 0.005, np.zeros(n), np.zeros((n, n)))

    gradient, matrix = np.zeros(n), np.zeros((n, n))
    add_ties(parameters.ties, p, 0.005, gradient, matrix)
    step = 1e-6
    for _ in range(5):
        direction = rng.normal(size=n)
        slope = (energy(p + step * direction) - energy(p - step * direction)) / (2.0 * step)
        assert slope == pytest.approx(gradient @ direction, rel=1e-6)
    assert np.linalg.eigvalsh(matrix).min() > -1e-9
    for tie in parameters.ties:
        _, jacobian = tie.evaluate(p)
        points = p.reshape(-1, 3)[tie.points]
        change = rng.normal(size=points.shape)
        slope = (tie.deviation(points + step * change) - tie.deviation(points - step * change)) / (2.0 * step)
        assert slope == pytest.approx(jacobian @ change.ravel(), abs=1e-8)


def test_measured_widths_move_lateral_ties():
    model = human(75.0, 1.75, markers="plugin_gait")
    joints = make_parameters(model, True, {}).joints
    p = make_parameters(model, True, {}).start
    wide, narrow = (
        {t.joint: t.evaluate(p)[0] for t in find_ties(model, joints, widths={"knee": w})} for w in (0.12, 0.10)
    )
    assert wide["knee_r"] - narrow["knee_r"] == pytest.approx([0.0, -0.01, 0.0], abs=1e-12)  # half of 20 mm, inward
    assert wide["knee_l"] - narrow["knee_l"] == pytest.approx([0.0, 0.01, 0.0], abs=1e-12)


def test_marker_sets_have_the_landmarks_that_determine_joints():
    """All sets of markers on skin: a set without spines or knees would be fitted by height and motion alone."""
    for name in list_marker_sets():
        parameters = make_parameters(human(markers=name), True, {})
        joints = {tie.joint for tie in parameters.ties}
        if not name.startswith("joint_centers"):
            assert {"hip_r", "hip_l", "ankle_r", "ankle_l", "knee_r", "knee_l"} <= joints, name


# known centers under skin motion


def skin_errors(number, marker_set, gait_name, functional=False, regular=False):
    """Return errors [m] of the centers of a subject whose skin moves, and the stated standard deviations."""
    model, generic = subject(number, marker_set, regular)
    q, skin = gait(model, gait_name)
    walk = record(model, (q, skin))
    more = {"functional": record(model, star_arc(model))} if functional else {}
    fit = fit_model(generic, walk, static=static(model), **more)
    every = slice(None, None, 6)
    motion = inverse_kinematics(fit.model, walk.with_data(walk.data.isel(time=every)))
    truth = make_motion(model, q[every], np.arange(len(q[every])) / 10.0, 10.0)
    errors = mean_errors(motion, {name: at for name, (at, _) in centers(truth).items()})
    sd = {name: fit.data["joint_center_sd"].sel(joint=name).values for name in errors}
    return errors, sd


def judge_skin(cases, max_median, max_error, **options):
    """Check errors and their ratios to the stated standard deviations over cases, by joint."""
    norms, ratios = {name: [] for name in DISTAL}, {name: [] for name in DISTAL}
    for case in cases:
        errors, sd = skin_errors(*case, **options)
        for name, error in errors.items():
            norms[name[:-2]].append(1e3 * np.linalg.norm(error))
            ratios[name[:-2]].append(error / sd[name])
    for name in DISTAL:
        z = float(np.sqrt(np.mean(np.square(ratios[name]))))
        print(f"{name}: median {np.median(norms[name]):.1f} mm, largest {max(norms[name]):.1f} mm, z {z:.2f}")
        assert np.median(norms[name]) < max_median, name
        assert max(norms[name]) < max_error, name
        yield z


def test_centers_are_found_although_skin_slides():
    """Bodies differ from the regression by its published error, 8 mm along each axis: the median of that is 12 mm."""
    for z in judge_skin([(number, SETS[number % 3], "normal") for number in range(3)], 15.0, 25.0):
        assert 0.5 < z < 1.5  # of three bodies


def test_skin_alone_hardly_moves_centers():
    """Other proportions, landmarks that hold: what is left is what the fit takes from the skin."""
    cases = [(number, SETS[number % 3], gait_name) for number, gait_name in ((1, "slow"), (3, "stiff"), (4, "normal"))]
    assert list(judge_skin(cases, 8.0, 15.0, regular=True))


@pytest.mark.slow
@pytest.mark.parametrize(("regular", "max_median", "max_error"), [(True, 8.0, 15.0), (False, 14.0, 20.0)])
def test_centers_of_all_bodies_gaits_and_sets(regular, max_median, max_error):
    """Stated errors include those of regressions and landmarks, so they are judged on bodies that have such errors."""
    cases = [(b, s, g) for b in range(len(BODIES)) for s in SETS for g in GAITS]
    for z in judge_skin(cases, max_median, max_error, regular=regular):
        assert regular or 0.8 < z < 1.2


@pytest.mark.parametrize(("number", "marker_set"), [(0, "qualisys_cast"), (2, "opencap_mocap")])
def test_a_functional_trial_determines_the_hips(number, marker_set):
    plain, _ = skin_errors(number, marker_set, "normal")
    better, _ = skin_errors(number, marker_set, "normal", functional=True)
    for name in ("hip_r", "hip_l"):
        assert np.linalg.norm(better[name]) < 0.005
        assert np.linalg.norm(better[name]) < 0.6 * np.linalg.norm(plain[name])


@cache
def plain_fit():
    model, generic = subject(1, "plugin_gait")
    return fit_model(generic, record(model, gait(model, "normal")))


def test_sensitivity_of_centers_agrees_with_posing_again():
    fit = plain_fit()
    parameters, solution = fit.parameters, fit.solution
    rng = np.random.default_rng(2)
    direction = rng.normal(size=len(solution.p))
    step = 1e-4
    index = {body.name: i for i, body in enumerate(fit.model.bodies)}

    def posed(p):
        group = _solve_poses(parameters, p, solution.groups)[0][0]
        position, rotation, _ = find_body_poses(group.problem.tree, group.problem.points, group.q.copy())
        return position, rotation

    (before, rotation), (after, _) = posed(solution.p - step * direction), posed(solution.p + step * direction)
    expected = center_sensitivity(parameters, solution) @ direction
    for i, joint in enumerate(parameters.joints):
        if joint.name.startswith(("hip", "knee", "ankle")):
            change = (after - before)[:, index[joint.child]] / (2.0 * step)
            local = np.einsum("fji,fj->fi", rotation[:, index[joint.parent]], change).mean(axis=0)
            # Gauss-Newton leaves out the curvature of the poses; frames are a sample
            assert local == pytest.approx(expected[i], abs=0.15 * np.linalg.norm(expected[i]) + 0.05), joint.name


# warnings


def codes(fit):
    return {note.code for note in fit.notes if note.kind == "problem"}


def test_a_good_fit_has_no_warning_of_its_centers():
    assert not codes(plain_fit()) & {
        "center_off_landmark", "hip_width", "virtual_center", "unusual_length", "no_landmark", "clusters_without_static"
    }  # fmt: skip


def moved(recording, changes):
    """Return a recording with markers displaced [m] in the lab."""
    data = recording.data.copy(deep=True)
    for name, by in changes.items():
        data["marker_position"].loc[{"marker": name}] += np.array(by)
    return recording.with_data(data)


def test_misplaced_spines_are_reported_with_their_effect():
    """Spines 60 mm too far out: the regression puts the hips 40 mm too far apart."""
    model, generic = subject(1, "plugin_gait")
    wide = moved(record(model, gait(model, "normal")), {"RASI": (0.0, -0.06, 0.0), "LASI": (0.0, 0.06, 0.0)})
    fit = fit_model(generic, wide)
    assert "unusual_length" in codes(fit)
    text = next(n.text for n in fit.notes if n.code == "unusual_length")
    assert "hip_r to hip_l" in text
    assert "N m/kg" in text


def test_hips_of_implausible_distance_are_reported():
    """The checks compare what they are given: hips moved outward by hand, as an unconstrained fit would."""
    fit = plain_fit()
    parameters, p = fit.parameters, fit.solution.p.copy()
    names = [joint.name for joint in parameters.joints]
    assert not {note.code for note in center_notes(parameters, p, fit.data, static=False)}
    for name, side in (("hip_r", -1.0), ("hip_l", 1.0)):
        p[3 * names.index(name) + 1] += side * 0.04
    notes = {note.code: note.text for note in center_notes(parameters, p, fit.data, static=False)}
    assert {"hip_width", "center_off_landmark"} <= set(notes)
    effect = float(re.search(r"up to ([\d.]+) N m/kg", notes["hip_width"])[1])
    assert effect == pytest.approx(9.81 * 0.04, abs=0.08)  # the fit itself is within 8 mm of the regression


def test_clusters_without_a_static_trial_are_reported():
    model, generic = subject(0, "opencap_mocap")
    walk = record(model, gait(model, "normal"))
    bare = walk.select_markers([m for m in walk.markers if not any(w in m.lower() for w in ("knee", "ankle"))])
    assert "clusters_without_static" in codes(fit_model(generic, bare))
    assert "clusters_without_static" not in codes(fit_model(generic, bare, static=static(model)))


def test_virtual_centers_far_from_the_regression_are_reported():
    model, generic = subject(1, "plugin_gait")
    walk = record(model, gait(model, "normal"))
    truth = centers(make_motion(model, gait(model, "normal")[0], np.arange(walk.frames) / 60.0, 60.0))
    for shift, expected in ((0.0, False), (0.05, True)):
        at = np.stack([truth[f"hip_{side}"][0] + [shift, 0.0, 0.0] for side in "rl"], axis=1)
        positions = np.concatenate([walk.data["marker_position"].values, at], axis=1)
        data = walk.data.drop_dims("marker").assign(
            marker_position=(("time", "marker", "axis"), positions, walk.data["marker_position"].attrs)
        )
        both = walk.with_data(data.assign_coords(marker=[*walk.markers, "RHJC", "LHJC"]))
        fit = fit_model(generic, both)
        assert ("virtual_center" in codes(fit)) == expected
        spines = tuple([m.name for m in fit.model.markers].index(name) for name in ("RASI", "LASI", "RPSI", "LPSI"))
        assert virtual_hip(fit.model, spines, "r", [both]) is not None
        assert not any(marker.name.endswith("HJC") for marker in fit.model.markers)


def test_wrong_options_are_refused():
    model, generic = subject(1, "plugin_gait")
    walk = record(model, gait(model, "normal"))
    with pytest.raises(SettingsError, match=r"hip_regression.*harrington"):
        fit_model(generic, walk, hip_regression="davis")
    with pytest.raises(SettingsError, match="knee_width"):
        fit_model(generic, walk, knee_width=110.0)


# measured references


def markers(recording, name):
    return recording.data["marker_position"].sel(marker=name).values


def midpoint(recording, *names):
    return np.mean([markers(recording, name) for name in names], axis=0)


def regression(recording, right, left, *back):
    points = zip(markers(recording, right), markers(recording, left), midpoint(recording, *back), strict=True)
    frames = list(points)
    return {f"hip_{s}": np.array([regress_hip(*one, y) for one in frames]) for s, y in (("r", -1.0), ("l", 1.0))}


REFERENCES = {
    # trial, static trial, mass, height; distance of the hips [mm]; errors of hip, knee and ankle [mm]; markers left out
    "subject01": ("opensim/subject01_walk/subject01_walk1.trc", "opensim/subject01_walk/subject01_static.trc",
                  72.6, 1.80, (185, 200), (12, 10, 8), ()),
    "raj2016": ("opensim/rajagopal2016/walk/motion_capture_walk.trc", "opensim/rajagopal2016/walk/static_walk_1.trc",
                85.0, 1.80, (180, 200), (25, 9, 8), ()),
    "raj2016, landmarks withheld": (
        "opensim/rajagopal2016/walk/motion_capture_walk.trc", "opensim/rajagopal2016/walk/static_walk_1.trc",
        85.0, 1.80, (175, 200), (32, 18, 14), ("R.MKnee", "L.MKnee", "R.MAnkle", "L.MAnkle", "R_HJC", "L_HJC")),
    "opencap": ("opensim/opencap_subject4/walking1.trc", None, 62.6, 1.75, (185, 200), (14, None, None), ()),
    "opencap, virtual hips withheld": ("opensim/opencap_subject4/walking1.trc", None, 62.6, 1.75, (185, 200),
                                       (18, None, None), ("R_HJC", "L_HJC", "R_HJC_reg", "L_HJC_reg")),
    "qualisys": ("c3d/qualisys_walk/Qualisys.c3d", None, 75.0, 1.75, (175, 190), (15, 9, 7), ()),
    "qualisys, medial withheld": ("c3d/qualisys_walk/Qualisys.c3d", None, 75.0, 1.75, (175, 190), (15, 12, 15),
                                  ("R_FME", "L_FME", "R_TAM", "L_TAM")),
    "overground": ("c3d/vicon_overground_4plates/test_small.c3d", None, 63.6, 1.58, (188, 204), (15, 10, 9), ()),
    "pig": ("c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", "c3d/vicon_pig/PiG_Calibration-FlatFoot-Full.c3d",
            47.5, 1.505, (140, 156), (22, 14, 11), ()),
    "hdm": ("hdm/data.c3d", None, 80.0, 1.80, (188, 204), (9, None, None), ()),
}  # fmt: skip
"""Limits are the targets of the study of these files (hip / knee / ankle: 5/8/6, 23/7/6, 13, 13/7/5, 13/8/7, 20/12/9, 9
mm) with 2 mm for rounding to millimeters there; subject01's hips with the tissue over the spines, which moves the
reference by 6 mm. Limits with references withheld are the measured values plus 2 mm.
Before the ties: 44/32/57, 38/33/39, 28, 47/26/15, 14/23/21, 59/35/18, 46 mm.
"""


def reference_centers(name, walk, still):
    """Return the recording with reference centers, and these, by joint and side."""
    own = name.split(",")[0]
    upper = {"r": "R", "l": "L"}
    if own == "subject01":
        knees = {f"knee_{s}": midpoint(still, f"{u}.Knee.Lat", f"{u}.Knee.Med") for s, u in upper.items()}
        ankles = {f"ankle_{s}": midpoint(still, f"{u}.Ankle.Lat", f"{u}.Ankle.Med") for s, u in upper.items()}
        return still, regression(still, "R.ASIS", "L.ASIS", "V.Sacral") | knees | ankles
    if own == "raj2016":
        hips = {f"hip_{s}": markers(still, f"{u}_HJC") for s, u in upper.items()}
        knees = {f"knee_{s}": midpoint(still, f"{u}.Knee", f"{u}.MKnee") for s, u in upper.items()}
        return still, hips | knees | {
            f"ankle_{s}": midpoint(still, f"{u}.Ankle", f"{u}.MAnkle") for s, u in upper.items()
        }
    if own == "opencap":
        return walk, {f"hip_{s}": markers(walk, f"{u}_HJC") for s, u in upper.items()}
    if own == "qualisys":
        knees = {f"knee_{s}": midpoint(walk, f"{u}_FLE", f"{u}_FME") for s, u in upper.items()}
        ankles = {f"ankle_{s}": midpoint(walk, f"{u}_FAL", f"{u}_TAM") for s, u in upper.items()}
        return walk, regression(walk, "R_IAS", "L_IAS", "R_IPS", "L_IPS") | knees | ankles
    if own == "hdm":
        return walk, regression(walk, "RFWT", "LFWT", "RBWT", "LBWT")
    origins = {"hip": "FEP", "knee": "FEO", "ankle": "TIO"}  # of Plug-in Gait's femur and tibia
    return walk, {f"{j}_{s}": markers(walk, f"{u}{o}") for j, o in origins.items() for s, u in upper.items()}


@pytest.mark.data
@pytest.mark.parametrize("name", REFERENCES)
def test_centers_agree_with_references(name):
    file, static_file, mass, height, distance, limits, withheld = REFERENCES[name]
    walk = read_recording(DATA / file)
    still = None if static_file is None else read_recording(DATA / static_file)
    where, truth = reference_centers(name, walk, still)

    def seen(recording):
        return recording and recording.select_markers([m for m in recording.markers if m not in withheld])

    fit = fit_model(human(mass, height), seen(walk), static=seen(still))
    every = slice(None, None, max(1, where.frames // 40))
    motion = inverse_kinematics(fit.model, seen(where.with_data(where.data.isel(time=every))))
    errors = mean_errors(motion, {joint: at[every] for joint, at in truth.items()})
    found = centers(motion)
    apart = 1e3 * np.nanmean(np.linalg.norm(found["hip_r"][0] - found["hip_l"][0], axis=1))
    means = {j: np.mean([1e3 * np.linalg.norm(errors[f"{j}_{s}"]) for s in "rl"]) for j in DISTAL if f"{j}_r" in errors}
    print(name, f"hips {apart:.0f} mm apart,", {joint: f"{value:.1f}" for joint, value in means.items()})
    assert distance[0] < apart < distance[1]
    for joint, limit in zip(DISTAL, limits, strict=True):
        if limit is not None:
            assert means[joint] < limit, joint


@pytest.mark.data
def test_widths_of_knees_and_ankles_are_read_from_c3d():
    """Plug-in Gait measured them with calipers."""
    subject_values = read_recording(DATA / "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d").subject
    assert 0.07 < subject_values["knee_width"] < 0.12
    assert 0.05 < subject_values["ankle_width"] < 0.09


def test_mirrored_recordings_give_mirrored_centers():
    model, generic = subject(1, "plugin_gait")
    walk = record(model, gait(model, "normal")).select_markers(
        [m.name for m in model.markers if m.name not in ("RBAC",)]
    )
    swap = {"R": "L", "L": "R"}
    names = [swap[n[0]] + n[1:] if n[0] in swap and n not in ("C7",) else n for n in walk.markers]
    data = walk.data.copy(deep=True)
    data["marker_position"] *= np.array([1.0, -1.0, 1.0])
    mirrored = walk.with_data(data.assign_coords(marker=names))
    one, two = fit_model(generic, walk), fit_model(generic, mirrored)
    for joint, twin in (("hip_r", "hip_l"), ("knee_l", "knee_r"), ("ankle_r", "ankle_l")):
        at, other = (f.data["joint_center"].sel(joint=n).values for f, n in ((one, joint), (two, twin)))
        assert at * [1.0, -1.0, 1.0] == pytest.approx(other, abs=1e-5)


def turned(recording, angle, shift=0.0):
    """Return a recording in a lab turned about the vertical [rad] and displaced [m]."""
    data = recording.data.copy(deep=True)
    rotation = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix()
    data["marker_position"].values[...] = data["marker_position"].values @ rotation.T + shift * np.array(
        [1.0, -2.0, 0.0]
    )
    return recording.with_data(data)


@pytest.mark.parametrize("angle", [0.7, 0.87, -2.4])
def test_a_turned_lab_with_a_static_trial_gives_the_same_body(angle):
    """A static trial that sways: medians along the axes of the lab would depend on these."""
    model, generic = subject(2, "plugin_gait")
    walk, still = record(model, gait(model, "slow")), static(model)
    sway = np.random.default_rng(1).normal(0.0, 0.004, (still.frames, 1, 3)) * [1.0, 1.0, 0.2]
    still = still.with_data(still.data.assign(marker_position=still.data["marker_position"] + sway))
    one = fit_model(generic, walk, static=still)
    two = fit_model(generic, turned(walk, angle, 1.0), static=turned(still, angle))
    for before, after in zip(one.model.markers, two.model.markers, strict=True):
        assert np.abs(np.array(before.position) - after.position).max() < 1e-6, before.name


@pytest.mark.data
def test_a_turned_lab_gives_the_same_body_of_a_measured_subject():
    """With the static trial of subject01 in a lab turned by 40 degrees, head and trunk went to another minimum."""
    folder = DATA / "opensim" / "subject01_walk"
    walk, still = (read_recording(folder / f"subject01_{name}.trc") for name in ("walk1", "static"))
    one = fit_model(human(72.6, 1.8), walk, static=still)
    two = fit_model(human(72.6, 1.8), turned(walk, 0.7, 1.0), static=turned(still, 0.7))
    for before, after in zip(one.model.markers, two.model.markers, strict=True):
        assert np.abs(np.array(before.position) - after.position).max() < 1e-6, before.name


def test_stated_uncertainty_grows_without_landmarks():
    model, generic = subject(1, "plugin_gait")
    walk = record(model, gait(model, "normal"))
    without = walk.select_markers([m for m in walk.markers if m not in ("RASI", "LASI", "RKNE", "LKNE")])
    bare = fit_model(generic, without)
    for joint in ("hip_r", "knee_r"):
        sd, more = (f.data["joint_center_sd"].sel(joint=joint).values for f in (plain_fit(), bare))
        assert np.linalg.norm(more) > 1.5 * np.linalg.norm(sd)
