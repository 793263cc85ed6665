"""The command line as a process of its own."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

from .main import main


def run() -> NoReturn:
    """Run the process's own command line, and end the process with its status.

    Where torch was loaded, taking the interpreter apart piece by piece would take another half second: what matters is
    done here, and the rest left to the system. Python itself ends what has a thread that still works, or output that
    cannot be written.
    """
    status = main()
    working = any(not thread.daemon for thread in threading.enumerate() if thread is not threading.current_thread())
    if "torch" in sys.modules and not working:
        atexit._run_exitfuncs()
        if _printed():
            os._exit(status)
    sys.exit(status)


def _printed() -> bool:
    """Whether all that was printed is on its way."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
