import os

import pytest

from bertscore_onnx import processor


@pytest.mark.parametrize(
    ("content", "features"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx avx2 avx512f amx_int8\n", ["avx2", "avx512f", "amx_int8"]),
        ("processor\t: 0\nflags\t\t: fpu sse2\n", []),
        ("processor\t: 0\nFeatures\t: fp asimd\n", None),
    ],
)
def test_cpu_features_are_those_that_matter(tmp_path, content, features):
    (tmp_path / "cpuinfo").write_text(content)
    assert processor.cpu_features(tmp_path / "cpuinfo") == features


def test_cpu_features_are_unknown_where_nothing_tells(tmp_path):
    assert processor.cpu_features(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.max": "10000 100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_a_containers_quota_is_read_in_cpus(tmp_path, files, quota):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert processor._cgroup_quota(tmp_path) == quota


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_the_affinity_bounds_the_cpus():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert processor.usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)
