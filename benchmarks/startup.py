"""How long it takes until `nmt --help`, `nmt --version` and `import nmt` are done: medians of wall times."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from record import record

COMMANDS = {
    "python alone": ["-c", "pass"],
    "import nmt": ["-c", "import nmt"],
    "nmt --version": ["-m", "nmt", "--version"],
    "nmt --help": ["-m", "nmt", "--help"],
    "nmt translate --help": ["-m", "nmt", "translate", "--help"],
    "nmt recipe show": ["-m", "nmt", "recipe", "show", "recipes/sample.toml"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=11, help="runs of each; the first is not counted (default 11)")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    results = {}
    for name, arguments in COMMANDS.items():
        times = [seconds(arguments) for _ in range(options.repeats + 1)][1:]
        results[name] = {"median_s": round(statistics.median(times), 4), "fastest_s": round(min(times), 4)}
    record("startup", {"repeats": options.repeats}, results, options.save)


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
