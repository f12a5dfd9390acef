"""Estimate the delay law of a log: a Kaplan-Meier curve, and parametric laws that are fitted.

A law has two parts: p, the share that is ever answered, and F, the distribution function of its
delays. Ages are cut into many short stretches. An answer in a stretch has the likelihood
p (F(end) - F(beginning)). Silence up to an age a has 1 - chance p F(a), where chance is the
probability that the duel's answer can be heard at all (`duelay.delays.survival`). So delays that
are rounded, or zero, do no harm.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from duelay._core import checks
from duelay._core.arrays import Floats
from duelay._core.duration import Duration
from duelay.delays.base import Law
from duelay.delays.continuous import Exponential, Gamma, LogNormal, Weibull
from duelay.delays.curve import Curve
from duelay.delays.empirical import Empirical
from duelay.delays.joint_estimation import Joint, estimate_jointly
from duelay.delays.never import Never
from duelay.delays.survival import Learned, Watched, learn_curve, watch
from duelay.errors import InvalidValueError

MIN_ANSWERS = 30  # answers, to fit anything
_MAX_STRETCHES = 500  # stretches of ages, at the most
_MAX_POINTS = 400  # of a curve
BAND = 1.96  # standard errors of a 95 % interval
_CHI = 1.92  # half of the 95 % quantile of chi-squared with one degree of freedom
_MAX_DISTANCE = (4.0, 0.01)  # standard errors, and a share: a law that is further off does not fit
_MIN_NEVER = 1e-4  # a never-answering share below this is taken for 0
_MIN_DELAYS = 5  # different delays at least, to say that they are rounded
_N_CHANCES = 100  # kinds of chance, where it is not the same for all duels


class Family(NamedTuple):
    """A family of laws."""

    n_shapes: int  # parameters beside the scale
    make: Callable[..., Law]  # from a scale and a shape


FAMILIES: dict[str, Family] = {
    "exponential": Family(0, lambda scale, _: Exponential(scale)),
    "weibull": Family(1, lambda scale, shape: Weibull(shape, scale)),
    "log-normal": Family(1, lambda scale, shape: LogNormal(scale, shape)),
    "gamma": Family(1, lambda scale, shape: Gamma(shape, scale)),
}


class Fit(NamedTuple):
    """A law that was fitted."""

    name: str  # of its family
    law: Law  # with the share that never answers
    never: float
    never_range: tuple[float, float] | None  # a 95 % interval; of the best alone, and if it fits
    log_likelihood: float
    aic: float  # 2 parameters - 2 log likelihood: the least is the best
    distance: float  # from the learned curve, at the most
    fits: bool  # whether it is as close to the curve as chance explains


@dataclass(frozen=True, eq=False)
class DelayEstimate:
    """What a log says about its delays."""

    watched: Watched
    chance: Any  # of each duel: how likely its answer could be heard
    learned: Learned
    joint: Joint | None  # the law and the preferences together, where no coin decided the order

    @property
    def in_time(self) -> bool:
        """Whether ages are seconds; else they are ticks."""
        return self.watched.in_time

    @functools.cached_property
    def fits(self) -> tuple[Fit, ...]:
        """The laws that were fitted, the best first; none where there are too few answers."""
        if int(self.watched.is_heard.sum()) < MIN_ANSWERS or not self.learned.last > 0:
            return ()
        spread = 1.0 if self.joint is None else self.joint.spread
        return _fit_all(self.watched, self.chance, self.learned, spread)

    @property
    def curve(self) -> Law:
        """The learned curve as a law, in time with a 95 % band."""
        return as_law(self.learned, in_time=self.in_time)

    @property
    def best(self) -> Law:
        """The law that fits best, and the curve where none fits."""
        return self.fits[0].law if self.fits and self.fits[0].fits else self.curve


def fit(log: Any, family: str | None = None) -> Law:
    """Estimate the delay law of a history.

    Parameters
    ----------
    log : History
        The duels and their answers.
    family : str, optional
        ``"exponential"``, ``"weibull"``, ``"log-normal"`` or ``"gamma"``, each with a share that
        never answers; ``"curve"`` for the Kaplan-Meier curve; None for the best family, or the
        curve if the distance of every family from it is more than chance explains.

    Raises
    ------
    ValueError
        If the history has too few answers.

    Notes
    -----
    If a coin or turns decided the order, the law follows from the conversions. In another order, or
    an unknown one, it is estimated together with the preferences, which needs pairs that were shown
    in both orders.
    """
    if family is not None:
        checks.one_of("family", family, (*FAMILIES, "curve"))
    found = estimate_delays(log)
    if family == "curve":
        return found.curve
    if family is None:
        return found.best
    named = {one.name: one.law for one in found.fits}
    if family not in named:
        raise InvalidValueError(
            f"{MIN_ANSWERS} answers are needed to fit a law: write family='curve'"
        )
    return named[family]


def estimate_delays(log: Any, error: float = 0.05) -> DelayEstimate:
    """Return what a history says about its delays; `error` is for preferences, if estimated too."""
    watched = watch(log)
    if not watched.is_heard.any():
        raise InvalidValueError("the delay law needs answers, and none has been heard")
    joint = None
    if log.feedback == "votes":
        chance: Any = 1.0
    elif log.order in ("coin", "alternate"):
        chance = 0.5
    else:
        joint = estimate_jointly(watched, log.n_arms, error)
        chance = joint.mean[watched.first, watched.second]
    learned = learn_curve(watched, chance) if joint is None else joint.law
    return DelayEstimate(watched, chance, learned, joint)


def as_law(learned: Learned, *, in_time: bool) -> Law:
    """Return a learned curve as a law; what is missing from 1 at its last age never comes."""
    if not in_time:
        ages = np.arange(1, int(max(learned.last, 1)) + 1)
        tau = np.minimum(np.maximum.accumulate(learned.at(ages)[0]), 1.0)
        return Empirical(np.diff(tau, prepend=0.0))
    ages = np.maximum(np.append(learned.ages, learned.last), 1e-6)
    place = np.unique(np.linspace(0, ages.size - 1, min(_MAX_POINTS, ages.size)).astype(np.int64))
    ages = np.unique(ages[place])
    tau, error = learned.at(ages)
    middle = np.clip(np.maximum.accumulate(tau), 0.0, 1.0)
    lower, upper = (np.clip(tau + sign * BAND * error, 0.0, 1.0) for sign in (-1, 1))
    return Curve(
        tuple(Duration.of(age) for age in ages.tolist()),
        tuple(middle.tolist()),
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
    )


def _step(delays: Floats) -> float:
    """Return the seconds to which delays are rounded, if that is rough; 0 where it is not.

    A delay of 3 minutes then stands for all from 2.5 to 3.5.
    """
    if np.unique(delays).size < _MIN_DELAYS:
        return 0.0
    for step in (3600.0, 60.0, 1.0):
        if np.median(delays) < 100.0 * step and (delays % step == 0.0).all():
            return step
    return 0.0


class _Sums(NamedTuple):
    """Answers and silences in stretches of ages."""

    edges: Floats  # (B + 1,): a stretch is after its beginning, up to its end
    answers: Floats  # (B,)
    chance: Floats  # (m,): of each kind of silent duels: how likely an answer can be heard ...
    age: Floats  # (m,): ... the age up to which they were silent ...
    silences: Floats  # (m,): ... and how many they are
    in_time: bool
    step: float  # seconds to which delays are rounded, or 0


def _fit_all(watched: Watched, chance: Any, learned: Learned, spread: float) -> tuple[Fit, ...]:
    """Fit every family; the best by Akaike's criterion first.

    The likelihood takes each chance for known. Where the chances are estimated, the never-answering
    share has a larger variance: `spread` is the factor.
    """
    sums = _add_up(watched, chance)
    fits = sorted((_fit_one(name, sums, learned) for name in FAMILIES), key=lambda one: one.aic)
    if fits[0].fits:  # an interval by the likelihood of a wrong law would be too short
        fits[0] = fits[0]._replace(never_range=_range(fits[0], sums, _CHI * spread))
    return tuple(fits)


def _add_up(watched: Watched, chance: Any) -> _Sums:
    delays = watched.exit[watched.is_heard]
    grid = int(np.clip(delays.size, 50, _MAX_STRETCHES))
    step = _step(delays) if watched.in_time else 0.0
    if step:
        most = max(float(delays.max()) / step, 2.0)
        edges = np.unique(np.geomspace(1.0, most, grid).round()) * step
        edges = np.append(-1.0, np.append(0.0, edges) + step / 2.0)
    elif watched.in_time:
        shortest = min(max(float(delays[delays > 0].min(initial=math.inf)), 1e-6), 1e12)
        longest = max(float(delays.max()), 1.1 * shortest)
        edges = np.append(-1.0, np.geomspace(0.97 * shortest, longest, grid))
        edges[-1] = longest  # rounding may have made it less
    else:
        edges = np.unique(np.geomspace(1.0, max(float(delays.max()), 2.0), grid).round())
        edges = np.append(0.0, edges)
    place = np.clip(np.searchsorted(edges, delays, side="left") - 1, 0, edges.size - 2)
    answers = np.bincount(place, minlength=edges.size - 1).astype(np.float64)
    silent = ~watched.is_heard
    age = watched.exit[silent]
    share = np.broadcast_to(np.asarray(chance, dtype=np.float64), watched.exit.shape)[silent]
    steps = np.geomspace(edges[1], max(float(age.max(initial=0.0)), 2.0 * edges[1]), 2 * grid)
    kind = np.rint(share * _N_CHANCES).astype(np.int64)
    code = np.searchsorted(steps, age) * (_N_CHANCES + 1) + kind
    _, group = np.unique(code, return_inverse=True)
    n = np.bincount(group).astype(np.float64)
    mean_age = np.bincount(group, weights=age) / np.maximum(n, 1)
    mean_share = np.bincount(group, weights=share) / np.maximum(n, 1)
    return _Sums(edges, answers, mean_share, mean_age, n, watched.in_time, step)


def _fit_one(name: str, sums: _Sums, learned: Learned) -> Fit:
    def cost(theta: Any) -> float:
        return -_log_likelihood(_law(name, theta, sums.in_time), _share(theta[-1]), sums)

    found = _minimize(cost, min(_starts(name, sums, learned), key=cost))
    found = _minimize(cost, found.x.tolist())  # once more, from there: a simplex may have shrunk
    never = 1.0 - _share(found.x[-1])
    never = float(f"{never:.4g}") if never > _MIN_NEVER else 0.0
    inner = _law(name, found.x, sums.in_time, digits=4)
    law = Never(never, inner) if never else inner
    ages = learned.ages[np.unique(np.linspace(0, learned.ages.size - 1, 50).astype(np.int64))]
    told, error = learned.at(ages)
    off = np.abs(np.asarray(law.cdf(ages + sums.step / 2.0)) - told)
    fits = bool((off <= _MAX_DISTANCE[0] * error + _MAX_DISTANCE[1]).all())
    aic = 2.0 * len(found.x) + 2.0 * float(found.fun)
    return Fit(name, law, never, None, -float(found.fun), aic, float(off.max()), fits)


def _starts(name: str, sums: _Sums, learned: Learned) -> list[list[float]]:
    """Points to begin from; several, since the likelihood is flat where a law is far too short."""
    middle = np.sqrt(np.maximum(sums.edges[:-1], sums.edges[1] / 2.0) * sums.edges[1:])
    share = np.cumsum(sums.answers) / sums.answers.sum()
    scales = [middle[np.searchsorted(share, part)] for part in (0.2, 0.5, 0.8, 0.95)]
    scales.append(float((middle * sums.answers).sum() / sums.answers.sum()))
    tau = float(np.clip(learned.tau[-1], 0.05, 0.98))
    shapes = [[math.log(shape)] for shape in (0.2, 0.5, 1.0, 2.0, 5.0)]
    shapes = shapes if FAMILIES[name].n_shapes else [[]]
    answered = [math.log(p / (1.0 - p)) for p in (tau, 0.5 * (1.0 + tau))]
    return [[math.log(scale), *shape, p] for scale in scales for shape in shapes for p in answered]


def _minimize(cost: Callable[[Any], float], start: list[float]) -> Any:
    from scipy import optimize

    options = {"xatol": 1e-5, "fatol": 1e-6, "maxiter": 2000}
    return optimize.minimize(cost, start, method="Nelder-Mead", options=options)


def _range(fit: Fit, sums: _Sums, limit: float) -> tuple[float, float]:
    """Bisect for the never-answering shares with too small a likelihood, the law fitted to each."""
    inner: Any = fit.law.law if isinstance(fit.law, Never) else fit.law
    shape = next((getattr(inner, name) for name in ("shape", "sigma") if hasattr(inner, name)), 1.0)
    start = [math.log(inner.unit), math.log(shape)][: 1 + FAMILIES[fit.name].n_shapes]

    def is_out(never: float) -> bool:
        def cost(theta: Any) -> float:
            return -_log_likelihood(_law(fit.name, theta, sums.in_time), 1.0 - never, sums)

        return float(_minimize(cost, start).fun) + fit.log_likelihood > limit

    ends = []
    for end in (0.0, 1.0):
        inside, outside = fit.never, end
        if end < 1.0 and not is_out(end):
            outside, inside = end, end
        for _ in range(8 if inside != outside else 0):
            middle = (inside + outside) / 2.0
            inside, outside = (inside, middle) if is_out(middle) else (middle, outside)
        ends.append(outside)
    return ends[0], ends[1]


def _share(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(x, -30.0), 30.0)))


def _law(name: str, theta: Any, in_time: bool, digits: int = 17) -> Law:
    scale = float(f"{math.exp(min(max(theta[0], -30.0), 50.0)):.{digits}g}")
    shape = 1.0
    if FAMILIES[name].n_shapes:
        shape = float(f"{math.exp(min(max(theta[1], -4.0), 6.0)):.{digits}g}")
    return FAMILIES[name].make(Duration.of(scale) if in_time else scale, shape)


def _log_likelihood(law: Law, p: float, sums: _Sums) -> float:
    """The log likelihood of answers and silences, without terms that do not depend on the law."""
    come = np.asarray(law.cdf(np.maximum(sums.edges, 0.0)))
    grown = np.maximum(np.diff(come), 1e-300)
    silent = np.asarray(law.cdf(np.maximum(sums.age, 0.0)))
    total = (sums.answers * np.log(p * grown))[sums.answers > 0].sum()
    missing = np.maximum(1.0 - sums.chance * p * silent, 1e-300)
    return float(total + (sums.silences * np.log(missing)).sum())
