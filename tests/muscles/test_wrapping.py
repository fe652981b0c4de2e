"""Wrapping against closed forms and direct minimization, in the ordinary and the exceptional cases."""

import numpy as np
import pytest
from scipy.optimize import minimize

from borelli.errors import ModelError, SettingsError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Frame, PathWrap
from borelli.muscles.path_arrays import make_path_arrays, make_path_work
from borelli.muscles.path_kernels.moment_arms import add_body_wrenches, compute_path_frames
from borelli.muscles.paths import lines_of_action, muscle_paths, path_points
from borelli.tree.forward_kinematics import make_tree_pose
from borelli.tree.kinematic_tree import make_tree

from .sample_models import at, free_body_model, moving_and_conditional_model, over, random_rows, surface

REST = np.zeros(6)
EXACT = 1e-12
"""[m] for closed forms: rounding."""


def length(points, *objects, **rest) -> tuple[float, int]:
    model = free_body_model(points, over(*objects, **rest), objects)
    paths = muscle_paths(model, REST)
    return float(paths.length[0, 0]), int(paths.wrap_state[0, 0])


def outside(kind, sizes, x):
    """Distance of points from a surface, as a fraction of its radius; negative inside."""
    if kind == "torus":
        return np.hypot(np.hypot(x[:, 0], x[:, 1]) - sizes[1], x[:, 2]) / sizes[0] - 1.0
    return np.linalg.norm(x / np.array(sizes), axis=1) - 1.0


def taut_string(kind, sizes, p, q, via, count):
    """Length of a string of equal pieces pulled tight around a surface from a start over `via`: a slow, obvious twin.

    The sum of squares is least where all pieces have the same length and their sum is least.
    """
    half = count // 2
    start = np.concatenate([np.linspace(p, via, half + 1)[1:], np.linspace(via, q, count - half + 1)[1:-1]])

    def pieces(x):
        return np.diff(np.concatenate([[p], x.reshape(-1, 3), [q]]), axis=0)

    def energy(x):
        d = pieces(x)
        return 1e3 * count * (d**2).sum(), 2e3 * count * (d[:-1] - d[1:]).ravel()

    def slope(x):  # every piece's end has a constraint of its own
        x, h = x.reshape(-1, 3), 1e-7
        parts = [(outside(kind, sizes, x + h * e) - outside(kind, sizes, x - h * e)) / (2 * h) for e in np.eye(3)]
        return np.einsum("kn,nm->nmk", parts, np.eye(len(x))).reshape(len(x), -1)

    rule = {"type": "ineq", "fun": lambda x: outside(kind, sizes, x.reshape(-1, 3)), "jac": slope}
    found = minimize(
        energy, start.ravel(), jac=True, method="SLSQP", constraints=rule, options={"maxiter": 500, "ftol": 1e-11}
    )
    assert outside(kind, sizes, found.x.reshape(-1, 3)).min() > -1e-6
    return np.linalg.norm(pieces(found.x), axis=1).sum()


def test_cylinder_unrolls():
    # p and q level with the axis, a quarter turn apart on either side: tangents and arc are elementary
    r, d, rise = 0.03, 0.05, 0.04
    found, state = length([at(-d, 0, 0), at(d, 1e-9, rise, "b")], surface("cylinder", r, 1.0))
    flat = 2 * np.sqrt(d**2 - r**2) + r * (np.pi - 2 * np.arccos(r / d))
    assert state == 2
    assert found == pytest.approx(np.hypot(flat, rise), abs=1e-9)


def test_sphere_takes_the_great_circle_also_through_its_center():
    r, d = 0.03, 0.05
    expected = 2 * np.sqrt(d**2 - r**2) + r * (np.pi - 2 * np.arccos(r / d))
    found, state = length([at(-d, 0, 0), at(d, 0, 0, "b")], surface("sphere", r))
    assert (found, state) == (pytest.approx(expected, abs=EXACT), 1)


def test_round_ellipsoid_is_a_sphere():
    points = [at(-0.05, 0.01, 0.02), at(0.06, 0.005, -0.01, "b")]
    ball, _ = length(points, surface("sphere", 0.03))
    round_, _ = length(points, surface("ellipsoid", 0.03, 0.03, 0.03))
    assert round_ == pytest.approx(ball, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "sizes", "p", "q", "via"),
    [
        ("ellipsoid", (0.03, 0.02, 0.05), (-0.06, 0.004, 0.02), (0.05, 0.006, -0.02), (0.0, 0.03, 0.0)),
        ("ellipsoid", (0.02, 0.03, 0.03), (-0.03, 0.01, 0.05), (0.04, 0.012, -0.04), (0.01, 0.04, 0.0)),
        ("torus", (0.006, 0.012), (0.012, 0.002, 0.05), (0.013, -0.001, -0.04), (0.003, 0.0, 0.0)),
    ],
)
def test_geodesics_are_taut_strings(kind, sizes, p, q, via):
    found, state = length([at(*p), at(*q, "b")], surface(kind, *sizes))
    assert state in (1, 2)
    coarse, fine = (taut_string(kind, sizes, np.array(p), np.array(q), np.array(via), n) for n in (10, 20))
    limit = fine + (fine - coarse) / 3  # pieces cut the corner by the square of their length
    assert found == pytest.approx(limit, abs=0.5 * abs(fine - coarse) + 1e-6)
    assert abs(fine - coarse) < 1e-3


@pytest.mark.parametrize("geometry", ["exact", "opensim"])
def test_an_end_inside_the_surface_does_not_wrap(geometry):
    for kind, sizes in (("cylinder", (0.03, 1.0)), ("sphere", (0.03,)), ("ellipsoid", (0.03, 0.03, 0.04))):
        points = [at(-0.02, 0, 0), at(0.05, 0.01, 0, "b")]
        thing = surface(kind, *sizes)
        model = free_body_model(points, over(thing), [thing])
        paths = muscle_paths(model, REST, geometry=geometry)
        assert paths.wrap_state[0, 0] == -1
        assert paths.length[0, 0] == pytest.approx(np.hypot(0.07, 0.01), abs=EXACT)


def test_side_makes_the_path_take_the_long_way():
    points, r = [at(-0.05, 0.01, 0), at(0.05, 0.01, 0, "b")], 0.03
    short, _ = length(points, surface("cylinder", r, 1.0))
    long, state = length(points, surface("cylinder", r, 1.0, side="-y"))
    tangent = np.sqrt(0.0026 - r**2)
    reach = np.arccos(r / np.sqrt(0.0026))
    around = np.pi + 2 * np.arctan2(0.01, 0.05) - 2 * reach
    assert state == 1, "neither end is on the allowed half, so the path may wrap"
    assert long == pytest.approx(2 * tangent + r * around, abs=EXACT)
    assert short == pytest.approx(2 * tangent + r * (np.pi - 2 * np.arctan2(0.01, 0.05) - 2 * reach), abs=EXACT)


def test_tangent_line_has_no_arc():
    r = 0.03
    for height in (r * (1 + 1e-9), r * (1 - 1e-9)):
        found, _ = length([at(-0.05, height, 0), at(0.05, height, 0, "b")], surface("cylinder", r, 1.0))
        assert found == pytest.approx(0.1, abs=1e-9)


def test_a_point_on_the_surface_wraps_from_there():
    r = 0.03
    found, state = length([at(-r, 0, 0), at(0.05, 1e-12, 0, "b")], surface("cylinder", r, 1.0))
    assert state == 2
    assert found == pytest.approx(r * (np.pi - np.arccos(r / 0.05)) + 0.04, abs=1e-9)


def test_past_the_end_of_a_cylinder_the_path_is_straight():
    points = [at(-0.05, 0.01, 0.2), at(0.05, 0.01, 0.2, "b")]
    assert length(points, surface("cylinder", 0.03, 0.1))[1] == 0
    assert length(points, surface("cylinder", 0.03, 0.3))[1] == 2


def apex_heights(p, q, radius):
    """Heights of OpenSim's tangent points on a cylinder along z, by its construction: a slow, obvious twin.

    The plane through p, q and an apex on the surface cuts the lines of tangency.
    """
    near, far = np.hypot(*p[:2]), np.hypot(*q[:2])
    middle = p + near / (near + far) * (q - p)
    axis = np.array([0.0, 0.0, middle[2]])
    out = np.cross([0.0, 0.0, 1.0], np.cross(p - axis, q - axis))
    out *= radius / np.linalg.norm(out)
    apex = min((axis + out, axis - out), key=lambda x: np.linalg.norm(x - middle))
    normal = np.cross(p - apex, q - apex)
    side = 1.0 if p[0] * q[1] - p[1] * q[0] > 0.0 else -1.0
    heights = []
    for point, other, sign in ((p, q, side), (q, p, -side)):
        angle = np.arctan2(point[1], point[0]) + sign * np.arccos(radius / np.hypot(*point[:2]))
        touch = radius * np.array([np.cos(angle), np.sin(angle)])
        z = (normal @ p - normal[:2] @ touch) / normal[2]
        heights.append(z if abs(z - other[2]) < abs(point[2] - other[2]) else point[2])
    return heights


def test_ends_of_a_cylinder_are_judged_by_the_apex_plane():
    """Oblique segments near an end: exact and OpenSim's paths, with and without an idle second wrap, agree."""
    rng = np.random.default_rng(2)
    radius, half = 0.02, 0.03
    short, far = surface("cylinder", radius, half), surface("sphere", 0.01, frame=Frame((9.0, 9.0, 9.0)), name="far")
    outcomes = []
    for _ in range(300):
        p, q = (np.array([x, *rng.uniform(-1.0, 1.0, 2) * [0.01, 0.1]]) for x in (-0.04, 0.05))
        expected = min(map(abs, apex_heights(p, q, radius))) <= half  # all of these segments cut the surface
        for objects in ((short,), (short, far)):
            model = free_body_model((at(*p), at(*q, "b")), over(*objects), objects)
            for geometry in ("exact", "opensim"):
                assert (muscle_paths(model, REST, geometry=geometry).wrap_state[0, 0] > 0) == expected, (p, q)
        outcomes.append(expected)
    assert 0.1 < np.mean(outcomes) < 0.9


def test_of_two_cutting_segments_the_first_wraps():
    points = [at(-0.05, 0.01, 0), at(0.05, 0.01, 0), at(-0.05, -0.01, 0.1, "b")]
    thing = surface("cylinder", 0.03, 1.0)
    model = free_body_model(points, over(thing), [thing])
    line = path_points(model, REST)[0][0]
    assert muscle_paths(model, REST).wrap_state[0, 0] == 2
    assert np.abs(line[-1] - [-0.05, -0.01, 0.1]).max() < EXACT
    assert np.abs(line[-2] - [0.05, 0.01, 0.0]).max() < EXACT, "the second segment is straight"


def test_inactive_surface_and_range_elsewhere_do_not_wrap():
    points = [at(-0.05, 0.01, 0), at(0.05, 0.01, 0, "b"), at(0.1, 0.1, 0, "b")]
    assert length(points, surface("cylinder", 0.03, 1.0, active=False))[1] == 0
    assert length(points, surface("cylinder", 0.03, 1.0), first=1, last=2)[1] == 0
    assert length(points, surface("cylinder", 0.03, 1.0), first=0, last=1)[1] == 2


def test_points_at_the_same_position_pull_nowhere():
    model = free_body_model([at(0, 0, 0), at(0, 0, 0), at(0.3, 0.4, 0, "b")])
    paths = muscle_paths(model, REST)
    assert paths.length[0, 0] == pytest.approx(0.5, abs=EXACT)
    assert np.isfinite(paths.moment_arm).all()


def test_an_idle_second_wrap_changes_nothing():
    points = [at(-0.05, 0.01, -0.05), at(0.05, 0.0, 0.07, "b")]
    thing, idle = surface("cylinder", 0.03, 1.0), surface("sphere", 0.01, frame=Frame((1.0, 1.0, 1.0)), name="idle")
    alone, _ = length(points, thing)
    both, _ = length(points, thing, idle)
    assert both == pytest.approx(alone, abs=EXACT)


def test_two_surfaces_touch_at_rest():
    """Several wraps are stationary together: virtual work holds, and no tangent point can shorten the path."""
    one = surface("cylinder", 0.02, 1.0, frame=Frame((-0.03, 0.0, 0.0)), name="one")
    two = surface("sphere", 0.025, frame=Frame((0.04, 0.005, 0.0)), name="two")
    points = [at(-0.1, 0.004, 0.02), at(0.12, 0.007, -0.01, "b")]
    model = free_body_model(points, over(one, two), [one, two])
    paths = muscle_paths(model, REST)
    assert (paths.wrap_state[0] > 0).all()
    assert virtual_work_error(model, REST[None]) < 1e-9
    line = lines_of_action(model, REST)[0]
    assert np.abs(line.force.sum(axis=0)).max() < 1e-12, "internal forces cancel"


def virtual_work_error(model, rows, step=2e-5) -> float:
    """Largest |R + dl/dq| over free coordinates, by differences of fourth order."""
    arm, worst = muscle_paths(model, rows).moment_arm, 0.0
    for c in range(rows.shape[1]):
        lengths = []
        for k in (-2, -1, 1, 2):
            moved = rows.copy()
            moved[:, c] += k * step
            lengths.append(muscle_paths(model, moved).length)
        slope = (8 * (lengths[2] - lengths[1]) - (lengths[3] - lengths[0])) / (12 * step)
        worst = max(worst, float(np.abs(arm[:, :, c] + slope).max()))
    return worst


def test_moving_and_conditional_points():
    model = moving_and_conditional_model()
    rows = np.array([[-0.5], [0.3], [0.9], [1.2]])
    assert virtual_work_error(model, rows) < 1e-9
    paths = muscle_paths(model, np.array([[-1e-12], [0.0], [1.0], [1.0 + 1e-12]]))
    a, via = np.array([0.3, 0.1]), np.array([0.25, 0.2])

    def insertion(q):
        rotation = np.array([[np.cos(q), -np.sin(q)], [np.sin(q), np.cos(q)]])
        return rotation @ np.array([0.1 + 0.02 * q, 0.05 - 0.01 * q])

    for row, q, bent in zip(range(4), (0.0, 0.0, 1.0, 1.0), (False, True, True, False), strict=True):
        b = insertion(q)
        expected = np.linalg.norm(a - via) + np.linalg.norm(via - b) if bent else np.linalg.norm(a - b)
        assert paths.length[row, 0] == pytest.approx(expected, abs=1e-10), "the range includes its ends"


@pytest.mark.parametrize("geometry", ["exact", "opensim"])
def test_opensim_has_conditional_points_a_little_beyond_their_range(geometry):
    """1e-5 beyond, as `ConditionalPathPoint::isActive`."""
    model = moving_and_conditional_model()  # active from 0 to 1
    rows = [[1.0], [1.0 + 0.9e-5], [1.0 + 1.1e-5], [-0.9e-5], [-1.1e-5]]
    lengths = muscle_paths(model, rows, geometry=geometry).length[:, 0]
    active = lengths > muscle_paths(model, [[1.1]]).length[0, 0] + 0.01
    assert active.tolist() == [True, geometry == "opensim", False, geometry == "opensim", False]


def test_velocity_is_the_rate_of_length():
    model = moving_and_conditional_model()
    h, q, speed = 1e-6, 0.4, -2.0
    paths = muscle_paths(model, [[q]], [[speed]])
    before, after = muscle_paths(model, [[q - h * speed], [q + h * speed]]).length[:, 0]
    assert paths.velocity is not None
    assert paths.velocity[0, 0] == pytest.approx((after - before) / (2 * h), abs=1e-8)


def test_body_wrenches_are_those_of_the_lines_of_action():
    thing = surface("cylinder", 0.03, 1.0)
    model = free_body_model([at(-0.06, 0.01, -0.02), at(0.05, 0.008, 0.03, "b")], over(thing), [thing])
    arrays = make_path_arrays(model, ("m",))
    work = make_path_work(arrays)
    tree = make_tree(model)
    shared = [SharedTuple(one) for one in (arrays, tree, make_tree_pose(tree), work)]
    compute_path_frames(
        *shared, 0, REST[None].copy(), np.zeros(6), np.zeros((1, 1)), np.zeros((1, 1, 6)), np.zeros((1, 1), np.int64)
    )
    wrench = np.zeros((1, 6))
    add_body_wrenches(shared[0], shared[3], np.array([2.0]), wrench)
    line = lines_of_action(model, REST)[0]
    own = [i for i, body in enumerate(line.body) if body == "b"]
    moment = np.cross(line.point[own], line.force[own]).sum(axis=0)
    assert wrench[0] == pytest.approx(2.0 * np.concatenate([moment, line.force[own].sum(axis=0)]), abs=1e-12)


def test_drawn_arcs_lie_on_the_surface_and_have_its_length():
    for kind, sizes in (("cylinder", (0.03, 1.0)), ("sphere", (0.03,)), ("ellipsoid", (0.03, 0.02, 0.04))):
        thing = surface(kind, *sizes)
        model = free_body_model([at(-0.06, 0.01, -0.02), at(0.05, 0.008, 0.03, "b")], over(thing), [thing])
        line = path_points(model, REST)[0][0]
        drawn = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
        assert drawn == pytest.approx(muscle_paths(model, REST).length[0, 0], rel=2e-3)
        size = np.array({"cylinder": (0.03, 0.03, np.inf), "sphere": (0.03,) * 3}.get(kind, sizes))
        assert np.sqrt(((line[1:-1] / size) ** 2).sum(axis=1)) == pytest.approx(1.0, abs=1e-9)


def test_results_do_not_depend_on_the_frames_before():
    thing = surface("ellipsoid", 0.03, 0.02, 0.05)
    model = free_body_model([at(-0.06, 0.01, -0.02), at(0.05, 0.008, 0.03, "b")], over(thing), [thing])
    rows = 0.3 * random_rows(model, 30) * [0.02, 0.02, 0.02, 1, 1, 1]
    together = muscle_paths(model, rows).length
    alone = np.concatenate([muscle_paths(model, row).length for row in rows])
    assert np.abs(together - alone).max() < 1e-12


def test_dataset_has_the_schema():
    model = moving_and_conditional_model()
    data = muscle_paths(model, [[0.1], [0.2]], [[1.0], [1.0]]).to_dataset([0.0, 0.01])
    assert data["muscle_length"].dims == data["muscle_velocity"].dims == ("time", "muscle")
    assert data["moment_arm"].dims == ("time", "muscle", "coordinate")
    assert all("units" in data[name].attrs for name in data)


def test_bad_calls_are_refused():
    model = moving_and_conditional_model()
    with pytest.raises(SettingsError, match="'q' in frame 1"):
        muscle_paths(model, [[0.1], [np.nan]])
    with pytest.raises(SettingsError, match="shape"):
        muscle_paths(model, [[0.1, 0.2]])
    with pytest.raises(SettingsError, match="geometry"):
        muscle_paths(model, [[0.1]], geometry="flat")
    with pytest.raises(ModelError, match="Unknown muscle"):
        muscle_paths(model, [[0.1]], muscles=["biceps"])
    bent = free_body_model([at(0, 0, 0), at(1, 0, 0, "b")], (PathWrap("missing"),))
    with pytest.raises(ModelError, match="Muscle 'm': Unknown wrap object 'missing'"):
        muscle_paths(bent, REST)
