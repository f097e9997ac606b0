#!/usr/bin/env python3
"""Says what became of the mutants: report.py FOLDER RESULTS [EQUIVALENT]; or which are to be judged,
report.py --sample N FOLDER: all waits, fences, arrivals and parities, and one in N of the others.

FOLDER is what mutate.py wrote, RESULTS what judge printed. Of EQUIVALENT each line that is no comment has the file, the kind
and a part of the text of mutants that change nothing, with the reason; '*' stands for any kind. The text is the line before,
' >> ', the code, ' => ', and what it becomes. Mutants that no kernel reaches are
those of code that only the compiler evaluates, or that the kernels of the judge have no use for: they do not count.
"""
import json
import sys
import zlib
from collections import Counter
from pathlib import Path


def read_equivalent(path):
    known = []
    for line in Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            file, kind, text, reason = (part.strip() for part in line.split(" | ", 3))
            known.append((file, kind, text, reason))
    return known


def sample(one_in, folder):
    """Ids, first those of what orders threads; which of the others stays the same while their lines do."""
    def number(mutant):
        return zlib.crc32(f"{mutant['file']}{mutant['before']}{mutant['kind']}{mutant['line']}".encode())
    mutants = json.loads((Path(folder) / "mutants.json").read_text())
    taken = [mutant for mutant in mutants if number(mutant) % max(1, one_in * min(1, mutant["weight"]) * max(1, 3 * (mutant["weight"] - 1))) == 0]
    print(",".join(str(mutant["id"]) for mutant in sorted(taken, key=lambda mutant: (mutant["weight"] > 0, number(mutant)))))


def main():
    if sys.argv[1] == "--sample":
        sample(int(sys.argv[2]), sys.argv[3])
        return
    mutants = {mutant["id"]: mutant for mutant in json.loads((Path(sys.argv[1]) / "mutants.json").read_text())}
    lines = Path(sys.argv[2]).read_text().splitlines()
    # Of several runs the last counts.
    results = {result["id"]: result for result in (json.loads(line) for line in lines if line.startswith("{"))}.values()
    known = read_equivalent(sys.argv[3]) if len(sys.argv) > 3 else []

    def is_equivalent(mutant):
        return any(mutant["file"] == file and kind in ("*", mutant["kind"]) and text in f"{mutant['behind']} >> {mutant['before']} => {mutant['after']}"
                   for file, kind, text, _ in known)

    counts = Counter()
    files = {}
    survivors = []
    for result in results:
        mutant = mutants[result["id"]]
        verdict = result["verdict"]
        if verdict in ("survived", "unfinished") and is_equivalent(mutant):
            verdict = "equivalent"
        counts[verdict] += 1
        if verdict == "survived":
            survivors.append(mutant)
        if verdict not in ("unreached", "unfinished", "survived so far", "equivalent"):
            killed, all_ = files.get(mutant["file"], (0, 0))
            files[mutant["file"]] = (killed + (verdict != "survived"), all_ + 1)
    for mutant in survivors:
        print(f"survived: {mutant['file']}:{mutant['line']}: {mutant['kind']}: {mutant['before']} => {mutant['after']}")
    for file, (killed, all_) in sorted(files.items()):
        print(f"{file:<36} {killed:>5} of {all_}")
    killed = sum(counts[verdict] for verdict in ("difference", "report", "crash", "timeout"))
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    # What no kernel has killed yet counts as a survivor, whether all kernels have been tried or not.
    judged = killed + counts["survived"] + counts["survived so far"] + counts["unfinished"]
    print(f"killed: {killed} of {judged} = {100 * killed / max(1, judged):.1f} %")


if __name__ == "__main__":
    main()
