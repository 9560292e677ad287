"""Three gliders from one model file, read by `<include>`. One of them measures the field of the wreck.

python examples/fleet.py
navsense run examples/fleet.sdf --path examples/models --duration 10 -o fleet.mcap
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import outputs

import navsense as ns

HERE = Path(__file__).parent


def main() -> None:
    """Compare the field strength of each glider with that of the distant one."""
    world = ns.load(HERE / "fleet.sdf", path=HERE / "models")
    run = ns.simulate(world, duration=10.0, seed=7)
    readings = {model.name: run[f"{model.name}::hull::compass"] for model in world.models}
    fields = {name: 1e9 * np.linalg.norm(reading["field"], axis=1) for name, reading in readings.items()}
    strength = {name: 1e-9 * field.mean() for name, field in fields.items()}
    for name, field in strength.items():
        difference = field - strength["afar"]
        print(f"{name:>7}: {field * 1e9:.0f} nT, {difference * 1e9:+.0f} nT more than at the distant glider")
    assert world.model("above").pose.position == (-1.0, 0.0, 10.0)  # its nose is above the wreck
    assert abs(strength["above"] - strength["afar"]) > 300e-9
    assert abs(strength["beside"] - strength["afar"]) < 20e-9

    def draw(axes: Any) -> None:
        for name, reading in readings.items():
            axes.plot(reading.time, fields[name], label=name)
        outputs.label(axes, "Field strength at three gliders", "time (s)", "field strength (nT)")
        axes.ticklabel_format(useOffset=False)

    time = readings["afar"].time
    outputs.write("fleet", {"time (s)": time, **{f"{name} (nT)": field for name, field in fields.items()}}, draw)


if __name__ == "__main__":
    main()
