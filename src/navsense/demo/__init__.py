"""The demo: a quadrotor and a compass, simulated into a folder with recordings, a report and a picture.

    import navsense as ns
    from navsense.demo import QUADROTOR
    run = ns.simulate(ns.load(QUADROTOR), duration=30.0, seed=7)

`navsense demo` calls `write_demo`. The world files are part of the package.
"""

from navsense.demo.files import COMPASS, QUADROTOR, DemoFile, write_demo

__all__ = ["COMPASS", "QUADROTOR", "DemoFile", "write_demo"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
