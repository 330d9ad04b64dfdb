"""Calls every method of the Agent2Agent protocol with the client of its JavaScript SDK.

The conversation is in `client.mjs`; this starts the program and its executors for it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

from program import PATIENCE
from world import world

CLIENT = pathlib.Path(__file__).with_name("client.mjs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--modules", type=pathlib.Path, required=True,
                        help="the folder with the packages of npm")
    given = parser.parse_args()
    package = json.loads((given.modules / "@a2a-js/sdk/package.json").read_text())
    with tempfile.TemporaryDirectory(prefix="jurat-a2a-js-") as name, world(given.program) as (url, key):
        # A module finds its packages beside itself.
        folder = pathlib.Path(name)
        (folder / "node_modules").symlink_to(given.modules.resolve())
        client = folder / CLIENT.name
        client.write_text(CLIENT.read_text())
        command = ["node", str(client), "--url", url, "--key", key, "--version", package["version"]]
        environment = {"PATH": os.environ["PATH"], "HOME": name}
        ended = subprocess.run(command, cwd=folder, env=environment, timeout=2 * PATIENCE, check=False)
        if ended.returncode:
            raise SystemExit(f"the client ended with {ended.returncode}")


if __name__ == "__main__":
    main()
