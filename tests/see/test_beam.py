"""The picture of a search: every continuation at its step and rank, and both paths."""

from seq2see.decoding.hypotheses import Search
from seq2see.see import beam
from seq2see.see.beam_tree import FINISHED, KEPT, PRUNED, BeamTree, Leaf, Node, grow
from seq2see.tasks.translator import Translator

TREE = BeamTree(
    [
        Node(0, None, 0, "<s>", 0.0, 0.0, 0.0, KEPT, "root", greedy=True),
        Node(1, 0, 1, "▁x", -0.7, -0.7, -0.6, KEPT, "rank 1", greedy=True),
        Node(2, 0, 1, "▁y", -0.9, -0.9, -0.8, KEPT, "rank 2"),
        Node(3, 1, 2, "</s>", -3.0, -3.7, -3.0, FINISHED, "rank 3", greedy=True),
        Node(4, 2, 2, "</s>", -0.1, -1.0, -0.8, FINISHED, "rank 1"),
        Node(5, 1, 2, "z", -1.0, -1.7, -1.5, PRUNED, "rank 2"),
    ],
    [Leaf(4, "y", -1.0, -0.8), Leaf(3, "x", -3.7, -3.0)],
    left_greedy=1,
    beam=2,
)


def test_nodes_stand_at_their_step_and_rank() -> None:
    assert beam.places(TREE) == {0: (0, 0), 1: (1, 0), 2: (1, 1), 4: (2, 0), 5: (2, 1), 3: (2, 2)}


def test_branches_show_the_best_and_the_greedy_path() -> None:
    (axes,) = beam.draw(TREE, "source").axes
    greedy = [line for line in axes.lines if line.get_linestyle() == "--"]
    best = [line for line in axes.lines if line.get_linewidth() > 3]
    assert [line.get_xydata().tolist() for line in greedy] == [
        [[0, 0], [1, 0]],
        [[1, 0], [2, 2]],
    ]
    assert [line.get_xydata().tolist() for line in best] == [[[0, 0], [1, 1]], [[1, 1], [2, 0]]]
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written[1, 1] == "·y 41%\n−0.80" and written[2, 1] == "z 37%\n−1.50"
    assert written[0, 0] == "<s>"


def test_tables_and_report_name_the_fork() -> None:
    found, continuations = beam.numbers(TREE)
    assert found.rows[0] == ["1", "y", "-1.000", "-0.800"]
    assert continuations.rows[2][:2] == ["2", "·x </s>"]
    assert beam.report(TREE)[-1] == "the best hypothesis leaves the greedy path at step 1"


def test_a_real_search_is_drawn(tiny: Translator) -> None:
    source = tiny.tokenizers.source.encode("drei acht")
    tree = grow(tiny, source, Search(beam=3, max_ratio=0.5))
    figure = beam.draw(tree, "drei acht")
    figure.draw_without_rendering()
    assert len(figure.axes[0].texts) == len(tree.nodes)
    alone = grow(tiny, source, Search(beam=1, max_ratio=0.5))
    assert beam.report(alone)[-1] == "greedy search finds the same translation"
