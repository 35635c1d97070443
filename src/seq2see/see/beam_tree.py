"""A beam search as a tree: every continuation that the search compared, and its fate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from seq2see.batches import Ids
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import Step, search
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END

KEPT, PRUNED, FINISHED = "kept", "pruned", "finished"


@dataclass(frozen=True)
class Node:
    """One continuation: a token after the tokens of its ancestors."""

    id: int
    parent: int | None
    step: int  # 0 for <s>
    token: str
    log_probability: float  # of this token
    total: float  # of all tokens up to this one
    score: float  # the total divided by the length penalty
    status: str  # kept, pruned or finished
    reason: str
    greedy: bool = False  # whether it is on the path of greedy search


@dataclass(frozen=True)
class Leaf:
    """A hypothesis that the search returned, and the node where it ends."""

    node: int
    text: str
    log_probability: float
    score: float


@dataclass(frozen=True)
class BeamTree:
    """A search: its nodes, parents first, and its hypotheses, best first."""

    nodes: list[Node]
    hypotheses: list[Leaf]
    left_greedy: int | None  # first step at which the best hypothesis is not the greedy one
    beam: int


def grow(
    translator: Translator, source: Ids, config: Search, prefix: Sequence[int] = ()
) -> BeamTree:
    """Search for translations of one source, and return the search as a tree."""
    target = translator.tokenizers.target
    model, device = translator.model, translator.device
    recorder = _Recorder(config, [target.piece(id) for id in range(len(target))])
    prefixes = [prefix] if prefix else None
    (found,) = search(
        model, [source], config, config.beam, device, prefixes=prefixes, observer=recorder
    )
    greedy = replace(config, beam=1)
    ((likeliest,),) = search(model, [source], greedy, device=device, prefixes=prefixes)
    greedy_path = (*likeliest.ids, END)
    nodes = [
        replace(node, greedy=greedy_path[: len(path)] == path)
        for path, node in recorder.closed().items()
    ]
    node_of = {path: node.id for path, node in recorder.nodes.items()}
    leaves = [
        Leaf(node_of[*best.ids, END], target.decode(best.ids), best.log_probability, best.score)
        for best in found
    ]
    return BeamTree(nodes, leaves, _fork((*found[0].ids, END), greedy_path), config.beam)


def _fork(best: Sequence[int], greedy: Sequence[int]) -> int | None:
    """Count the steps up to the first difference; None if the two are equal."""
    if best == greedy:
        return None
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(best, greedy, strict=False))
    return len(list(shared)) + 1


class _Recorder:
    """Observes the search of one sentence; nodes are found by the ids on their path."""

    def __init__(self, config: Search, pieces: Sequence[str]) -> None:
        self.config = config
        self.pieces = pieces
        root = Node(0, None, 0, pieces[BEGIN], 0.0, 0.0, 0.0, KEPT, "every hypothesis begins here")
        self.nodes: dict[Sequence[int], Node] = {(): root}
        # Paths of the open prefixes in the order of the beam; at first, all are the root.
        self.open: list[tuple[int, ...]] = [()] * config.beam

    def __call__(self, step: Step) -> None:
        candidates = step.candidates
        ids, origins = candidates.ids[0].tolist(), candidates.origins[0].tolist()
        totals, ended = candidates.totals[0].tolist(), step.ended[0].tolist()
        kept = step.kept[0].tolist()
        possible = sum(total > float("-inf") for total in totals)
        paths = []
        for rank, (id, origin, total) in enumerate(zip(ids, origins, totals, strict=True)):
            path = (*self.open[origin], id)
            paths.append(path)
            if total == float("-inf"):
                continue  # the search fills up with tokens that are not allowed
            status = FINISHED if ended[rank] else PRUNED
            if rank in kept and id != END:
                status = KEPT
            reason = f"rank {rank + 1} of {possible} continuations{self._rule(status, id)}"
            self._add(path, total, status, reason)
        self.open = [paths[rank] for rank in kept]

    def _rule(self, status: str, id: int) -> str:
        if status != PRUNED:
            return ""
        if id == END:
            return f"; a hypothesis ends only among the best {self.config.beam}"
        return f"; the beam keeps {self.config.beam}"

    def _add(self, path: tuple[int, ...], total: float, status: str, reason: str) -> None:
        parent = self.nodes[path[:-1]]
        self.nodes[path] = Node(
            id=len(self.nodes),
            parent=parent.id,
            step=len(path),
            token=self.pieces[path[-1]],
            log_probability=total - parent.total,
            total=total,
            score=total / self.config.penalty(len(path)),
            status=status,
            reason=reason,
        )

    def closed(self) -> dict[Sequence[int], Node]:
        """The nodes after the search, which has pruned the prefixes that were still open."""
        reason = f"still open at the end, when {self.config.beam} finished hypotheses scored better"
        for path in self.open:
            node = self.nodes.get(path)
            if node is not None and node.status == KEPT:
                self.nodes[path] = replace(node, status=PRUNED, reason=reason)
        return self.nodes
