"""The environment variables by which torchrun tells a process its place among others."""

from collections.abc import Mapping

from seq2see.errors import InputError

RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
VARIABLES = (*RANKS, "MASTER_ADDR", "MASTER_PORT")


def ranks(environment: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Rank, number of processes and local rank; None where nothing has set them."""
    variables = {name: environment[name] for name in VARIABLES if environment.get(name)}
    if not any(name in variables for name in RANKS):
        return None
    missing = [name for name in VARIABLES if name not in variables]
    if missing:
        # A mistake of whatever has started the processes is the same for all: one of them says it.
        if variables.get("RANK", "0") != "0":
            raise SystemExit(2)
        rule = "torchrun sets all of them"
        set_ones = ", ".join(variables)
        raise InputError(f"{set_ones} set in the environment, but not {', '.join(missing)}; {rule}")
    try:
        rank, size, local_rank = (int(variables[name]) for name in RANKS)
    except ValueError:
        values = ", ".join(f"{name} = {variables[name]!r}" for name in RANKS)
        raise InputError(f"{values}: must be whole numbers, as torchrun sets them") from None
    if not 0 <= rank < size:
        raise InputError(f"RANK = {rank} must be from 0 to WORLD_SIZE − 1 = {size - 1}")
    return rank, size, local_rank
