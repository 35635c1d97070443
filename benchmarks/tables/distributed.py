"""Tables of docs/cluster.md, from `distributed.py`."""

from typing import Any

from tables.raw import NOT_YET, computer, raw, table

SHARDS = {"none": "DDP", "full": "FSDP2"}
PROCESSES = (8, 64, 512)
NETWORKS = (10, 100)  # gigabits per second, for each process
BATCH = 3125  # target tokens, an eighth of the paper's update
PASSES = 2  # of a batch on a CPU, one for each process
P100 = {"wmt14-base": 0.4, "wmt14-big": 1.0}  # seconds of the paper's step, a batch for each of 8


def equality() -> str:
    """Show how far losses are from those of one process."""
    if (result := raw("distributed-equality")) is None:
        return NOT_YET
    head = ("corpus", "numbers", "processes", "same examples", "largest difference of a loss")
    body = [
        (
            f"`{row['recipe']}`",
            row["dtype"],
            _processes(row),
            "yes" if row["same_examples"] else "no",
            f"{row['largest_difference']:.1e}",
            _within(row),
            {None: "", True: "yes", False: "no"}[row.get("same_bits")],
        )
        for row in result["rows"]
    ]
    limits = " and ".join(f"{limit:g} in {name}" for name, limit in result["tolerance"].items())
    note = f"{result['updates']} updates; tolerance: {limits}; {computer(result)}"
    return f"{table((*head, 'updates within tolerance', 'same bits'), *body)}\n\n{note}"


def _processes(row: Any) -> str:
    if row["backwards"]:
        return "1, passes summed backwards"
    kind = SHARDS[row["shard"]] if row["processes"] > 1 else "alone"
    if row["before"] is None:
        return f"{row['processes']}, {kind}"
    return f"{row['before']}, killed after update {row['killed_at']}, then {row['processes']}"


def _within(row: Any) -> str:
    """Count the first updates whose losses agree; a resumed run begins at its checkpoint."""
    begun = row["first_update"] - 1
    return f"{begun + 1} to {begun + row['within_tolerance']}"


def kills() -> str:
    """Show runs whose processes were killed beside the number of those that ended alike."""
    if (result := raw("distributed-kills")) is None:
        return NOT_YET
    head = ("processes", "ranks that were killed", "same weights as the undisturbed run")
    body = [
        (
            f"{row['processes']}",
            ", ".join(str(kill["rank"]) for kill in row["kills"]),
            "yes, to the bit" if row["same_bits"] else "no",
        )
        for row in result["rows"]
    ]
    total = sum(len(row["kills"]) for row in result["rows"])
    note = f"{total} kills, {result['updates']} updates a run, a checkpoint every "
    note += f"{result['checkpoint_every']}; {computer(result)}"
    return f"{table(head, *body)}\n\n{note}"


def speed() -> str:
    """Show the time of an update with threads and with processes, and what communication takes."""
    if (result := raw("distributed-speed")) is None:
        return NOT_YET
    head = ("model", "started as", "ms an update", "target tokens/s", "against 2 threads")
    body = [
        (
            row["size"],
            row["name"],
            f"{1000 * row['seconds_per_update']:.0f}",
            f"{row['target_tokens_per_update'] / row['seconds_per_update']:,.0f}",
            f"{row['faster_than_2_threads']:.2f} ×",
            f"{row['faster_than_1_thread']:.2f} ×",
            f"{row['communication_share']:.1%}" if "communication_share" in row else "",
        )
        for row in result["rows"]
        if row["communicates"]
    ]
    note = f"medians of {result['rounds']} round(s) in turn; {computer(result)}"
    return f"{table((*head, 'against 1 thread', 'communication'), *body)}\n\n{note}"


def large() -> str:
    """Estimate updates of the paper's models with many processes, from the time of one core."""
    if (result := raw("distributed-large")) is None:
        return NOT_YET
    head = ("model", "a process is", "processes", "target tokens an update", "computing, s")
    sums = [f"summing over {network} Gbit/s, s" for network in NETWORKS]
    speeds = [f"target tokens/s over {network} Gbit/s" for network in NETWORKS]
    body = []
    for row in result["rows"]:
        core = BATCH // PASSES * row["seconds_per_target_token"] + row["seconds_per_step"]
        kinds = (("a core", BATCH // PASSES, core), ("a P100", BATCH, P100[row["recipe"]]))
        for kind, tokens, computing in kinds:
            for processes in PROCESSES:
                summing = [_summing(row["parameters"], processes, gbit) for gbit in NETWORKS]
                rates = [_rates(tokens * processes, computing, seconds) for seconds in summing]
                cells = (row["recipe"], kind, f"{processes}", f"{tokens * processes:,}")
                seconds = (f"{computing:.2f}", *(f"{one:.2f}" for one in summing))
                body.append((*cells, *seconds, *rates))
    note = f"core: medians of {result['rounds']} round(s) on one core of {computer(result)}"
    return f"{table((*head, *sums, *speeds), *body)}\n\n{note}"


def _summing(parameters: int, processes: int, gigabits: float) -> float:
    """Seconds to sum gradients of 32 bits in a ring, each process sending at full speed."""
    sent = 2 * (processes - 1) / processes * 32 * parameters
    return sent / (gigabits * 1e9)


def _rates(tokens: int, computing: float, summing: float) -> str:
    """Tokens a second if nothing of the sum is hidden behind computing, and if all of it is."""
    return f"{tokens / (computing + summing):,.0f} to {tokens / max(computing, summing):,.0f}"
