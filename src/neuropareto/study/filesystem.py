"""Where a study file lies: local disk or network file system, how much room is left, what is its own.

Shared-memory journals (WAL) and file locks are unsafe on network file systems, so the store asks
here first. Only Linux tells; elsewhere a path counts as local.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from neuropareto.study.errors import StorageError

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


def check_folder(path: Path) -> None:
    """Raise StorageError if the folder of a new file is not there or takes nothing."""
    folder = path.parent
    if not folder.is_dir():
        raise StorageError(f"There is no folder {str(folder)!a} for the study; make it first.")
    if not os.access(folder, os.W_OK):
        raise StorageError(
            f"The folder {str(folder)!a} cannot be written to; allow it, or choose another."
        )


def sync_directory(path: Path) -> None:
    """Make the directory entry of a new file durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def with_journals(store: Path) -> tuple[Path, ...]:
    """A database and the files that SQLite keeps beside it."""
    return (store, *(store.with_name(store.name + end) for end in ("-wal", "-shm", "-journal")))


def refuse_overwriting(output: Path, own: Iterable[Path]) -> None:
    """Raise ValueError if ``output`` is one of ``own``, by whatever name."""
    for one in own:
        same = output.exists() and one.exists() and output.samefile(one)
        if same or output.resolve() == one.resolve():
            raise ValueError(
                f"{str(output)!a} belongs to a study and would be lost; write to another file."
            )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside ``path``, which takes its place if nothing goes wrong."""
    if path.exists() and not path.is_file():
        yield path  # a device or a pipe
        return
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(target.parent)!a} to write to; make it first."
        )
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), field)
