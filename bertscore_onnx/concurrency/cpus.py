"""CPUs of this machine.

`cpu_features` lists what they can do, and `usable_cpus` counts those that this process may keep
busy.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_bf16", "amx_int8")
"""The features that ONNX Runtime's CPU kernels use."""


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str] | None:
    """Return the `CPU_FEATURES` that the CPU has.

    The result is None if Linux does not list the features of the CPU.
    """
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    # All CPUs have the same flags: the first line tells them.
    for line in lines:
        if line.startswith("flags"):
            flags = line.partition(":")[2].split()
            return [feature for feature in CPU_FEATURES if feature in flags]
    return None


CpuSource = Literal["affinity", "quota", "OMP_NUM_THREADS"]
"""The limit on the CPUs of a process: the CPUs that it may run on, all of the machine's unless
something restricts it; the quota of its container, or of another control group; or the environment
variable of OpenMP, which Ray and Spark set to the CPUs of a worker."""


def usable_cpus() -> int:
    """Return how many CPUs this process should keep busy.

    Those the system permits, at most `OMP_NUM_THREADS`.
    """
    number, _ = cpu_bound()
    return number


def cpu_bound() -> tuple[int, CpuSource]:
    """Return how many CPUs this process should keep busy, and the limit.

    Of equal limits the first in `CpuSource`.
    """
    permitted, source = permitted_cpus()
    requested = _openmp_threads(os.environ.get("OMP_NUM_THREADS", ""))
    if requested is None or requested >= permitted:
        return permitted, source
    return requested, "OMP_NUM_THREADS"


def permitted_cpus() -> tuple[int, CpuSource]:
    """Return how many CPUs the system lets this process keep busy.

    The limit is its affinity, or its quota, rounded up.
    """
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    quota = cgroup_quota()
    if quota is None or quota >= cpus:
        return cpus, "affinity"
    return max(1, quota), "quota"


def _openmp_threads(value: str) -> int | None:
    """Return the first number of `OMP_NUM_THREADS` if it is positive, or else None."""
    # "4,2" has one number per nesting level; OpenMP ignores other values too
    number = re.match(r"\s*\+?0*([1-9][0-9]{0,8})\s*(,|$)", value)
    return int(number[1]) if number else None


def cgroup_quota(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Return the CPU quota of this process's Linux control group, or None.

    The quota is in CPUs, rounded up. The quotas of the groups above apply too, so the smallest one
    up to the root counts.
    """
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    quotas: list[int | None] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:  # version 2
            quotas += map(_quota_of_v2, _up_to_root(root, group))
        elif "cpu" in controllers.split(","):
            quotas += map(_quota_of_v1, _up_to_root(root / "cpu", group))
    return min((quota for quota in quotas if quota is not None), default=None)


def _up_to_root(root: Path, group: str) -> Iterator[Path]:
    """Yield the folders of a group and of the groups above it.

    A container may see its own group as the root.
    """
    path = PurePosixPath(group.lstrip("/"))
    for folder in (path, *path.parents):
        if ".." not in folder.parts:
            yield root / folder


def _quota_of_v2(folder: Path) -> int | None:
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return None
    if quota == "max":
        return None
    return -(-int(quota) // int(period))


def _quota_of_v1(folder: Path) -> int | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8"))
    except OSError:
        return None
    if quota < 0:
        return None
    return -(-quota // period)
