"""What the processor of this machine can do, and how much of it this process may use."""

import os
from pathlib import Path

CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_bf16", "amx_int8")
"""What ONNX Runtime's CPU kernels make use of."""


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str] | None:
    """Return those of `CPU_FEATURES` that Linux says the CPU has; None where it does not say."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), None)
    return None if flags is None else [feature for feature in CPU_FEATURES if feature in flags]


def usable_cpus() -> int:
    """Return how many CPUs this process may keep busy: its affinity, and its container's quota, rounded up."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return cpus if quota is None else max(1, min(cpus, quota))


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the CPU quota of a Linux control group (version 2, then 1) in CPUs rounded up, or None."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota in ("max", "-1"):
        return None
    return -(-int(quota) // int(period))
