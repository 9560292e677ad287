"""Camera: a trigger. It publishes its intrinsics at the instants of its images, and no image.

    K = [fx  0 cx]     P = [fx'  0 cx' tx]     fx = fy = width / (2 tan(fov / 2))
        [ 0 fy cy]         [  0 fy' cy' ty]    cx = width / 2,  cy = height / 2
        [ 0  0  1]         [  0   0   1  0]

K are the intrinsics of the raw image, P those of the rectified image. The two formulas on the right are those of a
pinhole with square pixels and a horizontal field of view; given intrinsics replace them. The second camera of a stereo
pair has tx = -fx' B with its baseline B (m). A camera has no random process: its instants, its clock, its latency and
its faults are those of any sensor. Intrinsics of zero mean a camera that is not calibrated, as in ROS.
Sources: `sensor_msgs/CameraInfo` of ROS; gz-sensors, `CameraSensor`; gz-rendering, `projectionToCameraIntrinsic`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.random_streams import RandomProcess
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.validation import MAX_MAGNITUDE, check_numbers, validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.specification import Noise
from navsense.sensors.base import Measurement, Output, repeat_rows

MAX_PIXELS = 2**32 - 1
"""Largest width and height: messages have 32 bits."""

DEFAULT_FIELD_OF_VIEW, DEFAULT_WIDTH, DEFAULT_HEIGHT = 1.047, 320, 240
"""SDF's defaults: horizontal field of view (rad), width and height (px)."""


@dataclass(frozen=True)
class CameraIntrinsics:
    """The focal lengths and the principal point of a camera (px). All zero: not calibrated.

    Raises `SensorError` for a number that is not finite.

    >>> ns.sensors.CameraIntrinsics.from_field_of_view(1.047, 320, 240).cx
    160.0
    """

    fx: float = 277.0
    fy: float = 277.0
    cx: float = 160.0
    cy: float = 120.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("fx", "fy", "cx", "cy"):
            object.__setattr__(self, name, *check_numbers(f"{name} of a camera (px)", (vars(self)[name],), 1))

    @classmethod
    def from_field_of_view(cls, horizontal_fov: float, width: int, height: int) -> CameraIntrinsics:
        """Return the intrinsics of a pinhole with square pixels.

            fx = fy = width / (2 tan(horizontal_fov / 2)),  cx = width / 2,  cy = height / 2

        horizontal_fov: rad. No pinhole has pi or more; the intrinsics are then unknown (zero).
        width, height: px.

        Raises `SensorError` for a field of view that is not above 0, or so small that no focal length is.
        """
        (view,) = check_numbers("horizontal_fov (rad)", (horizontal_fov,), 1)
        if view <= 0.0:
            raise SensorError("horizontal_fov (rad)", view, allowed="must be > 0", field="horizontal_fov")
        if view >= math.pi:
            return UNKNOWN_INTRINSICS
        tangent = math.tan(0.5 * view)
        focal_length = width / (2.0 * tangent) if tangent > 0.0 else math.inf
        if focal_length >= MAX_MAGNITUDE:
            allowed = f"must give a focal length below {MAX_MAGNITUDE:g} px for a width of {width:g} px"
            raise SensorError("horizontal_fov (rad)", view, allowed=allowed, field="horizontal_fov")
        return cls(focal_length, focal_length, 0.5 * width, 0.5 * height)

    @property
    def is_known(self) -> bool:
        """True if the camera is calibrated."""
        return self.fx != 0.0


UNKNOWN_INTRINSICS = CameraIntrinsics(0.0, 0.0, 0.0, 0.0)
"""Intrinsics of a camera that is not calibrated."""


@dataclass(frozen=True)
class CameraProjection:
    """The left part of the projection matrix P and its last column (px); for one camera of a stereo pair.

    fx, fy, cx, cy: focal lengths and principal point of the rectified image.
    tx, ty: the last column. The second camera of a horizontal pair has tx = -fx B with its baseline B (m).

    Raises `SensorError` for a number that is not finite.

    >>> ns.sensors.CameraProjection(fx=300.0, fy=300.0, cx=160.0, cy=120.0, tx=-300.0 * 0.12)
    CameraProjection(fx=300.0, fy=300.0, tx=-36.0)
    """

    fx: float = field(default=277.0, metadata=in_file("p_fx"))
    fy: float = field(default=277.0, metadata=in_file("p_fy"))
    cx: float = field(default=160.0, metadata=in_file("p_cx"))
    cy: float = field(default=120.0, metadata=in_file("p_cy"))
    tx: float = 0.0
    ty: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("fx", "fy", "cx", "cy", "tx", "ty"):
            object.__setattr__(self, name, *check_numbers(f"{name} of a projection (px)", (vars(self)[name],), 1))


@dataclass(frozen=True)
class LensDistortion:
    """The plumb-bob model of a lens: radial coefficients k1, k2, k3 and tangential coefficients p1, p2.

    Raises `SensorError` for a number that is not finite.

    >>> ns.sensors.LensDistortion(k1=-0.25, k2=0.12).k1
    -0.25
    """

    k1: float = 0.0
    k2: float = 0.0
    k3: float = 0.0
    p1: float = 0.0
    p2: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("k1", "k2", "k3", "p1", "p2"):
            object.__setattr__(self, name, *check_numbers(f"{name} of a distortion", (vars(self)[name],), 1))

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The coefficients in the order of messages: k1, k2, p1, p2, k3."""
        return (self.k1, self.k2, self.p1, self.p2, self.k3)


NO_DISTORTION = LensDistortion()
"""A lens without distortion."""


@dataclass(frozen=True)
class Camera:
    """Specification of a camera that is simulated as a trigger.

    width, height: size of the image, px.
    intrinsics: focal lengths and principal point of the raw image, px. None: those of SDF's default view.
    distortion: the lens.
    projection: the projection matrix; None: the intrinsics, without a last column.

    Raises `SensorError` for an empty or too large image.

    >>> camera = ns.sensors.Camera.from_field_of_view(1.5, 640, 480)
    >>> round(camera.effective_intrinsics.fx, 3)  # 640 / (2 tan 0.75)
    343.496
    """

    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT
    intrinsics: CameraIntrinsics | None = None
    distortion: LensDistortion = NO_DISTORTION
    projection: CameraProjection | None = None

    type: ClassVar[str] = "camera"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "all"
    invariance_tolerance: ClassVar[float] = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the size."""
        validate_types(self)
        for name, value in (("width", self.width), ("height", self.height)):
            if not 1 <= value <= MAX_PIXELS:
                allowed = f"must be from 1 to {MAX_PIXELS}"
                raise SensorError(f"{name} of a camera (px)", value, allowed=allowed, field=name)
        object.__setattr__(self, "intrinsics", self.effective_intrinsics)  # files have the numbers

    @classmethod
    def from_field_of_view(
        cls,
        horizontal_fov: float = DEFAULT_FIELD_OF_VIEW,
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        distortion: LensDistortion = NO_DISTORTION,
    ) -> Camera:
        """Return a pinhole camera with square pixels, see `CameraIntrinsics.from_field_of_view`.

        horizontal_fov: rad. width, height: px.

        Raises `SensorError`.
        """
        return cls(width, height, CameraIntrinsics.from_field_of_view(horizontal_fov, width, height), distortion)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading: K (n, 3, 3), P (n, 3, 4), coefficients k1 k2 p1 p2 k3 (n, 5), size (n, 2)."""
        return (
            Output("intrinsic_matrix", (3, 3), "px"),
            Output("projection_matrix", (3, 4), "px"),
            Output("distortion", 5, "1"),
            Output("image_size", 2, "px"),
        )

    @property
    def effective_intrinsics(self) -> CameraIntrinsics:
        """The intrinsics in force."""
        if self.intrinsics is not None:
            return self.intrinsics
        return CameraIntrinsics.from_field_of_view(DEFAULT_FIELD_OF_VIEW, self.width, self.height)

    @property
    def effective_projection(self) -> CameraProjection:
        """The projection in force."""
        k = self.effective_intrinsics
        return self.projection or CameraProjection(k.fx, k.fy, k.cx, k.cy)

    @property
    def is_second_of_pair(self) -> bool:
        """True for the second camera of a stereo pair, whose messages are in the frame of the first one."""
        return self.effective_projection.tx != 0.0 or self.effective_projection.ty != 0.0

    @cached_property
    def _rows(self) -> Mapping[str, FloatArray]:
        """The constant arrays."""
        k, p = self.effective_intrinsics, self.effective_projection
        rows = {
            "intrinsic_matrix": [[k.fx, 0.0, k.cx], [0.0, k.fy, k.cy], [0.0, 0.0, float(k.is_known)]],
            "projection_matrix": [
                [p.fx, 0.0, p.cx, p.tx],
                [0.0, p.fy, p.cy, p.ty],
                [0.0, 0.0, float(p.fx != 0.0), 0.0],
            ],
            "distortion": self.distortion.coefficients,
            "image_size": (float(self.width), float(self.height)),
        }
        return {name: np.array(row) for name, row in rows.items()}

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return the size of the image and the intrinsics."""
        k, p = self.effective_intrinsics, self.projection
        size = f"image: {self.width} x {self.height} px, not rendered"
        lines = [size, f"intrinsics: fx {k.fx:g}, fy {k.fy:g}, cx {k.cx:g}, cy {k.cy:g} px" if k.is_known else UNKNOWN]
        if any(self.distortion.coefficients):
            names = ("k1", "k2", "k3", "p1", "p2")
            lines.append("distortion: " + ", ".join(f"{name} {vars(self.distortion)[name]:g}" for name in names))
        if p is not None:
            lines.append(f"projection: fx {p.fx:g}, fy {p.fy:g}, cx {p.cx:g}, cy {p.cy:g}, tx {p.tx:g}, ty {p.ty:g} px")
        return tuple(lines)

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return no noise."""
        return {}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return no random process."""
        return ()

    def init(self, draws: FloatArray) -> None:
        """Return no state."""

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the arrays of `outputs`, which do not depend on the motion and the environment."""
        return repeat_rows(self._rows, len(ticks))

    def measure(
        self, state: None, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[None, Measurement]:
        """Return the ideal arrays: a camera has no error."""
        return None, Measurement({output.name: ideal[output.name] for output in self.outputs}, {})

    def without_errors(self) -> Camera:
        """Return the same spec."""
        return self

    @classmethod
    def example_spec(cls) -> Camera:
        """Return a spec in which every field is active: the right camera of a stereo pair."""
        lens = LensDistortion(-0.28, 0.07, -0.01, 2e-4, -1e-4)
        projection = CameraProjection(436.2, 436.2, 364.4, 256.9, tx=-47.98, ty=0.5)
        return cls(752, 480, CameraIntrinsics(457.6, 456.1, 379.9, 255.2), lens, projection)


UNKNOWN = "intrinsics: unknown"
"""Line of the description of a camera that is not calibrated."""
