"""How long commands take from their start: medians of wall times.

With `--model`, also until the first line is translated, in each precision, beside `import torch` alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from record import record

COMMANDS = {
    "python alone": ["-c", "pass"],
    "import torch": ["-c", "import torch"],
    "import nmt": ["-c", "import nmt"],
    "nmt --version": ["-m", "nmt", "--version"],
    "nmt --help": ["-m", "nmt", "--help"],
    "nmt translate --help": ["-m", "nmt", "translate", "--help"],
    "nmt recipe show": ["-m", "nmt", "recipe", "show", "recipes/sample.toml"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=11, help="runs of each; the first is not counted (default 11)")
    parser.add_argument("--model", help="a run or model folder, which translates one line")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    results, commands = {}, dict(COMMANDS)
    for precision in ("float32", "int8") if options.model else ():
        translate = ["-m", "nmt", "translate", options.model, "--precision", precision, "--quiet"]
        commands[f"nmt translate --precision {precision}, one line"] = translate
    for name, arguments in commands.items():
        times = [seconds(arguments) for _ in range(options.repeats + 1)][1:]
        results[name] = {"median_s": round(statistics.median(times), 4), "fastest_s": round(min(times), 4)}
    record("startup", {"repeats": options.repeats}, results, options.save)


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, input=b"A man is standing.\n", stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
