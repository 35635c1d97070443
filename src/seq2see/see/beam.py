"""Pictures of a beam search as a tree: what it kept, pruned and finished, and the greedy path."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from seq2see.see.beam_tree import FINISHED, KEPT, PRUNED, BeamTree, Node
from seq2see.see.figures import BLUE, GREEN, GREY, RED, shown
from seq2see.see.numbers import Numbers
from seq2see.see.tables import table

Line = Literal["-", ":"]
STYLES: dict[
    str, tuple[str, str, Line]
] = {  # face and edge of a node's box, and the line that leads to it
    KEPT: ("#cfe3f3", BLUE, "-"),
    FINISHED: ("#9fd8c5", GREEN, "-"),
    PRUNED: ("#eeeeee", GREY, ":"),
}
STEP, ROW = 1.35, 0.5  # inches: between steps, between ranks
HEADS = ["step", "token", "log p", "total", "score", "fate", "reason"]


def numbers(tree: BeamTree) -> list[Numbers]:
    """List the continuations, and the hypotheses, as tables."""
    rows = [
        [str(node.step), _path(tree.nodes, node), *_figures(node), node.status, node.reason]
        for node in tree.nodes[1:]
    ]
    found = [
        [str(i + 1), leaf.text, f"{leaf.log_probability:.3f}", f"{leaf.score:.3f}"]
        for i, leaf in enumerate(tree.hypotheses)
    ]
    return [
        Numbers("Hypotheses", ["rank", "text", "log p", "score"], found),
        Numbers("Continuations", HEADS, rows),
    ]


def report(tree: BeamTree) -> list[str]:
    """Tabulate the hypotheses, and say where the best one left the greedy path."""
    hypotheses = numbers(tree)[0]
    cells = [[row[1], row[2], row[3]] for row in hypotheses.rows]
    lines = table([["hypothesis", "log p", "score"], *cells])
    if tree.left_greedy is None:
        return [*lines, "greedy search finds the same translation"]
    return [*lines, f"the best hypothesis leaves the greedy path at step {tree.left_greedy}"]


def _path(nodes: Sequence[Node], node: Node) -> str:
    """Spell out the tokens from <s> to a node."""
    tokens = []
    place: Node | None = node
    while place is not None and place.parent is not None:
        tokens.append(place.token)
        place = nodes[place.parent]
    return " ".join(shown(tokens[::-1]))


def _figures(node: Node) -> list[str]:
    return [f"{value:.3f}" for value in (node.log_probability, node.total, node.score)]


def places(tree: BeamTree) -> dict[int, tuple[int, int]]:
    """Place each node at its step and its rank among the continuations of that step."""
    by_step: dict[int, list[Node]] = {}
    for node in tree.nodes:
        by_step.setdefault(node.step, []).append(node)
    return {
        node.id: (step, rank)
        for step, nodes in by_step.items()
        for rank, node in enumerate(sorted(nodes, key=lambda node: -node.total))
    }


def draw(tree: BeamTree, source: str) -> Figure:
    """Draw the tree from left to right, a column for each step, likelier continuations above."""
    at = places(tree)
    steps, ranks = (max(values) for values in zip(*at.values(), strict=True))
    size = (max(8.0, STEP * (steps + 1)), ROW * (ranks + 1) + 1.7)
    figure = Figure(figsize=size, layout="constrained")
    best = tree.hypotheses[0]
    figure.suptitle(f"{source} → {best.text}   (beam {tree.beam})", fontsize=12, parse_math=False)
    axes = figure.subplots()
    axes.set(xlim=(-0.45, steps + 0.45), ylim=(ranks + 0.5, -0.5), yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_xticks(range(steps + 1))
    axes.tick_params(length=0, labelsize=9)
    axes.set_xlabel("step; in a box: the token, its probability, and the score so far", fontsize=9)
    best_path = _ancestors(tree.nodes, best.node)
    for node in tree.nodes:
        if node.parent is not None:
            _branch(axes, node, (at[node.parent], at[node.id]), node.id in best_path)
    for node in tree.nodes:
        _box(axes, node, at[node.id], node.id in best_path)
    figure.legend(handles=_keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def _ancestors(nodes: Sequence[Node], leaf: int) -> set[int]:
    """Find the nodes on the path to a leaf, which is one of them."""
    path = {leaf}
    while (parent := nodes[leaf].parent) is not None:
        path.add(parent)
        leaf = parent
    return path


def _branch(axes: Axes, node: Node, ends: tuple[tuple[int, int], ...], best: bool) -> None:
    """Connect a node with its parent, thick on the best path, dashed orange on the greedy one."""
    _, colour, line = STYLES[node.status]
    (start_step, start_rank), (step, rank) = ends
    x = [start_step, step]  # boxes cover the ends
    axes.plot(x, [start_rank, rank], line, color=colour, linewidth=3.5 if best else 1, zorder=1)
    if node.greedy:
        axes.plot(x, [start_rank, rank], "--", color=RED, linewidth=1.6, zorder=2)


def _box(axes: Axes, node: Node, place: tuple[int, int], best: bool) -> None:
    face, edge, line = STYLES[node.status]
    (text,) = shown([node.token])
    if node.parent is not None:
        score = f"{node.score:.2f}".replace("-", "−")
        text += f" {_percent(node)}\n{score}"
    style: dict[str, Any] = {
        "boxstyle": "round,pad=0.25",
        "facecolor": face,
        "edgecolor": edge,
        "linestyle": line,
    }
    style["linewidth"] = 2.2 if best else 1
    axes.text(*place, text, fontsize=8, ha="center", va="center", bbox=style, parse_math=False)


def _percent(node: Node) -> str:
    probability = math.exp(node.log_probability)
    return f"{probability:.0%}" if probability >= 0.005 else "<1%"


def _keys() -> list[Patch | Line2D]:
    keys: list[Patch | Line2D] = [
        Patch(facecolor=face, edgecolor=edge, linestyle=line, label=status)
        for status, (face, edge, line) in STYLES.items()
    ]
    keys.append(Line2D([], [], color=BLUE, linewidth=3.5, label="best hypothesis"))
    keys.append(Line2D([], [], color=RED, linewidth=1.6, linestyle="--", label="greedy path"))
    return keys
