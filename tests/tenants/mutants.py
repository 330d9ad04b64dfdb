"""Removes one condition at a time that keeps tenants apart, and sees that a test fails.

A mutant is a file, a text that must be there exactly once, and what stands there instead: a mutant
whose text is gone stops the script, so that the list stays true. Works in copies of the checkout under
the target folder, which it leaves there for the next time.

Most mutants are in SQL. To build them all at once, the copy of the store marks each with a comment in
its statement, and makes the change where statements are prepared, for the one that the environment
names. The others are made in the source and built one by one. In the copy of the store the test kit
has nothing but its PostgreSQL, so that no server is built.

The policies of PostgreSQL need `JURAT_TEST_POSTGRES`.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from mutants_faults import FAULTS
from mutants_list import MIGRATIONS, POLICIES, QUERIES, STORE

ROOT = pathlib.Path(__file__).resolve().parents[2]
# How many seconds the tests of one mutant may take.
PATIENCE = 300
KIT = "crates/testkit/"
# What the store needs of the test kit.
SMALL_KIT = {
    KIT + "Cargo.toml": """[package]
name = "jurat-testkit"
version = "0.1.0"
edition = "2024"

[dependencies]
jurat-store.workspace = true
sqlx.workspace = true
url.workspace = true
""",
    KIT + "src/lib.rs": "pub mod postgres;\n",
}
# The mark of the mutant that is wanted stays, to find its place; all others go.
SWITCH = """
pub(crate) fn mutated(text: &str) -> String {
    let named = |name| std::env::var(name).unwrap_or_default();
    let (old, new) = (named("MUTANT_OLD"), named("MUTANT_NEW"));
    if old.is_empty() {
        return text.to_owned();
    }
    let mark = old.find("/*m").map(|at| &old[at..]);
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("/*m") {
        let end = rest[at..].find("*/").map_or(rest.len(), |length| at + length + 2);
        kept.push_str(&rest[..at]);
        kept.push_str(if Some(&rest[at..end]) == mark { &rest[at..end] } else { "" });
        rest = &rest[end..];
    }
    kept.push_str(rest);
    kept.replace(&old, &new)
}
"""


def core(mutant):
    """The words that differ: where they begin within the text, the old ones, and the new ones."""
    old, new = (re.split(r"(\s+)", text) for text in (mutant.old, mutant.new))
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    inner = lambda words: "".join(words[begin:len(words) - end])
    return len("".join(old[:begin])), inner(old), inner(new)


def is_switched(mutant):
    """Whether it is within one text of SQL, so that it can be made while the tests run."""
    _, old, new = core(mutant)
    # Statements name their parameters, or ask for what is null.
    is_sql = re.search(r"\$\d|null", mutant.old + mutant.new) and not re.search(r'["{};|&]|::', old + new)
    return mutant.file in MIGRATIONS or (mutant.file.startswith(STORE) and bool(is_sql))


def plain(text):
    """A text of the source as it is when the program runs."""
    return re.sub(r"\\\n\s*", "", text)


def tracked():
    """The files of the checkout as they are now, also those that are not committed."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def with_marks(contents, mutants):
    """Marks the mutants in the statements, and changes how statements are prepared."""
    places = {}
    for number, mutant in enumerate(mutants):
        if is_switched(mutant) and mutant.file not in MIGRATIONS:
            begin, old, _ = core(mutant)
            at = contents[mutant.file].decode().index(mutant.old) + begin + len(old)
            places.setdefault(mutant.file, []).append((at, f"/*m{number}*/"))
    for file, marks in places.items():
        text = contents[file].decode()
        for at, mark in sorted(marks, reverse=True):
            text = text[:at] + mark + text[at:]
        contents[file] = text.encode()
    for name in [it for it in contents if it.startswith(STORE) and it.endswith(".rs")]:
        text = contents[name].decode()
        text = re.sub(r"prepare_cached\((\w+)\)", r"prepare_cached(&crate::mutated(\1))", text)
        contents[name] = text.encode()
    migrate = STORE + "db/postgres/migrate.rs"
    given = b"AssertSqlSafe(crate::mutated(migration.postgres))"
    assert b"raw_sql(migration.postgres)" in contents[migrate]
    contents[migrate] = contents[migrate].replace(b"raw_sql(migration.postgres)", b"raw_sql(" + given + b")")
    contents[STORE + "lib.rs"] += SWITCH.encode()


def copy(scratch, package, mutants):
    """Brings the copy up to date. What is the same stays as it is, and is not built again."""
    names = tracked()
    if package == "jurat-store":
        names = [name for name in names if not name.startswith(KIT) or name == KIT + "src/postgres.rs"]
    contents = {name: (ROOT / name).read_bytes() for name in names}
    if package == "jurat-store":
        contents |= {name: text.encode() for name, text in SMALL_KIT.items()}
        with_marks(contents, mutants)
        # Cargo takes out of it what is not needed.
        if (scratch / "Cargo.lock").is_file():
            contents.pop("Cargo.lock")
    for name, content in contents.items():
        target = scratch / name
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for left in scratch.rglob("*"):
        name = str(left.relative_to(scratch))
        if left.is_file() and name not in contents and name != "Cargo.lock":
            left.unlink()


def build(scratch, target, package):
    """The program of the tests, or nothing and why there is none."""
    words = ["cargo", "test", "--offline", "--no-run", "--package", package, "--test", "it"]
    env = os.environ | {"CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"}
    done = subprocess.run(words, cwd=scratch, env=env, capture_output=True, text=True)
    found = re.search(r"Executable .*\((.*)\)$", done.stderr, re.MULTILINE)
    if done.returncode != 0 or not found:
        return None, done.stderr
    return scratch / found[1], ""


def run(program, mutant, more):
    """The tests that failed."""
    folder = ROOT / "crates" / mutant.package.removeprefix("jurat-")
    listed = subprocess.run([program, "--list"], cwd=folder, capture_output=True, text=True, check=True)
    names = re.findall(r"^(.*): test$", listed.stdout, re.MULTILINE)
    names = [name for name in names if re.search(mutant.tests, name)]
    if not names:
        raise SystemExit(f"{mutant.name}: there is no test like {mutant.tests}")
    words = [program, "--exact", *names]
    try:
        done = subprocess.run(
            words, cwd=folder, env=os.environ | more, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return ["no end"]
    failed = re.findall(r"^test (\S+) ... FAILED$", done.stdout, re.MULTILINE)
    return failed or (["a test that ended them all"] if done.returncode else [])


def keep(program, folder):
    """A copy of the program, which later builds do not replace."""
    kept = folder.with_name(folder.name + "-it")
    shutil.copy2(program, kept)
    return kept


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


def try_one(scratch, target, program, mutant, number):
    """Whether it was noticed, and by which test."""
    if is_switched(mutant):
        _, old, new = core(mutant)
        mark = f"/*m{number}*/"
        given = (mutant.old, mutant.new) if mutant.file in MIGRATIONS else (plain(old) + mark, plain(new))
        failed = run(program, mutant, {"MUTANT_OLD": given[0], "MUTANT_NEW": given[1]})
    else:
        failed, why = built(scratch, target, mutant)
        if failed is None:
            # Such a mutant proves nothing, and is not taken for one that was noticed.
            return False, "DOES NOT BUILD\n" + why[-2000:]
    if not failed:
        return False, "SURVIVED"
    return True, failed[0] + (f" and {len(failed) - 1} more" if len(failed) > 1 else "")


def built(scratch, target, mutant):
    """Makes the change in the source of the copy, for as long as it is built and tried."""
    path = scratch / mutant.file
    text = path.read_text()
    old = mutant.old
    if text.count(old) != 1:
        # A mark of another mutant stands within it.
        marked = r"(?:/\*m\d+\*/)?".join(re.escape(letter) for letter in old)
        old = re.search(marked, text)[0]
    path.write_text(text.replace(old, mutant.new))
    try:
        program, why = build(scratch, target, mutant.package)
        return (run(program, mutant, {}) if program else None), why
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="only mutants whose name has one of these in it")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--target", default=os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")))
    args = parser.parse_args()
    everything = [*QUERIES, *POLICIES, *FAULTS]
    check(everything)
    is_wanted = lambda it: not args.names or any(name in it.name for name in args.names)
    wanted = [(number, it) for number, it in enumerate(everything) if is_wanted(it)]
    if args.list:
        print("\n".join(f"{it.name:50} {'' if is_switched(it) else 'built':6} {it.file}" for _, it in wanted))
        return
    if not wanted:
        raise SystemExit("no mutant has such a name")
    target = pathlib.Path(args.target).resolve()
    scratch = {it.package: target / "mutants" / it.package for _, it in wanted}
    for package, folder in scratch.items():
        copy(folder, package, everything)
    survivors, sound, programs = [], set(), {}
    # Those that need no build come first, and those of one folder after each other.
    wanted.sort(key=lambda it: (it[1].package == "jurat-server", not is_switched(it[1])))
    for count, (number, mutant) in enumerate(wanted, 1):
        folder = scratch[mutant.package]
        if mutant.package not in programs:
            program, why = build(folder, target, mutant.package)
            if not program:
                raise SystemExit(f"{mutant.package} does not build:\n{why[-4000:]}")
            programs[mutant.package] = keep(program, folder)
        program = programs[mutant.package]
        if mutant.tests not in sound:
            failed = run(program, mutant, {})
            if failed:
                raise SystemExit(f"these fail without any mutant: {failed}")
            sound.add(mutant.tests)
        begun = time.monotonic()
        is_caught, by = try_one(folder, target, program, mutant, number)
        taken = time.monotonic() - begun
        print(f"{count:3} {taken:4.0f} s  {mutant.name:50} {by}", flush=True)
        if not is_caught:
            survivors.append(mutant.name)
    print(f"{len(wanted)} mutants, {len(wanted) - len(survivors)} caught")
    if survivors:
        raise SystemExit("nothing noticed:\n" + "\n".join(survivors))


if __name__ == "__main__":
    main()
