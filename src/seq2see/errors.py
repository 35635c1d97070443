"""The two ways a job can end badly; the command line turns each into one line and an exit code."""


class InputError(ValueError):
    """The call or its input was wrong (exit code 2): names the file, line or key, the value and the rule."""


class WorkError(RuntimeError):
    """The input was fine but the work failed (exit code 1): says what happened and what was kept."""
