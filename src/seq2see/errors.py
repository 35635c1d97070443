"""Errors a user can cause; the command line turns each into one line and an exit code."""


class InputError(ValueError):
    """Invalid call or input (exit code 2); names the file, line or key, the value and the rule."""


class WorkError(RuntimeError):
    """Failure on valid input (exit code 1); says what happened and what was kept."""
