"""Prints a table of the scores of runs of HELM, for `compare --scores`, from their files
`per_instance_stats.json`.

    python helm.py RUN_FOLDER ANOTHER_RUN_FOLDER METRIC > helm.csv

The systems are called after the folders, and the metric as HELM calls it, such as `exact_match`.
"""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def rows_of(run: Path, metric: str) -> Iterator[tuple[str, str, float]]:
    """Yield the system, the segment and the score of each instance."""
    for instance in json.loads((run / "per_instance_stats.json").read_text(encoding="utf-8")):
        perturbation = json.dumps(instance.get("perturbation"))
        segment = f"{instance['instance_id']} {instance['train_trial_index']} {perturbation}"
        for stat in instance["stats"]:
            if stat["name"]["name"] == metric and "mean" in stat:
                yield run.name, segment, stat["mean"]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    *runs, metric = sys.argv[1:]
    table = csv.writer(sys.stdout)
    table.writerow(("system", "segment", metric))
    for run in runs:
        table.writerows(rows_of(Path(run), metric))
