"""The setting of a simulation: its target, its feedback, and how its runs are executed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from duelay._core import checks
from duelay._core.deprecation import accept_old_names
from duelay._core.feedback import check_correction, check_feedback
from duelay.errors import InvalidValueError
from duelay.problems.problem import TARGETS
from duelay.traffic import Traffic
from duelay.traffic import check as check_traffic


@dataclass(frozen=True, kw_only=True, repr=False)
class Setting:
    """The regret's target, how answers arrive, and how runs are executed.

    The first nine fields describe the simulation. The others say how it is executed, and do not
    count when settings are compared. `str` names those of the first nine that differ from the
    paper's setting.

    Parameters
    ----------
    target : str
        The winner that regret is measured against: ``"condorcet"`` (Equation 1), ``"copeland"`` or
        ``"borda"``, whose regret is the mean of what the two arms lack to the best score
        (`Problem.gaps_for`).
    feedback : str
        ``"conversions"``, where silence looks like a win for the second; or ``"votes"``, where both
        outcomes are reported, each with its delay, and silence is no answer (use a `Never` law if
        some are never reported).
    corrects_position : bool
        Whether to remove the advantage of being shown first; for votes.
    stale : int
        The age in ticks of the evidence that the policy sees, its own duels included.
    batch : int
        The number of duels asked at a time; answers arrive only between batches.
    stop : float, optional
        End a run when its policy declares a winner: the policy's own `error`. `simulate` takes it
        as an argument, too.
    traffic : Traffic or str, optional
        The times of the duels, such as ``"poisson:10s"`` (`duelay.traffic`); delays are then in
        time. None counts ticks. `simulate` takes it as an argument, too.
    by_clock : bool
        Whether the policy goes by the clock, with traffic. False plays a policy that counts ticks:
        a duel is a tick, and an answer arrives at the next duel.
    joins : Duration, timedelta or str, optional
        The time at which the last arm of the problem joins, with traffic and a policy that decides;
        None if all arms are there from the start.
    first_run : int
        The number of the first run, if the runs are split into several simulations.
    pairs : bool
        Whether to record how often each pair has been played by each checkpoint.
    progress : bool or str, optional
        True draws a bar on standard error; None draws it only on a terminal and after two seconds;
        a text is the label of such a bar.
    cautious : bool
        Whether to warn if the policy cannot work well with this horizon.

    Examples
    --------
    >>> str(Setting(feedback="votes", stale=100, progress=False))
    'feedback=votes, stale=100'
    """

    target: str = "condorcet"
    feedback: str = "conversions"
    corrects_position: bool = False
    stale: int = 0
    batch: int = 1
    stop: float | None = None
    traffic: Traffic | str | None = None
    by_clock: bool = True
    joins: Any = None
    first_run: int = field(default=0, compare=False)
    pairs: bool = field(default=False, compare=False)
    progress: bool | str | None = field(default=None, compare=False)
    cautious: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        checks.one_of("target", self.target, TARGETS)
        check_feedback(self.feedback, counts="these are for a policy that hears no more, such as "
                       "mrr-db-delay:feedback=counts")  # fmt: skip
        check_correction(self.corrects_position, self.feedback)
        for name, least in (("stale", 0), ("batch", 1), ("first_run", 0)):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least=least))
        if self.stop is not None:
            object.__setattr__(self, "stop", checks.number("stop", self.stop, above=0, below=1))
        for name in ("by_clock", "pairs", "cautious"):
            checks.yes_or_no(name, getattr(self, name))
        self._check_traffic()
        if self.joins is not None:
            object.__setattr__(self, "joins", checks.duration("joins", self.joins))
        if not isinstance(self.progress, bool | str | None):
            raise InvalidValueError(
                f"progress must be True, False, None or a text, got {self.progress!r}"
            )

    def _check_traffic(self) -> None:
        """Parse the traffic; raise ValueError for fields that do not fit it."""
        if self.traffic is None:
            return
        object.__setattr__(self, "traffic", check_traffic(self.traffic))
        for name, unit in (("stale", "ticks"), ("batch", "duels")):
            if getattr(self, name) != getattr(Setting, name):
                raise InvalidValueError(
                    f"{name} does not fit traffic: it counts {unit}, and traffic is in time; leave "
                    f"one of the two out",
                    argument=name,
                )

    @property
    def is_held(self) -> bool:
        """Whether evidence is held back."""
        return self.stale > 0 or self.batch > 1

    def with_arguments(self, **arguments: Any) -> Setting:
        """Return the setting with arguments of `simulate` in it.

        Parameters
        ----------
        **arguments : Any
            Values of fields; None for an argument that is not given.

        Raises
        ------
        ValueError
            If the setting already has another value.
        """
        setting = self
        for name, value in arguments.items():
            if value is not None:
                changed = dataclasses.replace(setting, **{name: value})
                before, after = getattr(setting, name), getattr(changed, name)
                if before not in (None, after):
                    raise InvalidValueError(
                        f"{name} must be given once, got {after} and {before}", argument=name
                    )
                setting = changed
        return setting

    def _changed(self) -> dict[str, Any]:
        """Return the fields that are not the default, by name."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in given.items() if value != getattr(Setting, name)}

    def __str__(self) -> str:
        changed = self._changed().items()
        return ", ".join(f"{name}={value}" for name, value in changed if name in ABOUT)

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self._changed().items())
        return f"Setting({changed})"


_accepting = accept_old_names(is_cautious="cautious", bulk=None)
Setting.__init__ = _accepting(Setting.__init__)  # type: ignore[method-assign]
ABOUT = tuple(field.name for field in dataclasses.fields(Setting) if field.compare)
