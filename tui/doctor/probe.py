"""Run as a program: import torch and say what it sees, as a line of JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def driver_version() -> str | None:
    """The NVIDIA driver's version, as its kernel module tells; None where there is none."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"Kernel Module.*?(\d+\.[\d.]+)", text)
    return found[1] if found else ""


def main() -> None:
    """Print what torch and the driver say."""
    import torch

    from presets.build import resolve_device
    from trainer.threads import keep_torch_to_its_cores

    keep_torch_to_its_cores()
    device = resolve_device("auto")
    cards: list[dict[str, Any]] = []
    if device.kind == "cuda":
        for index in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(index)
            cards.append({"name": torch.cuda.get_device_name(index), "free": free, "total": total})
    note = re.fullmatch(r"no GPU \((.*)\)", device.note)
    report = {
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "driver": driver_version(),
        "cards": cards,
        "reason": None if device.kind == "cuda" else (note[1] if note else device.note),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
