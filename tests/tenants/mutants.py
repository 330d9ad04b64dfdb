"""Removes one condition at a time that keeps tenants apart, and sees that a test fails.

Works in a copy of the checkout under the target folder, which it leaves there for the next time. A
mutant is a file and a text in it, which must be there exactly once: a mutant whose text is gone stops
the script, so that the list stays true. The policies of PostgreSQL need `JURAT_TEST_POSTGRES`.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from mutants_faults import FAULTS
from mutants_list import POLICIES, QUERIES

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What nextest says with its exit code.
FAILED_TESTS, NO_TESTS = 100, 4


def tracked():
    """The files of the checkout as they are now, also those that are not committed."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def copy(scratch):
    """Brings the copy up to date. What is the same stays as it is, and is not built again."""
    names = set(tracked())
    for name in names:
        source, target = ROOT / name, scratch / name
        content = source.read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode)
    for left in scratch.rglob("*"):
        if left.is_file() and str(left.relative_to(scratch)) not in names:
            left.unlink()


def run(scratch, target, package, tests):
    """The exit code of the tests, and what they said."""
    words = ["cargo", "nextest", "run", "--locked", "--profile", "ci", "--fail-fast"]
    words += ["--package", package, "--test", "it", "-E", tests]
    env = os.environ | {"CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"}
    done = subprocess.run(words, cwd=scratch, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check(mutants):
    """Every text is there once, before anything is built."""
    gone = []
    for mutant in mutants:
        count = (ROOT / mutant.file).read_text().count(mutant.old)
        if count != 1:
            gone.append(f"{mutant.name}: {mutant.file} has its text {count} times")
    if gone:
        raise SystemExit("mend the list of mutants:\n" + "\n".join(gone))
    names = [mutant.name for mutant in mutants]
    if len(set(names)) != len(names):
        raise SystemExit("two mutants have the same name")


def try_one(scratch, target, mutant):
    """Whether it was noticed, and by which test."""
    path = scratch / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        code, said = run(scratch, target, mutant.package, mutant.tests)
    finally:
        path.write_text(text)
    if code == FAILED_TESTS:
        found = re.search(r"(?:FAIL|TIMEOUT|SIG\w+) \[[^]]*\].*?(\S+::\S+)", said)
        return True, found[1] if found else "a test"
    if code == 0:
        return False, "SURVIVED"
    # Such a mutant proves nothing, and is not taken for one that was noticed.
    why = "NO TEST WAS CHOSEN" if code == NO_TESTS else "DOES NOT BUILD"
    return False, why + "\n" + said[-2000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="only mutants whose name has one of these in it")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--target", default=os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")))
    args = parser.parse_args()
    everything = [*QUERIES, *POLICIES, *FAULTS]
    check(everything)
    wanted = [it for it in everything if not args.names or any(name in it.name for name in args.names)]
    if args.list:
        print("\n".join(f"{it.name:44} {it.file}" for it in wanted))
        return
    if not wanted:
        raise SystemExit("no mutant has such a name")
    target = pathlib.Path(args.target).resolve()
    scratch = target / "mutants"
    scratch.mkdir(parents=True, exist_ok=True)
    copy(scratch)
    for package, tests in sorted({(it.package, it.tests) for it in wanted}):
        code, said = run(scratch, target, package, tests)
        if code != 0:
            raise SystemExit(f"{package} fails without any mutant: {tests}\n{said[-4000:]}")
    survivors = []
    for number, mutant in enumerate(wanted, 1):
        begun = time.monotonic()
        is_caught, by = try_one(scratch, target, mutant)
        taken = time.monotonic() - begun
        print(f"{number:3} {taken:4.0f} s  {mutant.name:50} {by}", flush=True)
        if not is_caught:
            survivors.append(mutant.name)
    print(f"{len(wanted)} mutants, {len(wanted) - len(survivors)} caught")
    if survivors:
        raise SystemExit("nothing noticed:\n" + "\n".join(survivors))


if __name__ == "__main__":
    main()
