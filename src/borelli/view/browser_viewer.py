"""3-D viewer in the browser: rotate, play and step through a result. Requests are checked (`request_guard`)."""

from __future__ import annotations

import socket
import sys
import threading
from typing import Any

import numpy as np

from borelli.errors import SettingsError
from borelli.model.model import Shape
from borelli.view.drawing import DOT_RADIUS, GROUND_COLOR, body_colors
from borelli.view.mesh import join, shape_mesh
from borelli.view.request_guard import LOCAL, RequestGuard, guarding, refuses_foreign_host
from borelli.view.results import PosedModel, posed_model

ANY_HOSTS = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}
"""Hosts that mean every address of this computer, and the one to reach them by."""
UPDATE_INTERVAL = 1 / 40  # [s] while playing
MUSCLE_WIDTH = 4.0  # [pixels]
GRID = {"width": 20.0, "height": 20.0, "plane": "xy", "cell_size": 0.5, "section_size": 1.0}  # [m]


class BrowserViewer:
    """Running viewer; `stop` ends it."""

    def __init__(self, server: Any, guard: RequestGuard) -> None:
        self.server = server
        self.guard = guard
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        """Address of the viewer, with its token; its port is the next free one if the requested port was taken."""
        host = self.server.get_host()
        page = f"http://{f'[{host}]' if ':' in host else host}:{self.server.get_port()}"
        return page if self.guard.token is None else f"{page}/?token={self.guard.token}"

    def stop(self) -> None:
        """Stop playing and serving."""
        self.stopped.set()
        self.server.stop()


def show(result: Any, *, host: str = "127.0.0.1", port: int = 8080, block: bool = True) -> BrowserViewer:
    """Show a result in the browser at http://host:port.

    The viewer answers its own page only, not other web pages. For other computers, give a `host`; its `url` then has a
    token that each of them needs. The connection is not encrypted.

    Args:
        result: As of `picture`.
        host: Address to serve. Default: this computer only.
        port: Port; the next free one if it is taken.
        block: Print the address and serve until interrupted. If false, return at once.

    Returns:
        The viewer, which has its `url` and `stop()`.

    Raises:
        SettingsError: The host is no address of this computer, viser is not installed, or the result has no poses.

    Examples:
        >>> viewer = bo.show(bo.human(), block=False)  # doctest: +SKIP
        >>> viewer.url  # doctest: +SKIP
        'http://127.0.0.1:8080'
    """
    posed = posed_model(result)
    _check_host(host)
    guard = RequestGuard(host)
    viewer = BrowserViewer(_serve(host, port, guard), guard)
    bodies, muscles = _add_bodies(viewer.server, posed), _add_muscles(viewer.server, posed)
    if len(posed.time) > 1:
        _add_controls(viewer, posed, bodies, muscles, _kinetic_energy(result))
    else:
        _set_poses(bodies, posed, 0)
    if block:
        print(f"borelli: The result is shown at {viewer.url}. Stop with Ctrl-C.", file=sys.stderr, flush=True)
        try:
            viewer.stopped.wait()
        except KeyboardInterrupt:
            viewer.stop()
    return viewer


def _check_host(host: str) -> None:
    """Raise SettingsError unless the host is an address of this computer; viser would try many ports."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as error:
        raise SettingsError(
            f"host: {host!r} is not an address of this computer ({error.strerror or error}). Use {LOCAL[0]}."
        ) from None


def _serve(host: str, port: int, guard: RequestGuard) -> Any:
    try:
        import viser
    except ImportError:
        raise SettingsError(
            "The viewer needs viser, which is not installed. Install it: pip install 'borelli[view]'"
        ) from None
    with guarding(guard):
        server = viser.ViserServer(host=host, port=port, label="borelli", verbose=False)
    if not refuses_foreign_host(ANY_HOSTS.get(host, host), server.get_port()):
        server.stop()
        raise SettingsError(
            f"The viewer cannot check requests with viser {viser.__version__}. Install it again: "
            "pip install 'borelli[view]'"
        )
    return server


def _kinetic_energy(result: Any) -> Any:
    """Return the kinetic energy [J] in every frame, if the result has one."""
    data = getattr(result, "data", result)
    return data["kinetic_energy"].values if "kinetic_energy" in getattr(data, "variables", ()) else None


def _add_bodies(server: Any, posed: PosedModel) -> list[Any]:
    """Add every body to the scene and return one movable frame for each."""
    model = posed.model
    colors = body_colors(model)
    server.scene.set_up_direction("+z")
    handles = []
    for body in model.bodies:
        handles.append(server.scene.add_frame(f"/bodies/{body.name}", show_axes=False))
        mesh = join([shape_mesh(shape) for shape in body.shapes or (Shape("sphere", (DOT_RADIUS,)),)])
        color = tuple(int(255 * c) for c in colors[body.name])
        server.scene.add_mesh_simple(f"/bodies/{body.name}/shape", mesh.vertices, mesh.triangles, color=color)
    for index, shape in enumerate(model.ground):
        name = f"/ground/{index}"
        if shape.kind == "plane":
            server.scene.add_grid(name, wxyz=shape.frame.orientation, position=shape.frame.position, **GRID)
        else:
            mesh = shape_mesh(shape)
            color = tuple(int(255 * c) for c in GROUND_COLOR)
            server.scene.add_mesh_simple(name, mesh.vertices, mesh.triangles, color=color)
    _aim(server, posed)
    return handles


def _add_muscles(server: Any, posed: PosedModel) -> Any:
    """Add the muscles of the first frame to the scene; None if there are none."""
    if posed.muscles is None:
        return None
    points, colors = _muscle_segments(posed, 0)
    return server.scene.add_line_segments("/muscles", points, colors, line_width=MUSCLE_WIDTH)


def _muscle_segments(posed: PosedModel, frame: int) -> tuple[Any, Any]:
    """Return the pieces (pieces, 2, 3) [m] of muscle paths in one frame, and the colors of their ends, 0 to 255."""
    assert posed.muscles is not None
    points, owner = posed.muscles.segments(frame)
    colors = np.rint(255 * posed.muscles.colors(frame)).astype(np.uint8)[owner]
    return points.astype(np.float32), np.repeat(colors[:, None], 2, axis=1)


def _aim(server: Any, posed: PosedModel) -> None:
    """Point the camera of every new client at the motion."""
    low, high = np.nanmin(posed.position, axis=(0, 1)), np.nanmax(posed.position, axis=(0, 1))
    center = (low + high) / 2
    distance = 0.6 + 1.0 * float(np.linalg.norm(high - low))

    def aim(client: Any) -> None:
        # setting the position moves the target, so the target comes last
        client.camera.position = center + distance * np.array([0.45, -0.84, 0.30])
        client.camera.look_at = center

    server.on_client_connect(aim)


def _set_poses(bodies: list[Any], posed: PosedModel, frame: int) -> None:
    for body, position, orientation in zip(bodies, posed.position[frame], posed.orientation[frame], strict=True):
        body.visible = bool(np.isfinite(position).all())
        if body.visible:
            body.position, body.wxyz = position, orientation


def _add_controls(viewer: BrowserViewer, posed: PosedModel, bodies: list[Any], muscles: Any, energy: Any) -> None:
    """Add a time slider, play and speed; a thread moves the slider while playing."""
    server, clock = viewer.server, posed.time
    step = max(float(clock[-1] - clock[0]) / 2000, 1e-4)
    slider = server.gui.add_slider("time [s]", float(clock[0]), float(clock[-1]), step, float(clock[0]))
    playing = server.gui.add_checkbox("play", True)
    speed = server.gui.add_slider("speed", 0.05, 2.0, 0.05, 1.0)
    readout = server.gui.add_markdown("")

    def update(now: float) -> None:
        frame = posed.nearest_frame(now)
        with server.atomic():
            _set_poses(bodies, posed, frame)
            if muscles is not None:
                muscles.points, muscles.colors = _muscle_segments(posed, frame)
        if energy is not None:
            readout.content = f"kinetic energy {energy[frame]:.3g} J"

    slider.on_update(lambda _: update(slider.value))

    def play() -> None:
        while not viewer.stopped.wait(UPDATE_INTERVAL):
            if playing.value:
                now = slider.value + UPDATE_INTERVAL * speed.value
                slider.value = float(clock[0]) if now > clock[-1] else now

    update(float(clock[0]))
    threading.Thread(target=play, daemon=True, name="borelli-playback").start()
