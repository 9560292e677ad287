"""How far a calibration can be trusted: what the motion leaves open, and whether the residuals are white.

**Weakest combination.** With the parameters as fractions of the field's strength (bias / scale, ln scale, the direction
in rad, the soft iron's entries), the largest standard deviation among all combinations is the error that the calibrated
field may have, as a fraction of the field or as an angle in rad. Above `HOPELESS`, 6 degrees for one deviation, a
calibration is refused; above `POOR`, 0.6 degrees, it is given with a verdict that is not ok.

**Whiteness.** Residuals in time order are added up in blocks of 8^k samples. For white ones

    V_k = variance of the block sums / (8^k variance of a residual)

is 1, with chi-squared/n of n (1 - 8^-k)^-1 degrees of freedom for n block sums (those within the variance of the single
residual left out: Lo and MacKinlay 1988, variance ratio). Where it exceeds the quantile of `FALSE_ALARM` the residuals
hang together: drift, disturbances, a lag of the attitude, soft iron left out. No combination of the parameters has more
than the largest V_k times the variance that white residuals would give it (the peak of the residuals' spectrum against
its mean): the covariance is multiplied by it. Where the longest blocks have the largest, the peak is beyond what the
record shows, and V_k is taken to grow once more as it did last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from navsense.typing import FloatArray

FALSE_ALARM: Final = 1e-6
"""Probability that white residuals are taken for others."""

HOPELESS: Final = 0.1
"""Standard deviation of a combination, of the field, above which nothing is given."""

POOR: Final = 0.01
"""Above which the verdict is not ok."""

COLOURED: Final = 1.1
"""Inflation above which correlated residuals are a reason: 5 percent in a standard deviation."""

FEWEST_BLOCKS: Final = 12
"""Blocks from which their variance is looked at."""

STEP: Final = 8
"""Factor from one length of blocks to the next."""

LEVELS: Final = 12
"""Lengths of blocks, 8^1 to 8^12."""


@dataclass(frozen=True)
class Whiteness:
    """Whether residuals are white; what their correlation multiplies the covariance by; samples that hang together."""

    white: bool = True
    inflation: float = 1.0
    span: int = 1


@dataclass(frozen=True)
class Verdict:
    """What a calibration is worth.

    `weakest` is the largest standard deviation of any combination of the parameters, as a fraction of the field;
    `explained` the share of the readings' variance that the calibrated model explains; `whiteness` that of the
    residuals; `reasons` say what is wrong and what to do, none where all is well.
    """

    weakest: float
    explained: float
    whiteness: Whiteness = Whiteness()
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True where nothing speaks against the calibration."""
        return not self.reasons

    def __str__(self) -> str:
        """Say it on one line, or with one more for each reason."""
        head = "ok" if self.ok else "poor"
        lines = [
            f"{head}: known to {100.0 * self.weakest:.2g} % of the field, {100.0 * self.explained:.4g} % explained"
        ]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def weakness(deviation: float, remedy: str) -> tuple[str, ...]:
    """Return the reason that a weakest combination's deviation (of the field) is, none where it is small enough."""
    if deviation <= POOR:
        return ()
    return (f"known to {100.0 * deviation:.2g} % of the field only, more than {100.0 * POOR:g} %: {remedy}",)


def correlation(whiteness: Whiteness) -> tuple[str, ...]:
    """Return the reason that correlated residuals are, none where they are white or nearly so."""
    if whiteness.inflation <= COLOURED:
        return ()
    reason = (
        f"residuals hang together over some {whiteness.span} samples, the covariance was multiplied by"
        f" {whiteness.inflation:.3g}: look for drift, iron or currents nearby that move, a lag between the sensors,"
        " soft iron left out"
    )
    return (reason,)


def whiteness(ratio: Sequence[float] | FloatArray, count: Sequence[int], axes: int) -> Whiteness:
    """Return the verdict on residuals from V_k (k,) for k = 1, 2, ... and how many blocks each is from.

    `axes` is how many residuals a sample has. Levels of less than 12 blocks are left out.
    """
    from scipy.special import chdtri

    looked = [k for k, blocks in enumerate(count) if blocks >= FEWEST_BLOCKS]
    result = Whiteness()
    for k in looked:
        freedom = axes * count[k] / (1.0 - float(STEP) ** -(k + 1))
        limit = float(chdtri(freedom, FALSE_ALARM / len(looked))) / freedom
        if ratio[k] > limit and ratio[k] > result.inflation:
            growth = ratio[k] / (ratio[k - 1] if k else 1.0) if k == looked[-1] else 1.0
            result = Whiteness(white=False, inflation=float(ratio[k] * max(growth, 1.0)), span=STEP ** (k + 1))
    return result
