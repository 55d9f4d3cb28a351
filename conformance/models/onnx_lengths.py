#!/usr/bin/env python3
"""What first calls with new sizes cost: runs the calls of a case of onnx_sizes.py in one session, each twice, and tells versions, what is not right, and what the
first call of a size takes more than the second where no version was made for it.

    onnx_lengths.py [--device vulkan] [--rows FILE.npz] MODEL.onnx

`--rows` is what is right of the last rows of the first result, in place of what ONNX Runtime gives.
"""
import argparse
import json
import pathlib
import statistics
import time

import numpy as np
from onnx_sizes import TOLERANCE, Expected, Reference, calls_of, difference


def main():
    import halite

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--rows", type=pathlib.Path)
    args = parser.parse_args()
    other = Expected(args.rows) if args.rows else Reference(args.model)
    session = halite.Session(str(args.model), device=args.device, cache=False, max_loaded_versions=256)
    more, right, calls = [], 0, calls_of(args.model.with_suffix(".npz"))
    for index, call in enumerate(calls):
        wanted, versions, times = other.run(index, call)[0], session.loaded_versions, []
        for _ in range(2):
            start = time.perf_counter()
            found = np.asarray(session.run(call)[other.names[0]])
            times.append((time.perf_counter() - start) * 1e3)
        found = found[:, -1:, : wanted.shape[-1]] if args.rows else found
        right += difference(found, wanted) <= TOLERANCE
        if session.loaded_versions == versions:
            more.append(times[0] - times[1])
    print(json.dumps({"file": args.model.name, "right": f"{right} of {len(calls)}", "versions": session.loaded_versions, "sizes without a new version": len(more),
                      "ms more, median": round(statistics.median(more), 3), "most": round(max(more), 3)}))


if __name__ == "__main__":
    main()
