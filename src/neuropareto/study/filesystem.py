"""Where a study file lies: local disk or network file system, and how much room is left.

Shared-memory journals (WAL) and file locks are unsafe on network file systems, so the store asks
here first. Only Linux tells; elsewhere a path counts as local.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_NETWORK = re.compile(
    r"(fuse\.)?(nfs\d*|cifs|smb\w*|lustre|beegfs\w*|gpfs|gluster\w*|ceph\w*|sshfs|afs|9p|ncp\w*"
    r"|panfs|orangefs|pvfs2|ocfs2|gfs2|davfs\w*|glusterfs|s3fs|rclone|gcsfuse|quobyte|moosefs|juicefs)"
)


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system that holds ``path`` ("nfs4", ...), None if it is local.

    ``mounts`` is a table in the form of /proc/mounts, read from the system if not given.
    """
    if mounts is None:
        table = Path("/proc/self/mounts")
        if not table.exists():
            return None
        mounts = table.read_text(encoding="utf-8", errors="surrogateescape")
    place = Path(os.path.realpath(path))
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescaped(fields[1]))
        # A later mount on the same point hides the earlier one, hence >=.
        if (place == point or point in place.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if _NETWORK.fullmatch(kind) else None


def free_bytes(path: Path) -> int:
    """Bytes an ordinary user can still write where ``path`` lies."""
    if os.name != "posix":
        import shutil

        return shutil.disk_usage(path.parent).free
    room = os.statvfs(path.parent)
    return room.f_bavail * room.f_frsize


def sync_directory(path: Path) -> None:
    """Make the directory entry of a new file durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), field)
