"""Spine of the full skeleton: positions of its vertebrae, masses of its bodies, and ranges of motion of its joints.

Twenty-four vertebrae and their discs follow the curves of a standing person; their heights divide the distance from the
sacrum to the skull. Not every disc becomes a joint. The five of the lumbar spine do, where the trunk bends. The rib
cage is divided in three, and so is the neck below the atlas. A joint that represents several discs has the sum of their
motion: the motion of a region is divided among its discs by the ranges measured disc by disc. Skull on atlas is a hinge
for flexion, atlas on axis one for rotation: the main motions of these joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from math import cos, radians, sin

import numpy as np

from borelli.model.inertia import MassProperties
from borelli.model.model import Frame, Shape
from borelli.model.transforms import Array, Y, Z, vector
from borelli.people.anthropometry import Proportions, table
from borelli.people.segment_builder import NOT_X, SIDES, JointRow, Segment, bone, limb, offset

REGIONS = {"L": "sacral", "T": "lumbar", "C": "neck"}
"""Regions of vertebrae, and the joint of `human` for each."""
ANGLES = ("flexion", "bending", "rotation")
NAMES = [vertebra["name"] for vertebra in table("full_skeleton")["vertebra"]]
"""Names of the vertebrae, from the sacrum up."""
STERNUM = {"T1_T4": ("T1", "T4"), "T5_T8": ("T5", "T7")}
"""Bodies with a part of the breastbone, and the vertebrae of its highest and lowest rib."""
BELOW = dict(zip(NAMES, ["S1", *NAMES], strict=False))
"""Vertebra below each vertebra."""


@dataclass(frozen=True)
class Vertebra:
    """One vertebra in the standing pose [m, rad]."""

    name: str
    body: str
    disc: Array
    """Center of the disc below it."""
    bottom: Array
    top: Array
    slope: float
    """Forward inclination [rad]."""
    radius: float
    mass_fraction: float
    """Fraction of the trunk's mass at its level."""


@dataclass(frozen=True)
class Spine:
    """All vertebrae, from the sacrum up."""

    vertebrae: tuple[Vertebra, ...]
    sacrum: Array
    """Center of the endplate below the lowest disc."""
    skull: Array
    """Support of the skull."""

    def __getitem__(self, name: str) -> Vertebra:
        """Return the vertebra called `name`."""
        return self.vertebrae[NAMES.index(name)]

    def of_body(self, body: str) -> list[Vertebra]:
        """Return the vertebrae of one body."""
        return [vertebra for vertebra in self.vertebrae if vertebra.body == body]

    def above(self, vertebra: Vertebra) -> Array:
        """Return the center of the disc on a vertebra; on the atlas, the support of the skull."""
        index = NAMES.index(vertebra.name) + 1
        return self.vertebrae[index].disc if index < len(NAMES) else self.skull


def bodies() -> list[str]:
    """Return the names of the bodies of vertebrae, from the sacrum up."""
    return list(dict.fromkeys(vertebra["body"] for vertebra in table("full_skeleton")["vertebra"]))


def spine_of(p: Proportions) -> Spine:
    """Return the spine of a standing person, with the hips' midpoint over the origin."""
    data = table("full_skeleton")
    spine, rows = data["spine"], data["vertebra"]
    heights = np.array([row["height"] for row in rows])
    discs = heights * [spine["disc"][row["name"][0]] for row in rows]
    discs[-1] = 0.0  # there is no disc between atlas and axis
    lengths = np.stack([discs, heights], axis=1).ravel()
    ends = np.cumsum(lengths)
    top = dict(zip(NAMES, ends[1::2], strict=True))
    knots = {
        "S1": 0.0,
        "L4": top["L4"],
        "L1": top["L1"],
        "T4": top["T4"],
        "C7": top["T1"],
        "C2": top["C2"],
        "C1": top["C1"],
    }
    slopes = np.interp(ends - lengths / 2.0, list(knots.values()), [radians(spine["slope"][name]) for name in knots])

    lean = radians(spine["pelvic_tilt"])
    start = offset(z=p.length["hip_height"]) + p.height * spine["sacrum"] * np.array([-sin(lean), 0.0, cos(lean)])
    unit = (p.length["cranial_base_height"] - start[2]) / float(lengths @ np.cos(slopes))
    steps = unit * lengths[:, None] * np.stack([np.sin(slopes), np.zeros(len(slopes)), np.cos(slopes)], axis=1)
    points = start + np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    vertebrae = tuple(
        Vertebra(
            row["name"], row["body"], (points[2 * i] + points[2 * i + 1]) / 2.0, points[2 * i + 1], points[2 * i + 2],
            float(slopes[2 * i + 1]), unit * row["radius"], row.get("mass", 0.0),
        )
        for i, row in enumerate(rows)
    )  # fmt: skip
    return Spine(vertebrae, start, points[-1])


def trunk(p: Proportions, spine: Spine, collars: MassProperties) -> list[Segment]:
    """Return the segments of loins and chest: each has the slices of the trunk at the levels of its vertebrae.

    The shoulder girdles `collars` cover the upper eight ribs; their mass is not part of the slices.
    """
    data = table("full_skeleton")["spine"]
    levels = [vertebra for vertebra in spine.vertebrae if vertebra.mass_fraction > 0.0]
    covered = [vertebra for vertebra in levels if vertebra.body in ("T5_T8", "T1_T4")]
    total = sum(p.segments[part]["mass"] for part in ("upper_trunk", "middle_trunk")) * p.mass_scale
    per_fraction = total / sum(vertebra.mass_fraction for vertebra in levels)
    per_covered = collars.mass / sum(vertebra.mass_fraction for vertebra in covered)
    levels_ahead = [NAMES.index(name) for name in data["ahead"]]

    def slice_at(vertebra: Vertebra) -> MassProperties:
        mass = vertebra.mass_fraction * (per_fraction - (per_covered if vertebra in covered else 0.0))
        half = data["slice"].get(vertebra.body, data["slice"]["L"])
        ahead = np.interp(NAMES.index(vertebra.name), levels_ahead, list(data["ahead"].values())) * p.height / 1.75
        return _disk(mass, vertebra.disc, spine.above(vertebra), p.height * np.array(half), float(ahead))

    return [
        Segment(
            body,
            (own := spine.of_body(body))[0].disc,
            reduce(MassProperties.__add__, map(slice_at, own)),
            _bones(p, own),
        )
        for body in bodies()
        if not body.startswith("C")
    ]


def neck(p: Proportions, spine: Spine) -> list[Segment]:
    """Return the segments of the neck, whose mass is divided by length."""
    length = spine.skull[2] - spine["C7"].disc[2]
    mass = p.segments["head"]["mass"] * p.mass_scale * p.mass_fraction["neck"]
    radius = float(p.shape["neck"])
    return [
        Segment(
            body, (own := spine.of_body(body))[0].disc,
            _disk(
                mass * ((end := spine.above(own[-1])) - own[0].disc)[2] / length, own[0].disc, end,
                np.array([radius, radius]), 0.0,
            ),
            _bones(p, own),
        )
        for body in bodies()
        if body.startswith("C")
    ]  # fmt: skip


def joint_rows() -> list[JointRow]:
    """Return the joints of the spine, from the sacrum up, that of the skull last."""
    rows = []
    below = "pelvis"
    for body in bodies():
        lowest = next(v["name"] for v in table("full_skeleton")["vertebra"] if v["body"] == body)
        name = f"{lowest}_{BELOW[lowest]}"
        if body == "C1":
            rows.append(JointRow(name, "hinge", below, body, (Z,), (f"{name}_rotation",)))
        else:
            angles = tuple(f"{name}_{angle}" for angle in ANGLES)
            rows.append(JointRow(name, "ball", below, body, (Y, NOT_X, Z), angles))
        below = body
    return [*rows, JointRow("C0_C1", "hinge", below, "head", (Y,), ("C0_C1_flexion",))]


@cache
def ranges() -> dict[str, tuple[float, float]]:
    """Return the ranges of the spine's angles [deg]: those of regions of `human`, divided by the motion of discs."""
    whole = table("human")["range"]
    result = {"C1_C2_rotation": tuple(whole["head_rotation"]), "C0_C1_flexion": tuple(whole["head_flexion"])}
    moving = [vertebra for vertebra in table("full_skeleton")["vertebra"] if "range" in vertebra]
    for region, name in REGIONS.items():
        own = [vertebra for vertebra in moving if vertebra["name"][0] == region]
        for index, angle in enumerate(ANGLES):
            total = sum(vertebra["range"][index] for vertebra in own)
            for vertebra in own:
                at = vertebra.get("joint", vertebra["name"])
                key = f"{at}_{BELOW[at]}_{angle}"
                lower, upper = (limit * vertebra["range"][index] / total for limit in whole[f"{name}_{angle}"])
                before = result.get(key, (0.0, 0.0))
                result[key] = before[0] + lower, before[1] + upper
    return result


def _disk(mass: float, bottom: Array, top: Array, half: Array, ahead: float) -> MassProperties:
    """Return an upright elliptic cylinder between two heights, its center ahead of them by a distance [m]."""
    depth, breadth, height = half[0] ** 2 / 4.0, half[1] ** 2 / 4.0, (top - bottom)[2] ** 2 / 12.0
    radii = np.array([breadth + height, depth + height, depth + breadth])
    return MassProperties(mass, (bottom + top) / 2.0 + offset(x=ahead), mass * np.diag(radii))


def _bones(p: Proportions, vertebrae: list[Vertebra]) -> tuple[Shape, ...]:
    """Return vertebrae and their ribs; only ribs collide."""
    shapes: list[Shape] = []
    thin = p.height * table("full_skeleton")["bones"]["spine_process"]
    for v in vertebrae:
        center = (v.bottom + v.top) / 2.0
        orientation = (cos(v.slope / 2.0), 0.0, sin(v.slope / 2.0), 0.0)
        half = float(np.linalg.norm(v.top - v.bottom)) / 2.0
        shapes.append(Shape("cylinder", (v.radius, half), Frame(vector(center), orientation), collides=False))
        back = center - v.radius * np.array([cos(v.slope), 0.0, -sin(v.slope)])
        process = bone(back, back + offset(x=-0.019 * p.height, z=-0.008 * p.height), thin)
        shapes.append(Shape("capsule", process.size, process.frame, collides=False))
        if v.name.startswith("T"):
            shapes += _ribs(p, int(v.name[1:]), center, v.radius)
    if vertebrae[0].body in STERNUM:
        shapes.append(_breastbone(p, vertebrae))
    return tuple(shapes)


def _breastbone(p: Proportions, vertebrae: list[Vertebra]) -> Shape:
    data = table("full_skeleton")
    ribs, ends = data["ribs"], []
    for name in STERNUM[vertebrae[0].body]:
        v = next(v for v in vertebrae if v.name == name)
        number = int(name[1:]) - 1
        ends.append((v.bottom + v.top) / 2.0 + p.height * offset(x=ribs["ahead"][number], z=-ribs["below"][number]))
    return limb(ends[0], ends[1], p.height * data["bones"]["sternum"])


def _ribs(p: Proportions, number: int, vertebra: Array, radius_at_rib: float) -> list[Shape]:
    """Return one pair of ribs: from the vertebra outward, then forward and down; the last two end at the side."""
    ribs = table("full_skeleton")["ribs"]
    out, below, radius = (
        p.height * size for size in (ribs["out"][number - 1], ribs["below"][number - 1], ribs["radius"])
    )
    shapes = []
    for _, side in SIDES:
        root = vertebra + offset(y=side * radius_at_rib)
        if number > len(ribs["ahead"]):
            shapes.append(bone(root, vertebra + offset(x=0.2 * out, y=side * out, z=-below), radius))
            continue
        ahead, apart = (p.height * ribs[size][number - 1] for size in ("ahead", "apart"))
        # outward and slightly back, along the side, and in to the front
        points = [
            root,
            vertebra + offset(x=-0.1 * ahead, y=side * 0.7 * out, z=-0.15 * below),
            vertebra + offset(x=0.35 * ahead, y=side * out, z=-0.5 * below),
            vertebra + offset(x=0.8 * ahead, y=side * (0.7 * out + 0.3 * apart), z=-0.85 * below),
            vertebra + offset(x=ahead, y=side * apart, z=-below),
        ]
        shapes += [bone(a, b, radius) for a, b in pairwise(points)]
    return shapes
