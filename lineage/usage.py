"""What files take on disk."""

from pathlib import Path


def allocated(path: Path) -> int:
    """Bytes on disk of one file."""
    return path.stat().st_blocks * 512


def freed_by(path: Path) -> int:
    """Bytes that removing a file frees: none while another link holds it."""
    return allocated(path) if path.stat().st_nlink == 1 else 0


def disk_usage(*folders: Path) -> int:
    """Bytes on disk of all files below these folders, each counted once however many links it has."""
    found = [path.lstat() for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sum({(stat.st_dev, stat.st_ino): stat.st_blocks * 512 for stat in found}.values())
