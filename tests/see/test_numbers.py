"""Tables of a figure's numbers: named rows and columns, whatever is hidden."""

from matplotlib.figure import Figure

from seq2see.see import numbers
from seq2see.see.numbers import Numbers, numbers_of


def test_a_map_keeps_rows_and_columns_apart() -> None:
    figure = Figure()
    axes = figure.subplots()
    image = axes.imshow([[1, 2, 3], [4, 5.5, 6]])
    axes.set(title="map", xlabel="key", ylabel="query")
    axes.set_xticks(range(3), ["a", "b", "c"])
    axes.tick_params(labelbottom=False)  # hidden names count, too
    figure.colorbar(image)
    head = ["query ↓  key →", "a", "b", "c"]
    assert numbers_of(figure) == [
        Numbers("map", head, [["1", "1", "2", "3"], ["2", "4", "5.5", "6"]])
    ]


def test_curves_share_a_table_by_x() -> None:
    axes = Figure().subplots()
    axes.plot([1, 3], [10, 30], label="one")
    axes.plot([2, 3], [0.25, 0.5], label="two")
    axes.plot([0, 9], [0, 9])  # no name: not in the legend
    axes.set(title="chart", xlabel="x", ylabel="y")
    (table,) = numbers_of(axes.get_figure())
    assert (table.caption, table.head) == ("chart (y)", ["x", "one", "two"])
    assert table.rows == [["1", "10", ""], ["2", "", "0.25"], ["3", "30", "0.5"]]


def test_categories_keep_their_order() -> None:
    axes = Figure().subplots()
    axes.plot(["6-10", "11-15"], [1, 2], label="one")
    (table,) = numbers_of(axes.get_figure())
    assert table.rows == [["6-10", "1"], ["11-15", "2"]]


def test_long_curves_are_thinned_and_bars_are_tabulated() -> None:
    figure = Figure()
    curve, bars = figure.subplots(1, 2)
    curve.plot(range(1000), range(1000), label="long")
    bars.barh([0, 1], [3, 4], label="size")
    bars.set_yticks([0, 1], ["a", "b"])
    bars.set(ylabel="name")
    long, tabulated = numbers_of(figure)
    assert len(long.rows) == numbers.MOST_ROWS
    assert all(x == y for x, y in long.rows)
    assert tabulated == Numbers("", ["name", "size"], [["a", "3"], ["b", "4"]])
