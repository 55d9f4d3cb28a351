#!/usr/bin/env python3
"""Makes `.vgf` and `.tosa` files that are wrong in ways that single bytes rarely are, for the fuzz targets of these names.

usage: vgf_mutants.py {vgf,tosa} OUT_DIR SEED_DIR ... [--count N] [--seed S]

OUT_DIR gets the files of a kind below the seed folders, up to 64 KiB each, and N mutants of them. In `.vgf`: sections that are cut, moved,
swapped, or whose sizes lie; entries of the constants' table; instructions of the graph's SPIR-V that are lost, doubled, swapped, of other
lengths or numbers, with other operands and with extreme constants; in both kinds: offsets, lengths and fields of the FlatBuffers.
The same seed gives the same files. Needs Python alone. Then:

    RUSTC_BOOTSTRAP=1 cargo fuzz run vgf OUT_DIR -- -runs=0 -timeout=20 -rss_limit_mb=2048
"""
import argparse, pathlib, random, struct

LARGEST = 65536
SIZES = [0, 1, 2, 3, 4, 7, 16, 127, 128, 255, 4096, 65535, 65536, 2**24, 2**28, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2, 2**32 - 8]
WIDE = SIZES + [2**32, 2**33, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 8]
# Places of the header's (offset, size) pairs: modules, sequence, resources, constants.
SECTIONS = [16, 32, 48, 64]
SPIRV_MAGIC = struct.pack("<I", 0x07230203)
# Instructions that hold numbers: constants, and composites of them; and those that hold a graph together.
CONSTANT, COMPOSITE = 43, 44


def sections(data):
    """(where the pair lies, offset, size) of the sections that lie in the file."""
    found = [(at, *struct.unpack_from("<QQ", data, at)) for at in SECTIONS]
    return [(at, offset, size) for at, offset, size in found if 0 < size and offset + size <= len(data)]


def cut(pick, data, _):
    del data[pick.choice([pick.randrange(len(data)), len(data) - 1, 128, *(offset for _, offset, _ in sections(data))]) :]


def lie_in_header(pick, data, _):
    at = pick.choice(SECTIONS) + pick.choice([0, 8])
    old = struct.unpack_from("<Q", data, at)[0]
    new = pick.choice(WIDE) if pick.random() < 0.5 else (old + pick.choice([-8, -4, -1, 1, 4, 8, 128, old])) % 2**64
    struct.pack_into("<Q", data, at, new)


def swap_sections(pick, data, _):
    a, b = pick.sample(SECTIONS, 2)
    data[a : a + 16], data[b : b + 16] = data[b : b + 16], data[a : a + 16]


def other_section(pick, data, seeds):
    """A section of another file."""
    at, offset, size = pick.choice(sections(data))
    other = pick.choice(seeds)
    _, start, length = pick.choice([s for s in sections(other) if s[0] == at])
    data += bytes(-len(data) % 8)
    struct.pack_into("<QQ", data, at, len(data), length)
    data += other[start : start + length]


def version(pick, data, _):
    data[pick.choice([0, 3, 4, 8, 9, 10])] = pick.choice([0, 1, 2, 3, 4, 5, 6, 255])


def constants(pick, data, _):
    """A field of the constants' table: its count, an entry's resource, sparsity, size or offset."""
    [(_, offset, size)] = [s for s in sections(data) if s[0] == 64]
    count = struct.unpack_from("<Q", data, offset + 8)[0]
    if pick.random() < 0.2 or not count:
        struct.pack_into("<Q", data, offset + 8, pick.choice(WIDE))
        return
    entry = offset + 16 + 24 * pick.randrange(count)
    if pick.random() < 0.5:
        struct.pack_into("<I", data, entry + pick.choice([0, 4]), pick.choice(SIZES))
    else:
        struct.pack_into("<Q", data, entry + pick.choice([8, 16]), pick.choice(WIDE))


def buffer(pick, data, _):
    """A word of a FlatBuffer: an offset, a length or a field; most lie before long vectors."""
    found = [(offset, size) for at, offset, size in sections(data) if at != 64] if data[:4] == b"VGF1" else [(0, len(data))]
    offset, size = pick.choice(found)
    reach = size if pick.random() < 0.5 else min(size, 600)
    start = pick.choice([0, max(0, size - reach)])
    at = offset + start + pick.randrange(max(1, reach // 4)) * 4
    for _ in range(pick.choice([1, 1, 2])):
        change(pick, data, at)
        at = min(at + 4 * pick.randrange(8), len(data) - 4)


def change(pick, data, at):
    how = pick.randrange(5)
    old = struct.unpack_from("<I", data, at)[0]
    if how == 0:
        struct.pack_into("<I", data, at, pick.choice(SIZES))
    elif how == 1:
        struct.pack_into("<I", data, at, (old + pick.choice([-8, -4, -2, -1, 1, 2, 4, 8])) % 2**32)
    elif how == 2:
        struct.pack_into("<H", data, at + pick.choice([0, 2]), pick.choice([0, 1, 4, 6, 8, 65535]))
    elif how == 3:
        data[at + pick.randrange(4)] ^= 1 << pick.randrange(8)
    else:
        other = pick.randrange(len(data) // 4) * 4
        data[at : at + 4], data[other : other + 4] = data[other : other + 4], data[at : at + 4]


def instructions(data):
    """Where the graph's instructions lie: (byte, words, opcode)."""
    start = data.find(SPIRV_MAGIC)
    [(offset, size)] = [(offset, size) for at, offset, size in sections(data) if at == 16]
    end = offset + size
    at, found = start + 20, []
    while start >= 0 and at + 4 <= end:
        word = struct.unpack_from("<I", data, at)[0]
        if not word >> 16 or at + 4 * (word >> 16) > end:
            break
        found.append((at, word >> 16, word & 0xFFFF))
        at += 4 * (word >> 16)
    return found


def spirv(pick, data, _):
    found = instructions(data)
    for _ in range(pick.choice([1, 1, 2, 3])):
        at, words, code = pick.choice(found)
        if pick.random() < 0.4:
            at, words, code = pick.choice([f for f in found if f[2] in (CONSTANT, COMPOSITE, 12, 4163, 4184, 4185)])
        spirv_change(pick, data, found, at, words, code)


def spirv_change(pick, data, found, at, words, code):
    how = pick.randrange(6)
    if how == 0 and words > 1:
        place = at + 4 * pick.randrange(1, words)
        largest = max(struct.unpack_from("<I", data, a + 8)[0] for a, w, _ in found if w > 2)
        struct.pack_into("<I", data, place, pick.choice([pick.randrange(1, 200), largest, largest + 1, *SIZES]))
    elif how == 1 and code == CONSTANT:
        struct.pack_into("<I", data, at + 12, pick.choice([*SIZES, 5, 6, 8, 9, 64, 0x7F800000, 0x7FC00000]))
    elif how == 2:
        struct.pack_into("<I", data, at, (pick.choice([0, 1, words - 1, words + 1, 65535]) % 65536) << 16 | code)
    elif how == 3:
        struct.pack_into("<I", data, at, words << 16 | pick.choice([other for _, _, other in found]))
    elif how == 4:
        same = [f for f in found if f[1] == words]
        to = pick.choice(same)[0]
        data[at : at + 4 * words], data[to : to + 4 * words] = data[to : to + 4 * words], data[at : at + 4 * words]
    else:
        # An instruction that does nothing, as many times as this one had words: it is lost.
        data[at : at + 4 * words] = struct.pack("<I", 1 << 16) * words


def flip(pick, data, _):
    for _ in range(pick.choice([1, 4, 16])):
        data[pick.randrange(len(data))] ^= 1 << pick.randrange(8)


def numbers(pick, data, _):
    """One number of 32 bits becomes another wherever it is written: sizes and indices that several tables share."""
    at = pick.randrange(len(data) // 4) * 4
    old, new = bytes(data[at : at + 4]), struct.pack("<I", pick.choice(SIZES))
    data[:] = data.replace(old, new, pick.choice([1, 2, 4]))


MUTATIONS = {
    "vgf": [cut, lie_in_header, lie_in_header, swap_sections, other_section, version, constants, constants, buffer, buffer, buffer, spirv, spirv, spirv, spirv, flip],
    "tosa": [cut, buffer, buffer, buffer, buffer, buffer, numbers, flip],
}


def mutant(pick, seeds, kind):
    """A file with some mutations; one that does not apply to it is left out."""
    data = bytearray(pick.choice(seeds))
    for _ in range(pick.choice([1, 1, 2, 3])):
        try:
            pick.choice(MUTATIONS[kind])(pick, data, seeds)
        except (IndexError, ValueError, struct.error):
            continue
    return bytes(data[:LARGEST])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(MUTATIONS))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("seeds", type=pathlib.Path, nargs="+")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    files = sorted(path for folder in args.seeds for path in folder.rglob(f"*.{args.kind}") if path.stat().st_size <= LARGEST)
    seeds = [path.read_bytes() for path in files]
    args.out.mkdir(parents=True, exist_ok=True)
    for n, seed in enumerate(seeds):
        (args.out / f"seed-{n}").write_bytes(seed)
    pick = random.Random(args.seed)
    for n in range(args.count):
        (args.out / f"mutant-{args.seed}-{n}").write_bytes(mutant(pick, seeds, args.kind))
    print(f"{len(seeds)} seeds, {args.count} mutants")


if __name__ == "__main__":
    main()
