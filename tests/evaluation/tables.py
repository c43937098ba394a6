"""Texts of tables that several tests write, and systems whose outputs are partly the references."""

import json


def csv_text(columns, order=None, *, delimiter=",", header=True):
    """Return a table of these rows, by default of all; NaN is an empty cell."""
    rows = [*zip(*columns.values(), strict=True)]
    if order is not None:
        rows = [rows[row] for row in order]
    table = [[*columns], *rows] if header else rows
    cells = [["" if cell != cell else str(cell) for cell in row] for row in table]
    return lines(map(delimiter.join, cells))


def json_lines(columns):
    rows = zip(*columns.values(), strict=True)
    return lines(json.dumps(dict(zip(columns, row, strict=True))) for row in rows)


def lines(values):
    return "".join(f"{value}\n" for value in values)


def texts_of_systems(names, number):
    """Return references, and outputs that differ from them in each 2nd, 3rd and 5th segment."""
    references = [f"the cat number {row} sat on mat {row % 7}" for row in range(number)]
    outputs = {
        name: [text if row % step else f"a dog {row}" for row, text in enumerate(references)]
        for name, step in zip(names, (2, 3, 5), strict=False)
    }
    return references, outputs
