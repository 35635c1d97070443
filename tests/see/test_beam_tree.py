"""The search as a tree: it is the search itself, and every node says what became of it."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see.batches import Ids
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.errors import InputError
from seq2see.see.beam_tree import BeamTree, Node, grow
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END

TEXT = "drei acht eins, sieben."


def tree_of(translator: Translator, prefix: Ids | None = None, **settings: Any) -> BeamTree:
    config = replace(Search.of(translator.recipe), **settings)
    return grow(translator, translator.tokenizers.source.encode(TEXT), config, prefix or [])


def path(tree: BeamTree, id: int | None) -> list[Node]:
    nodes = []
    while id is not None:
        nodes.append(tree.nodes[id])
        id = tree.nodes[id].parent
    return nodes[::-1]


def test_the_leaves_are_the_hypotheses_of_the_search(tiny: Translator) -> None:
    config = Search.of(tiny.recipe)
    (expected,) = tiny.hypotheses([tiny.tokenizers.source.encode(TEXT)], config, config.beam)
    tree = tree_of(tiny)
    assert tree.beam == config.beam and len(tree.hypotheses) == len(expected)
    for leaf, ours in zip(tree.hypotheses, expected, strict=True):
        nodes = path(tree, leaf.node)
        pieces = [tiny.tokenizers.target.piece(id) for id in [BEGIN, *ours.ids, END]]
        assert [node.token for node in nodes] == pieces
        assert (leaf.log_probability, leaf.score) == (ours.log_probability, ours.score)
        assert nodes[-1].status == "finished" and nodes[-1].total == ours.log_probability
        assert {node.status for node in nodes[:-1]} == {"kept"}
        assert sum(node.log_probability for node in nodes) == pytest.approx(ours.log_probability)


def test_the_numbers_are_those_of_the_model(tiny: Translator) -> None:
    tree = tree_of(tiny)
    model: Any = tiny.model
    id_of = {tiny.tokenizers.target.piece(id): id for id in range(len(tiny.tokenizers.target))}
    source = torch.tensor([[*tiny.tokenizers.source.encode(TEXT), END]])
    for node in tree.nodes[1::7]:
        ids = [id_of[one.token] for one in path(tree, node.id)]
        with torch.inference_mode():
            logits, _ = model.step(model.start(model.encode(source)), torch.tensor([ids[:-1]]))
        log_p = logits[0, -1].log_softmax(-1)[ids[-1]]
        assert node.log_probability == pytest.approx(float(log_p), abs=1e-4)
        assert node.step == len(ids) - 1
        assert node.score == pytest.approx(node.total / Search.of(tiny.recipe).penalty(node.step))


def test_every_step_keeps_at_most_the_beam_and_gives_reasons(tiny: Translator) -> None:
    tree = tree_of(tiny)
    for step in range(1, max(node.step for node in tree.nodes) + 1):
        nodes = [node for node in tree.nodes if node.step == step]
        assert sum(node.status == "kept" for node in nodes) <= tree.beam
        totals = [node.total for node in nodes]
        assert totals == sorted(totals, reverse=True) and len(nodes) <= 2 * tree.beam
        for rank, node in enumerate(nodes, start=1):
            assert tree.nodes[node.parent or 0].status == "kept"
            if "still open" not in node.reason:
                assert node.reason.startswith(f"rank {rank} of {len(nodes)} continuations")
            assert (";" in node.reason or "still" in node.reason) == (node.status == "pruned")


def test_prefixes_that_were_open_at_the_end_are_pruned(tiny: Translator) -> None:
    tree = tree_of(tiny, max_ratio=10.0, length_penalty=0.0)  # the search ends before its limit
    last = [node for node in tree.nodes if node.step == max(one.step for one in tree.nodes)]
    assert {node.status for node in last} <= {"pruned", "finished"}


def test_the_greedy_path_and_where_the_beam_left_it(tiny: Translator) -> None:
    source = tiny.tokenizers.source.encode(TEXT)
    ((greedy,),) = tiny.hypotheses([source], replace(Search.of(tiny.recipe), beam=1))
    tree = tree_of(tiny)
    on_path = [node.token for node in tree.nodes if node.greedy]
    pieces = [tiny.tokenizers.target.piece(id) for id in [BEGIN, *greedy.ids, END]]
    assert on_path == pieces[: len(on_path)] and len(on_path) >= 2
    best = [node.token for node in path(tree, tree.hypotheses[0].node)]
    left = next((step for step, token in enumerate(best) if token != pieces[step]), None)
    assert tree.left_greedy == left


def test_a_beam_of_one_is_the_greedy_path(tiny: Translator) -> None:
    tree = tree_of(tiny, beam=1)
    assert all(node.greedy for node in tree.nodes) and tree.left_greedy is None
    source = tiny.tokenizers.source.encode(TEXT)
    ((greedy,),) = tiny.hypotheses([source], replace(Search.of(tiny.recipe), beam=1))
    assert [node.token for node in tree.nodes[1:-1]] == [
        tiny.tokenizers.target.piece(id) for id in greedy.ids
    ]
    assert tree.nodes[-1].total == greedy.log_probability


def test_a_prefix_is_on_every_path_and_a_forbidden_token_on_none(tiny: Translator) -> None:
    free = tree_of(tiny)
    target = tiny.tokenizers.target
    prefix = target.encode("nine")
    for leaf in (forced := tree_of(tiny, prefix)).hypotheses:
        tokens = [node.token for node in path(forced, leaf.node)]
        assert tokens[1 : 1 + len(prefix)] == [target.piece(id) for id in prefix]
    common = path(free, free.hypotheses[0].node)[1].token
    banned = next(id for id in range(len(target)) if target.piece(id) == common)
    for beam in (1, 3):
        tree = tree_of(tiny, beam=beam, forbidden=(banned,))
        assert common not in {node.token for node in tree.nodes} and tree.hypotheses


def test_the_two_models_have_different_trees(twins: list[Translator]) -> None:
    first, second = (tree_of(translator) for translator in twins)
    assert [node.total for node in first.nodes] != [node.total for node in second.nodes]


def test_what_cannot_be_searched_is_refused(tiny: Translator) -> None:
    with pytest.raises(InputError, match="</s> cannot be forbidden"):
        tree_of(tiny, forbidden=(END,))
    with pytest.raises(InputError, match=r"prefixes\[0\]: it has a token that is forbidden"):
        tree_of(tiny, [7], forbidden=(7,))


@pytest.mark.parametrize("beam", [1, 3])
def test_an_observer_changes_no_bit(tiny: Translator, beam: int) -> None:
    source = tiny.tokenizers.source.encode(TEXT)
    config = replace(Search.of(tiny.recipe), beam=beam)
    steps: list[Any] = []
    plain = search(tiny.model, [source], config, beam)
    assert search(tiny.model, [source], config, beam, observer=steps.append) == plain
    assert len(steps) >= len(plain[0][0].ids) + 1
    with pytest.raises(ValueError, match="an observer follows one source, not 2"):
        search(tiny.model, [source, source], config, observer=steps.append)
