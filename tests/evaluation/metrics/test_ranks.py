import numpy as np

from bertscore_onnx_evaluation.metrics.ranks import clusters


def test_a_rank_begins_where_any_member_is_significantly_better():
    scores = np.array([0.7, 0.9, 0.8, 0.6])  # walked as 1, 2, 0, 3
    p = np.full((4, 4), 0.5)
    p[1, 0] = 0.01  # the best beats the third, though the second does not
    p[1, 3] = 0.01  # of another cluster by then
    p[0, 3] = 0.05  # not below alpha
    assert clusters(scores, p).tolist() == [2, 1, 1, 2]
