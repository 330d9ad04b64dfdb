"""Plays a hostile tenant against a release build, on both databases, and prints what held.

Each attack has a world of its own: a server, a database, executors and a provider of judges that
speak the real protocols over sockets. An attack holds when the attacker gets nothing for free,
nothing of others, and no more than his share.
"""

import argparse
import pathlib
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import denial
import money
import tenants
from database import Postgres, Sqlite
from world import World

ATTACKS = [*money.ATTACKS, *tenants.ATTACKS, *denial.ATTACKS]


def play(program, database, attack):
    with tempfile.TemporaryDirectory() as folder:
        world = World(program, folder, database)
        try:
            return attack(world)
        except (Exception, SystemExit) as error:
            traceback.print_exc(file=sys.stderr)
            return False, f"the attack itself failed: {error}"
        finally:
            world.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True, help="our program, built for release")
    parser.add_argument("--postgres", help="address of a PostgreSQL server, as a role that may make databases")
    parser.add_argument("--only", default="", help="only attacks with this in their name")
    args = parser.parse_args()
    program = str(pathlib.Path(args.program).resolve())
    databases = [Sqlite()] + ([Postgres(program, args.postgres)] if args.postgres else [])
    passed = failed = skipped = 0
    print(f"{'attack':<44} {'database':<9} held  what happened", flush=True)
    for name, attack in ATTACKS:
        if args.only not in name:
            continue
        for database in databases:
            held, what = play(program, database, attack)
            word = {True: "yes", False: "NO", None: "-"}[held]
            print(f"{name:<44} {database.name:<9} {word:<5} {what}", flush=True)
            passed, failed, skipped = (
                passed + (held is True), failed + (held is False), skipped + (held is None))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
