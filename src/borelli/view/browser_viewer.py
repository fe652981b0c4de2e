"""A result in the browser: turn it, play it, step through it. Served to this computer only."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import SettingsError
from borelli.model.model import Shape
from borelli.view.drawing import DOT, GROUND_COLOR, colors_of
from borelli.view.mesh import join, shape_mesh
from borelli.view.picture import model_of

if TYPE_CHECKING:
    from xarray import Dataset

LOCAL = ("127.0.0.1", "localhost", "::1")
REDRAW = 1 / 40  # [s] between updates while playing


class Workbench:
    """A result being served; `stop` ends it."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        """Where to point the browser (the next free port when the wanted one was taken)."""
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def stop(self) -> None:
        """Stop playing and serving."""
        self.stopped.set()
        self.server.stop()


def show(dataset: Dataset, *, host: str = "127.0.0.1", port: int = 8080, block: bool = True) -> Workbench:
    """Serve a result at http://host:port until interrupted; returns at once when `block` is false."""
    if host not in LOCAL:
        raise SettingsError(
            f"the viewer has no password, so it serves this computer only: host {host!r} is not one of {LOCAL}"
        )
    workbench = Workbench(_serve(host, port))
    bodies = _add_bodies(workbench.server, dataset)
    _add_controls(workbench, dataset, bodies)
    if block:
        try:
            workbench.stopped.wait()
        except KeyboardInterrupt:
            workbench.stop()
    return workbench


def _serve(host: str, port: int) -> Any:
    try:
        import viser
    except ImportError:
        raise SettingsError("the viewer needs viser, which is not installed: pip install 'borelli[view]'") from None
    return viser.ViserServer(host=host, port=port, label="borelli", verbose=False)


def _add_bodies(server: Any, dataset: Dataset) -> list[Any]:
    """Put every body into the scene; returns one movable frame each."""
    model = model_of(dataset)
    colors = colors_of(model)
    server.scene.set_up_direction("+z")
    handles = []
    for body in model.bodies:
        handles.append(server.scene.add_frame(f"/bodies/{body.name}", show_axes=False))
        mesh = join([shape_mesh(shape) for shape in body.shapes or (Shape("sphere", (DOT,)),)])
        color = tuple(int(255 * c) for c in colors[body.name])
        server.scene.add_mesh_simple(f"/bodies/{body.name}/shape", mesh.vertices, mesh.triangles, color=color)
    for index, shape in enumerate(model.ground):
        name = f"/ground/{index}"
        if shape.kind == "plane":
            server.scene.add_grid(
                name,
                width=20.0,
                height=20.0,
                plane="xy",
                cell_size=0.5,
                section_size=1.0,
                wxyz=shape.frame.orientation,
                position=shape.frame.position,
            )
        else:
            mesh = shape_mesh(shape)
            color = tuple(int(255 * c) for c in GROUND_COLOR)
            server.scene.add_mesh_simple(name, mesh.vertices, mesh.triangles, color=color)
    _aim(server, dataset)
    return handles


def _aim(server: Any, dataset: Dataset) -> None:
    """Point every new visitor's camera at the motion."""
    points = dataset["body_position"].values.reshape(-1, 3)
    middle = (points.min(0) + points.max(0)) / 2
    distance = 0.6 + 1.0 * float(np.linalg.norm(np.ptp(points, axis=0)))

    def aim(client: Any) -> None:
        # moving the camera moves what it looks at, so the order matters
        client.camera.position = middle + distance * np.array([0.45, -0.84, 0.30])
        client.camera.look_at = middle

    server.on_client_connect(aim)


def _add_controls(workbench: Workbench, dataset: Dataset, bodies: list[Any]) -> None:
    """A time slider, play and speed; a thread moves the slider while playing."""
    server, clock = workbench.server, dataset["time"].values
    position, quaternion = dataset["body_position"].values, dataset["body_orientation"].values
    energy = dataset["kinetic_energy"].values if "kinetic_energy" in dataset else None
    step = max(float(clock[-1] - clock[0]) / 2000, 1e-4)
    slider = server.gui.add_slider("time [s]", float(clock[0]), float(clock[-1]), step, float(clock[0]))
    playing = server.gui.add_checkbox("play", True)
    speed = server.gui.add_slider("speed", 0.05, 2.0, 0.05, 1.0)
    readout = server.gui.add_markdown("")

    def pose(now: float) -> None:
        instant = int(np.abs(clock - now).argmin())
        with server.atomic():
            for index, body in enumerate(bodies):
                body.position = position[instant, index]
                body.wxyz = quaternion[instant, index]
        if energy is not None:
            readout.content = f"kinetic energy {energy[instant]:.3g} J"

    slider.on_update(lambda _: pose(slider.value))

    def play() -> None:
        while not workbench.stopped.wait(REDRAW):
            if playing.value:
                now = slider.value + REDRAW * speed.value
                slider.value = float(clock[0]) if now > clock[-1] else now

    pose(float(clock[0]))
    threading.Thread(target=play, daemon=True, name="borelli-playback").start()
