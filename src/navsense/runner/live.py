"""`live`: a live run of a world, with motions from arguments or files, and with outputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from navsense import recordings
from navsense.core import inputs
from navsense.core.errors import SimulationError
from navsense.core.names import resolve_name
from navsense.core.random_streams import check_run
from navsense.messages.schemas import DEFAULT_DISTRIBUTION
from navsense.motion.base import Motion
from navsense.motion.driven import DrivenMotion, State
from navsense.runner.follow import LiveMotions, begin_motions, compute_memory, open_followers
from navsense.runner.motion_sources import JointSource, MotionSource, load_logs, split_motions
from navsense.runner.outputs import Outputs, OutputTarget, check_outputs
from navsense.runner.run import check_follows
from navsense.sensors.base import get_max_age
from navsense.simulation.fidelity import apply_fidelity
from navsense.simulation.live_run import LiveRun
from navsense.simulation.motions import replace_joint_tracks
from navsense.simulation.run_controls import RunControls
from navsense.simulation.session import TRUTH_RATE, prepare
from navsense.world import Model, World


def live(
    world: World,
    *,
    seed: int = 0,
    run: int = 0,
    motion: MotionSource | Mapping[str, MotionSource] | None = None,
    joints: JointSource | None = None,
    driven: Mapping[str, State] | Sequence[str] | None = None,
    fidelity: str | None = None,
    epoch: int = 0,
    publish: OutputTarget | Sequence[OutputTarget] = (),
    truth_rate: float = TRUTH_RATE,
    ros: str = DEFAULT_DISTRIBUTION,
) -> LiveRun:
    """Open a live run; without caller input it equals `simulate` with the same arguments to the last bit.

    motion: as for `simulate`, or the URL of a live system. A step then waits for the states up to its end, so the live
        system sets the pace. The first step ends after the first states, at t of their clock since a whole second.
    driven: the models and links whose state the caller gives at each step, as names or with their states at t = 0.
        These states supply the missing fields of the first step. A model is driven by its canonical link.
    publish: the URL of a stream, the path of a recording, or several of them. They get the samples, the truth and the
        current of each step. Streams are sent to at the pace of the caller: the run does not wait for real time.
        `live` waits for the first subscriber of each stream, for the time that its URL gives. A failed output is
        logged and the others go on; `close` raises its error.
    truth_rate, ros: of the outputs, as for `record`.

    Close a run with outputs: `with navsense.live(...) as sim`, or `sim.close()`. After an exception the outputs keep
    what was published.

    Other arguments as for `simulate`. Raises `SimulationError`, `MotionError`, `UnknownNameError`, and `RecordingError`
    for an output that cannot be opened.

    >>> sim = ns.live(world, seed=7)
    >>> for step in sim:
    ...     if step.time >= 0.1:
    ...         break
    >>> step.readings["imu"]["angular_velocity"].shape
    (1, 3)
    >>> sim.sensor("compass").get("field").shape
    (3,)
    >>> with ns.live(world, seed=7, publish="flight.mcap") as sim:
    ...     for _ in range(100):
    ...         step = sim.step()
    >>> step.time, ns.open("flight.mcap")["imu"].time.size
    (0.099, 100)
    """
    targets = _list_outputs(publish)
    world = apply_fidelity(world, fidelity)
    # No output may replace an input. Live systems are disconnected before outputs close.
    with inputs.collect_inputs(world.sources), ExitStack() as stack, ExitStack() as connections:
        files, urls = split_motions(world, motion)
        check_follows(urls, speed=None, epoch=epoch)
        motions, tracks = load_logs(world, files or None, joints)
        world = replace_joint_tracks(world, tracks)
        check_outputs(targets, world)
        driven_motions, driven_links = _make_driven_motions(world, driven, motions)
        followers = open_followers(world, urls, connections)
        session = prepare(
            world,
            None,
            seed=seed,
            runs=(check_run(run),),
            epoch=begin_motions(followers) if followers else epoch,
            motions=motions | {follower.model: follower.motion for follower in followers},
            driven_links=driven_links,
            truth_rate=truth_rate,
            live=True,
        )
        outputs, controls = None, None
        if targets:
            controls = RunControls(session)
            outputs = Outputs(
                targets,
                recordings.make_recorded_run(session, ros=ros),
                waits=not followers,
                joins_slices=True,
                needs_output=False,  # the caller uses the readings
                controls=controls,
            )
            stack.callback(outputs.salvage)
        live_motions = LiveMotions(followers, connections.pop_all(), compute_memory(world)) if followers else None
        live_run = LiveRun(session, driven_motions, outputs, controls, live_motions)
        stack.pop_all()  # the run closes all of it
        return live_run


def _list_outputs(publish: OutputTarget | Sequence[OutputTarget]) -> tuple[OutputTarget, ...]:
    """Return the outputs in the argument `publish`. Raises `SimulationError` for another type."""
    outputs = (publish,) if isinstance(publish, str | os.PathLike) else publish
    if not isinstance(outputs, Sequence) or not all(isinstance(output, str | os.PathLike) for output in outputs):
        allowed, remedy = "must be URLs of streams and paths of recordings", 'write publish=["foxglove://", "run.mcap"]'
        raise SimulationError("publish", repr(publish), allowed=allowed, remedy=remedy)
    return tuple(outputs)


def _make_driven_motions(
    world: World, driven: Mapping[str, State] | Sequence[str] | None, motions: dict[str, Motion]
) -> tuple[dict[str, DrivenMotion], dict[str, Motion]]:
    """Return the motions of driven models and links by name, and those of driven links. `motions` gets the models."""
    memory = max((get_max_age(sensor.spec) for sensor in world.sensors), default=0.0)
    driven_motions: dict[str, DrivenMotion] = {}
    driven_links = dict[str, Motion]()
    for name, model, link, state in list_driven_frames(world, driven):
        start = State(model.pose @ model.link(link).pose) if state is None else state
        driven_motions[name] = DrivenMotion(start, memory, name)
        if link == model.canonical_link:
            motions[model.name] = driven_motions[name]
        else:
            driven_links[link] = driven_motions[name]
    _check_joints(world, driven_links)
    return driven_motions, driven_links


def _check_joints(world: World, driven_links: Mapping[str, Motion]) -> None:
    """Raise `SimulationError` for a track of a joint that moves driven links only: their states replace it."""
    for model in world.models:
        moved: dict[str, list[str]] = {}
        for link, path in model.joint_paths.items():
            for joint, _ in path:
                moved.setdefault(joint.name, []).append(link)
        for name, links in moved.items():
            if all(link in driven_links for link in links):
                allowed = f"moves only links of driven=: {', '.join(links)}"
                remedy = "omit the track of the joint, or do not drive these links"
                raise SimulationError("joint", name, allowed=allowed, remedy=remedy)


def list_driven_frames(
    world: World, driven: Mapping[str, State] | Sequence[str] | None
) -> Iterator[tuple[str, Model, str, State | None]]:
    """Yield the name of each driven model or link, its model, the link and its state at t = 0, None for the file's.

    Raises `UnknownNameError`, and `SimulationError` for a static model or one link under two names.
    """
    names = (driven,) if isinstance(driven, str) else driven or ()
    if not isinstance(names, Iterable):
        allowed, remedy = "must be names of models and links, or their states", 'write driven=["robot"]'
        raise SimulationError("driven", repr(driven), allowed=allowed, remedy=remedy)
    links = {link.name: (model, link.name) for model in world.models for link in model.links}
    models = {model.name: (model, model.canonical_link) for model in world.models if model.links}
    frames, driven_links = {**links, **models}, set[str]()
    for name in names:
        full = resolve_name(name, (*models, *links), "driven model or link")
        model, link = frames[full]
        if link in driven_links:
            remedy = "drive it by one name"
            raise SimulationError("driven", full, allowed=f"is a second name of {link}", remedy=remedy)
        if model.static:
            remedy = "set <static> to false in the file"
            raise SimulationError("driven", full, allowed="must not be part of a static model", remedy=remedy)
        driven_links.add(link)
        yield full, model, link, driven[name] if isinstance(driven, Mapping) else None
