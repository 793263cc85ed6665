"""What a manifest tells of machine and versions."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata

from nmt.stages.environment import environment


def test_versions_and_machine_are_told_as_json_can_hold_them() -> None:
    found = json.loads(json.dumps(environment()))
    assert found["packages"]["torch"] == metadata.version("torch")
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["cores"] > 0 and found["system"]


def test_asking_loads_no_library() -> None:
    code = (
        "import sys; from nmt.stages.environment import environment; environment(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
