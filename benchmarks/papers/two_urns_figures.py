"""Obermeyer, Glidden and Jonas (AISTATS 2014), section 3: Figures 1 and 2, Lemmas 1 and 3, Theorems
2 and 4, on their two urns. Only Figure 2's end states and Lemma 1's single steps are drawn at
random; the theorems come from exact laws."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from scipy.ndimage import gaussian_filter

from papers import two_urns as urns_of
from papers import two_urns_theorems as theorems
from papers.cells import Cell, judged, of_figure, shown
from papers.two_urns import BINS, SAMPLERS, URNS
from papers.two_urns_theorems import Urns, total_variation
from papers.verdicts import Estimate, all_of, deviation, difference, exact, is_about, is_positive

NAME = "two_urns"
SAMPLES, BLOCKS = 100_000, 10  # per cell of Figure 2; ten cells are the paper's million
SIZES = (50, 100, 200, 400, 800, 1600)
RESAMPLES = 20  # for the error of a total variation
EPSILONS = (0.1, 0.05, 0.02)
HALVED = tuple(0.1 / 2**k for k in range(6))  # epsilon, where log(1/epsilon) is looked for
FEW = (20, 40, 60, 80, 100)  # balls, where all eigenvectors can be had
SHARES = (0.2, 0.5, 0.8)  # of red and of blue balls on the left, Lemma 1
CONCENTRATION = 0.001  # alpha / N, which Lemma 1 holds fixed
BARRIERS = ((0.1, 0.05), (0.1, 0.1), (0.1, 0.2), (0.2, 0.2), (0.05, 0.1))  # delta, gamma
SMALL = tuple(10.0**-k for k in range(1, 7))  # epsilon, Theorem 4
LARGE = (400, 800, 1600)  # balls, Theorem 4: more than log(2 / epsilon) / gamma
STEPS = 1_000_000  # simulated from each state, Lemma 1

DATA = f"{URNS.n_red} red, {URNS.n_blue} blue"


def cells():
    """Exact laws of few balls first, then draws, then exact laws of many balls."""
    yield from (Cell("lemma1", f"N={n}", "steps") for n in (50, 100, 1000, 10_000))
    for delta, gamma in BARRIERS:
        yield Cell("theorem4_equation", f"delta={delta} gamma={gamma}", "exact")
    yield from (Cell("theorem4_urns", f"N={n}", "cold") for n in FEW)
    yield from (Cell("theorem4_urns", f"N={n}", "anneal") for n in (*FEW, *SIZES[2:5]))
    yield from (Cell("selection", f"N={n}", "anneal") for n in (50, 100, 200))
    for n in (100, 200):
        yield from (Cell("theorem2_epsilon", f"N={n}", way) for way in ("cold", "anneal"))
    few, many = SIZES[:-1], SIZES[-1:]
    yield from (Cell("theorem2", f"N={n}", way) for n in few for way in ("cold", "anneal"))
    for block in range(3):
        yield from (Cell("figure2", DATA, strategy, block) for strategy in SAMPLERS)
    yield from (Cell("theorem2", f"N={n}", way) for n in many for way in ("cold", "anneal"))
    for block in range(3, BLOCKS):
        yield from (Cell("figure2", DATA, strategy, block) for strategy in SAMPLERS)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured: as the others of its figure."""
    return typical


def number(cell):
    """The N of "N=100"."""
    return int(cell.data.removeprefix("N="))


def balls(n, **options):
    """Two fifths of n balls are red."""
    return Urns(2 * n // 5, n - 2 * n // 5, **options)


# -- measuring -------------------------------------------------------------------------------------


def measure(cell):
    """By the figure."""
    return globals()[f"measure_{cell.figure}"](cell)


def measure_figure2(cell):
    """How many end states lie in each bin, empty bins left out."""
    states = urns_of.draw(urns_of.compiled(), cell.method, SAMPLES, cell.seed)
    bins, counts = np.unique(urns_of.bin_of(states), return_counts=True)
    return {"samples": SAMPLES, "bins": bins.tolist(), "counts": counts.tolist()}


def measure_lemma1(cell):
    """Moments of a step from nine states: in the limit, exact at this N, and simulated."""
    n = number(cell)
    urns, rng = balls(n, a=CONCENTRATION * n), np.random.default_rng([1, n])
    states = []
    for x in SHARES:
        for y in SHARES:
            at = round(x * urns.n_red), round(y * urns.n_blue)
            shares = at[0] / urns.n_red, at[1] / urns.n_blue
            limit = theorems.limit_moments(0.4, urns.p, CONCENTRATION, *shares)
            step = theorems.step_moments(urns_of.compiled(), urns, *at)
            found = theorems.simulated_moments(urns, *at, STEPS, rng)
            states.append({"limit": limit, "exact": step, "simulated": found})
    return {"states": states}


def measure_theorem2(cell):
    """Assignments until the total variation is each epsilon."""
    times = theorems.cold_times if cell.method == "cold" else theorems.anneal_times
    return {"times": times(urns_of.compiled(), balls(number(cell)), EPSILONS)}


def measure_theorem2_epsilon(cell):
    """The same for an epsilon that is halved again and again."""
    urns, library = balls(number(cell)), urns_of.compiled()
    if cell.method == "cold":
        return {"times": theorems.cold_times(library, urns, HALVED, last=16)}
    return {"times": theorems.anneal_times(library, urns, HALVED)}


def measure_selection(cell):
    """Total variation with balls that enter by colour in turn, and at random."""
    urns = balls(number(cell))
    target = theorems.posterior(urns)
    return {
        f"{selection}, {rate:g} sweeps": float(
            total_variation(law(urns_of.compiled(), urns, rate), target)
        )
        for rate in (5.0, 10.0)
        for selection, law in theorems.SELECTIONS.items()
    }


def measure_theorem4_equation(cell):
    """Times of the two-mode equation to each epsilon, for each N."""
    delta, gamma = (float(part.split("=")[1]) for part in cell.data.split())
    pairs = [[theorems.two_mode_times(n, delta, gamma, e) for e in SMALL] for n in LARGE]
    cold, anneal = np.moveaxis(np.array(pairs), -1, 0)
    return {"delta": delta, "gamma": gamma, "cold": cold.tolist(), "anneal": anneal.tolist()}


def measure_theorem4_urns(cell):
    """Assignments until the total variation is 0.1; cold, also the spectral gap."""
    urns, library = theorems.barrier_urns(number(cell)), urns_of.compiled()
    if cell.method == "cold":
        gap, time = theorems.barrier_cold(library, urns, EPSILONS[0])
        return {"gap": gap, "times": [time]}
    return {"times": theorems.anneal_times(library, urns, EPSILONS[:1])}


# -- Figure 2 --------------------------------------------------------------------------------------


def smooth(mass):
    """By a Gaussian of one bin's width; the exact posterior is smoothed alike."""
    return gaussian_filter(mass, 1.0, mode="reflect")


def counted(records):
    """Of each strategy: how many of the end states of all its cells lie in each bin."""
    found = {}
    for cell, record in of_figure(records, "figure2").items():
        counts = found.setdefault(cell.method, np.zeros(BINS * BINS, dtype=np.int64))
        counts[record["bins"]] += record["counts"]
    return {name: found[name] for name in SAMPLERS if name in found}


def distances(records):
    """Total variation of each strategy, its error found by drawing end states again."""
    target, rng = smooth(urns_of.binned_posterior()), np.random.default_rng(0)

    def distance(counts):
        return float(total_variation(smooth(counts.reshape(BINS, BINS) / counts.sum()), target))

    found = {"prior": exact(total_variation(smooth(urns_of.binned_prior()), target))}
    for name, counts in counted(records).items():
        again = rng.multinomial(counts.sum(), counts / counts.sum(), size=RESAMPLES)
        error = deviation(distance(drawn) for drawn in again)
        found[name] = Estimate(distance(counts), error, RESAMPLES)
    return found


def floor_of(n_samples):
    """What exact samples would show, on average, after smoothing: one simulation of them."""
    exact_mass = urns_of.binned_posterior()
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n_samples, exact_mass.ravel() / exact_mass.sum()) / n_samples
    return float(total_variation(smooth(drawn.reshape(exact_mass.shape)), smooth(exact_mass)))


def figure2_table(records):
    """Total variation by strategy, farthest first."""
    counts, rows = counted(records), []
    for name, distance in sorted(distances(records).items(), key=lambda item: -item[1].mean):
        n = int(counts[name].sum()) if name in counts else None
        drawn = (f"{n:,}", f"{floor_of(n):.4f}") if n else ("exact", "")
        rows.append((name, distance.text(4), *drawn))
    headings = ("strategy", "total variation", "end states", "of as many exact ones")
    return shown(headings, rows, records, "figure2")


def figure2_picture(records):
    """The smoothed densities, farthest from the posterior first."""
    found = distances(records)
    shown = {name: c.reshape(BINS, BINS) / c.sum() for name, c in counted(records).items()}
    shown["prior"] = urns_of.binned_prior()
    order = sorted(shown, key=lambda name: -found[name].mean)
    figure, axes = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained")
    panels = [(name, shown[name]) for name in order] + [("posterior", urns_of.binned_posterior())]
    for ax, (name, mass) in zip(axes.flat, panels, strict=False):
        density = smooth(mass) * mass.size
        image = ax.imshow(
            np.ma.masked_less(density, 0.1).T,  # a tenth of an even spread
            origin="lower",
            extent=(0, 1, 0, 1),
            cmap="magma_r",
            norm=LogNorm(0.1, 500),
        )
        ax.set_title(name, fontsize=10, loc="left")
        note = f"total variation {found[name].mean:.3f}" if name in found else "exact"
        ax.text(0.95, 0.93, note, transform=ax.transAxes, ha="right", va="top", fontsize=9)
        ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.set(xlabel="share of red on the left", ylabel="share of blue on the left")
        ax.label_outer()
    figure.colorbar(image, ax=axes, label="density", shrink=0.8)
    return figure


# -- Figure 1 --------------------------------------------------------------------------------------


def figure1_picture(records):
    """Energies along the ridge of two-feature urns: all data, a power, a subsample."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    n, beta = 200, 0.25
    titles = ("all 200 balls", "simulated annealing, β = 1/4", "subsample annealing, β = 1/4")
    for ax, size, power, title in zip(
        axes, (n, n, int(beta * n)), (1.0, beta, 1.0), titles, strict=True
    ):
        urns = theorems.barrier_urns(size)
        red, blue = np.ogrid[: urns.n_red + 1, : urns.n_blue + 1]
        log_p = theorems.log_posterior(urns, red, blue)
        energy = -power * log_p.max(axis=1)  # of each number of red balls, the best of blue ones
        ax.plot(red.ravel(), energy - energy.min(), color="black", marker=".", markersize=3)
        ax.set_title(title, fontsize=10, loc="left")
        ax.set(xlim=(-2, 62), xlabel="red balls on the left")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("energy above the lowest, nats")
    return figure


# -- lemma and theorems ----------------------------------------------------------------------------


def lemma1_rows(records):
    """Of each N: largest difference from the limit of exact drift and diffusion, and the largest
    difference of simulated from exact moments in standard errors."""
    rows = {}
    for cell, record in of_figure(records, "lemma1").items():
        limit, step = (np.array([s[k] for s in record["states"]]) for k in ("limit", "exact"))
        found = np.array([s["simulated"] for s in record["states"]])
        z = np.abs(found[:, :2] - step) / found[:, 2:]
        rows[number(cell)] = (*np.abs(step - limit).max(axis=0), z.max())
    return dict(sorted(rows.items()))


def lemma1_table(records):
    """Drift and diffusion."""
    rows = [
        (f"{n:,}", f"{drift:.2e}", f"{diffusion:.2e}", f"{z:.1f}")
        for n, (drift, diffusion, z) in lemma1_rows(records).items()
    ]
    headings = ("N", "drift from the limit", "diffusion from the limit", "simulated, largest z")
    return shown(headings, rows, records, "lemma1")


def times_by_size(records, figure, method, which=0):
    """N to the assignments until the total variation is an epsilon."""
    found = of_figure(records, figure)
    times = {number(c): r["times"][which] for c, r in found.items() if c.method == method}
    return dict(sorted(times.items()))


def theorem2_table(records):
    """Assignments per ball by N."""
    rows = []
    for i, epsilon in enumerate(EPSILONS):
        for method in ("cold", "anneal"):
            times = times_by_size(records, "theorem2", method, i)
            per_ball = [f"{times[n] / n:.4g}" if n in times else "" for n in SIZES]
            last = exponent(times)
            rows.append((f"{epsilon:g}", method, *per_ball, f"{last.mean:.2f}"))
    headings = ("epsilon", "", *(f"N = {n}" for n in SIZES), "exponent, last doubling")
    return shown(headings, rows, records, "theorem2")


def exponent(times):
    """Local exponent of N over the last doubling; its error is what it changed by since."""
    slopes = theorems.local_slopes(np.log(list(times)), np.log(list(times.values())))
    return exact(slopes[-1], abs(slopes[-1] - slopes[-2]))


def epsilon_table(records):
    """Assignments per ball while epsilon is halved."""
    rows = [
        (c.data[2:], c.method, *(f"{t / number(c):.4g}" for t in r["times"]))
        for c, r in of_figure(records, "theorem2_epsilon").items()
    ]
    headings = ("N", "", *(f"epsilon {e:.3g}" for e in HALVED))
    return shown(headings, rows, records, "theorem2_epsilon")


def selection_table(records):
    """Stratified and random subsamples."""
    found = of_figure(records, "selection")
    names = [name for name in next(iter(found.values()), {}) if name.endswith("sweeps")]
    rows = [(c.data[2:], *(f"{r[name]:.4f}" for name in names)) for c, r in found.items()]
    return shown(("N", *names), rows, records, "selection")


def power_of_epsilon(record):
    """Exponent of 1/epsilon in T, at the largest N, over the last decade."""
    slopes = theorems.local_slopes(-np.log(SMALL), np.log(record["anneal"][-1]))
    return exact(slopes[-1], abs(slopes[-1] - slopes[-2]))


def theorem4_table(records):
    """The equation over delta, gamma and epsilon."""
    rows = []
    for record in of_figure(records, "theorem4_equation").values():
        cold, anneal = np.log(record["cold"]), np.array(record["anneal"])
        growth = theorems.local_slopes(np.array(LARGE), cold[:, 0])[-1]
        linear = theorems.local_slopes(np.log(LARGE), np.log(anneal[:, 0]))[-1]
        at_last = (f"{anneal[-1, i] / LARGE[-1]:.3g}" for i in (0, 2, 4))
        ratio = record["delta"] / record["gamma"]
        settings = f"{record['delta']:g}", f"{record['gamma']:g}"
        exponents = f"{linear:.3f}", f"{ratio:g}", f"{power_of_epsilon(record).mean:.3f}"
        rows.append((*settings, f"{growth:.4f}", *at_last, *exponents))
    at = (f"T/N, epsilon {SMALL[i]:g}" for i in (0, 2, 4))
    slopes = "exponent of N", "delta / gamma", "exponent of 1/epsilon"
    headings = ("delta", "gamma", "slope of log cold time in N", *at, *slopes)
    return shown(headings, rows, records, "theorem4_equation")


def barrier_table(records):
    """Urns with two features."""
    found = of_figure(records, "theorem4_urns")
    gaps = {number(c): r["gap"] for c, r in found.items() if c.method == "cold"}
    cold, anneal = (times_by_size(records, "theorem4_urns", way) for way in ("cold", "anneal"))
    rows = [
        (
            str(n),
            f"{gaps[n]:.3g}" if n in gaps else "",
            f"{cold[n]:.3g}" if n in cold else "",
            f"{anneal[n]:.4g}",
            f"{anneal[n] / n:.2f}",
        )
        for n in anneal
    ]
    headings = ("N", "spectral gap", "cold", "anneal", "anneal / N")
    return shown(headings, rows, records, "theorem4_urns")


def theorems_picture(records):
    """Assignments against N, cold and annealed: without a barrier and with one."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    styles = {"cold": ("black", "o"), "anneal": ("tab:orange", "s")}
    for method, (color, marker) in styles.items():
        for i, line in enumerate(("-", "--", ":")):
            times = times_by_size(records, "theorem2", method, i)
            label = f"{method}, to {EPSILONS[i]:g}"
            axes[0].loglog(
                list(times), list(times.values()), line, color=color, marker=marker, label=label
            )
        times = times_by_size(records, "theorem4_urns", method)
        axes[1].loglog(list(times), list(times.values()), color=color, marker=marker, label=method)
    axes[0].set_title("one feature: no barrier (Theorem 2)", fontsize=10, loc="left")
    axes[1].set_title("two features: a barrier, to 0.1 (Theorem 4)", fontsize=10, loc="left")
    for ax, sizes in zip(axes, (SIZES, (*FEW[:3], *SIZES[1:5])), strict=True):
        ax.set(xlabel="balls N", ylabel="assignments until the total variation is reached")
        ax.set_xticks(sizes, sizes)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    return figure


# -- verdicts --------------------------------------------------------------------------------------


def claims_of_figure2(records):
    """Claims on the order of total variations."""
    found = distances(records)
    pairs = {
        "gibbs steps after the sequential start help": ("sequential", "sequential + gibbs"),
        "annealing the energy is better than sequential + gibbs": (
            *("sequential + gibbs", "anneal energy"),
        ),
        "annealing on subsamples is better than sequential + gibbs": (
            *("sequential + gibbs", "anneal subsample"),
        ),
        "annealing on subsamples is better than annealing the energy": (
            *("anneal energy", "anneal subsample"),
        ),
    }
    for text, (worse, better) in pairs.items():
        if not {worse, better} <= found.keys():
            continue
        gain = difference(found[worse], found[better])
        yield f"Figure 2: {text}", f"total variation less by {gain.text(4)}", is_positive(gain)
    for name in ("anneal stepsize", "anneal stepsize, by balls"):
        if not {name, "anneal subsample"} <= found.keys():
            continue
        apart = difference(found[name], found["anneal subsample"])
        text = f"Figure 2: {name}: behaves like annealing on subsamples (within 0.02)"
        yield text, f"total variation differs by {apart.text(4)}", is_about(apart, 0.0, 0.02)


def claims_of_theorems(records):
    """Claims on exponents."""
    rows = lemma1_rows(records)
    sizes = np.array(list(rows))
    for i, name in enumerate(("drift", "diffusion")):
        slopes = theorems.local_slopes(np.log(sizes), np.log([row[i] for row in rows.values()]))
        last = exact(slopes[-1], abs(slopes[-1] - slopes[-2]))
        text = f"Lemma 1: scaled, the {name} does not depend on N (differences fall as 1/N)"
        yield text, f"exponent {last.text(2)}", is_about(last, -1.0, 0.1)
    for method, power in (("cold", 2.0), ("anneal", 1.0)):
        for i, epsilon in enumerate(EPSILONS):
            times = times_by_size(records, "theorem2", method, i)
            last = exponent(times)
            text = f"Theorem 2: {method}, total variation {epsilon:g}: time as N^{power:g} "
            text += f"(by N = {max(times)})"
            yield text, f"exponent {last.text(2)}", is_about(last, power, 0.2)
    for cell, record in of_figure(records, "theorem2_epsilon").items():
        steps = np.diff(record["times"])
        ratios = steps[1:] / steps[:-1]
        last = exact(ratios[-1], abs(ratios[-1] - ratios[-2]))
        text = f"Theorem 2: {cell.method}, {cell.data}: time as log(1/epsilon) (each halving adds"
        text += " as much as the one before)"
        yield text, f"{last.text(2)} times as much", is_about(last, 1.0, 0.25)
    found = of_figure(records, "theorem4_equation").values()
    apart = [power_of_epsilon(r) for r in found]
    ratios = [r["delta"] / r["gamma"] for r in found]
    yield (
        "Theorem 4, the equation: annealed time as (1/epsilon)^(delta/gamma)",
        ", ".join(f"{e.mean:.3f} for {r:g}" for e, r in zip(apart, ratios, strict=True)),
        all_of(is_about(e, r, 0.05) for e, r in zip(apart, ratios, strict=True)),
    )
    linear = [
        exact(theorems.local_slopes(np.log(LARGE), np.log(np.array(r["anneal"])[:, i]))[-1])
        for r in found
        for i in range(len(SMALL))
    ]
    yield (
        "Theorem 4, the equation: annealed time as N",
        f"exponents {min(e.mean for e in linear):.3f} to {max(e.mean for e in linear):.3f}",
        all_of(is_about(e, 1.0, 0.02) for e in linear),
    )
    last = exponent(times_by_size(records, "theorem4_urns", "anneal"))
    text = "Theorem 4, urns of two features: annealed time as N"
    yield text, f"exponent {last.text(2)}", is_about(last, 1.0, 0.05)
    cold = times_by_size(records, "theorem4_urns", "cold")
    slopes = theorems.local_slopes(np.array(list(cold)), np.log(list(cold.values())))
    last = exact(slopes[-1], abs(slopes[-1] - slopes[-2]))
    text = "Theorem 4, urns of two features: cold time as exp(N delta)"
    yield text, f"slope of the log {last.text(3)}", is_positive(last)


def verdicts_table(records):
    """Claim by claim."""
    claims = [*claims_of_figure2(records), *claims_of_theorems(records)]
    theorems_of = ("theorem2", "theorem2_epsilon", "theorem4_equation", "theorem4_urns")
    return judged(claims, records, "figure2", "lemma1", *theorems_of)


def tables(records):
    """All tables of the page, by name."""
    return {
        "verdicts": verdicts_table(records),
        "figure2": figure2_table(records),
        "lemma1": lemma1_table(records),
        "theorem2": theorem2_table(records),
        "epsilon": epsilon_table(records),
        "selection": selection_table(records),
        "theorem4": theorem4_table(records),
        "barrier": barrier_table(records),
    }


def pictures(records):
    """All pictures of the page, by name."""
    return {
        "figure1": figure1_picture(records),
        "figure2": figure2_picture(records),
        "theorems": theorems_picture(records),
    }
