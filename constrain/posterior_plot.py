"""The picture of a posterior: how even the particles' weights were, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import BackendError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from constrain.posterior import Posterior

_WIDTH, _HEIGHT = 7.0, 4.5  # inches


def draw(posterior: Posterior) -> Figure:
    """Draw effective sample size and weights over the steps; see `Posterior.plot`."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise BackendError(
            f"Pictures are drawn by matplotlib ({error}): pip install 'constrain-lm[plot]'"
        ) from error
    weights = posterior.weight_history
    n_steps, n_particles = weights.shape
    # A figure of its own, without pyplot: no state that is shared, and no window.
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    steps = np.arange(1, n_steps + 1)
    above.plot(steps, posterior.effective_sizes, color="tab:blue", marker=".", label="effective sample size")
    above.axhline(n_particles, color="grey", linewidth=0.8, linestyle=":", label="particles")
    for place, step in enumerate(posterior.resampled_at):
        label = "resampled" if place == 0 else None
        above.axvline(step + 1, color="tab:orange", linewidth=0.8, linestyle="--", label=label)
    above.set(ylabel="particles", ylim=(0.0, 1.08 * n_particles))
    above.legend(loc="lower left", fontsize="small")
    # Cells are centred on their step and particle.
    image = below.pcolormesh(
        np.arange(n_steps + 1) + 0.5,
        np.arange(n_particles + 1) + 0.5,
        weights.T,
        vmin=0.0,
        cmap="viridis",
    )
    below.set(xlabel="step (tokens)", ylabel="particle")
    for axis in (below.xaxis, below.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=below, label="weight")
    return figure
