import os

import pytest

from bertscore_onnx.concurrency import cpus


@pytest.mark.parametrize(
    ("content", "features"),
    [
        (
            "processor\t: 0\nflags\t\t: fpu avx avx2 avx512f amx_int8\n",
            ["avx2", "avx512f", "amx_int8"],
        ),
        ("processor\t: 0\nflags\t\t: fpu sse2\n", []),
        ("processor\t: 0\nFeatures\t: fp asimd\n", None),
    ],
)
def test_cpu_features_are_those_that_matter(tmp_path, content, features):
    assert cpus.cpu_features(tmp_path / "cpuinfo") is None
    (tmp_path / "cpuinfo").write_text(content)
    assert cpus.cpu_features(tmp_path / "cpuinfo") == features


def v1(group, quota):
    return {
        f"cpu/{group}cpu.cfs_quota_us": f"{quota}\n",
        f"cpu/{group}cpu.cfs_period_us": "100000\n",
    }


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000"}, 2),
        ("0::/\n", {"cpu.max": "max 100000"}, None),
        ("0::/\n", {"cpu.max": "10000 100000"}, 1),
        (
            "0::/a/b\n",
            {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000", "cpu.max": "max 100000"},
            3,
        ),
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000", "a/cpu.max": "300000 100000"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "900000 100000", "cpu.max": "400000 100000"}, 4),
        ("0::/a\n", {"other/cpu.max": "100000 100000"}, None),
        ("0::/../sibling\n", {"cpu.max": "100000 100000"}, 1),
        ("4:memory:/m\n3:cpu,cpuacct:/a\n", v1("a/", 400000), 4),
        ("3:cpu:/a\n", {**v1("a/", 400000), **v1("", 200000)}, 2),
        ("3:cpu:/seen/from/outside\n0::/\n", v1("", 200000), 2),
        ("3:cpuset:/a\n", v1("a/", 400000), None),
        ("3:cpu:/\n", v1("", -1), None),
        ("", {"cpu.max": "100000 100000"}, None),
    ],
)
def test_the_smallest_quota_up_to_the_root_counts(tmp_path, membership, files, quota):
    root = tmp_path / "cgroup"
    assert cpus.cgroup_quota(root, tmp_path / "membership") is None
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (tmp_path / "membership").write_text(membership)
    assert cpus.cgroup_quota(root, tmp_path / "membership") == quota


@pytest.fixture
def four_cpus(monkeypatch):
    """A system that lets this process keep four CPUs busy, and an environment without limits."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 5}, raising=False)
    monkeypatch.setattr(cpus, "cgroup_quota", lambda: None)
    return monkeypatch


def test_without_bounds_all_permitted_cpus_are_used(four_cpus):
    assert cpus.cpu_bound() == cpus.permitted_cpus() == (4, "affinity")


@pytest.mark.parametrize(
    ("quota", "environment", "expected"),
    [
        (1, "", (1, "quota")),
        (0, "", (1, "quota")),
        (4, "", (4, "affinity")),
        (2, "3", (2, "quota")),
    ],
)
def test_the_quota_bounds_the_cpus(four_cpus, quota, environment, expected):
    four_cpus.setattr(cpus, "cgroup_quota", lambda: quota)
    four_cpus.setenv("OMP_NUM_THREADS", environment)
    assert cpus.cpu_bound() == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", (1, "OMP_NUM_THREADS")),
        ("3,2", (3, "OMP_NUM_THREADS")),  # a number for each level of nesting
        (" 2 , 1", (2, "OMP_NUM_THREADS")),
        ("+02", (2, "OMP_NUM_THREADS")),
        ("4", (4, "affinity")),
        ("16", (4, "affinity")),
        *(
            (value, (4, "affinity"))
            for value in ("", "0", "-1", "two", "2x", "1.5", ",2", "9" * 5000, "\u0662")
        ),
    ],
)
def test_the_environment_bounds_the_cpus(four_cpus, value, expected):
    four_cpus.setenv("OMP_NUM_THREADS", value)
    assert cpus.cpu_bound() == expected
    assert cpus.permitted_cpus() == (4, "affinity")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_the_affinity_bounds_the_cpus():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpus.usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)
