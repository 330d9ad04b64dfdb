"""A database of its own for each world, and a proxy that can stall the way to it."""

import select
import socket
import subprocess
import threading
import urllib.parse
import uuid


class Sqlite:
    name = "sqlite"

    def fresh(self, folder):
        return str(folder / f"{uuid.uuid4().hex}.db")

    def drop(self, store):
        pass


class Postgres:
    """Makes a database with a role that owns the tables and one that serves."""

    name = "postgres"

    def __init__(self, program, url):
        self.program, self.url, self.made = program, url, {}

    def sql(self, text, database="postgres"):
        where = urllib.parse.urlsplit(self.url)._replace(path=f"/{database}").geturl()
        done = subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", where, "-c", text],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"psql: {done.stderr}")

    def fresh(self, folder):
        name = f"attack_{uuid.uuid4().hex[:10]}"
        self.sql(f"create database {name}")
        self.sql(f"create role {name} login")
        where = urllib.parse.urlsplit(self.url)
        owner = where._replace(path=f"/{name}").geturl()
        port = f":{where.port}" if where.port else ""
        served = where._replace(netloc=f"{name}@{where.hostname}{port}", path=f"/{name}").geturl()
        # The first start makes the tables, and lets the serving role use them.
        state = folder / f"owner-{name}"
        made = subprocess.Popen(
            [self.program, "--state-dir", str(state), "--store", served, "serve",
             "--listen", "127.0.0.1:0", "--migrate-url", owner],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for line in made.stderr:
            if "listening on " in line:
                break
        made.terminate()
        made.communicate()
        self.made[served] = (name, state)
        return served

    def drop(self, store):
        name, _ = self.made.pop(store)
        self.sql(f"drop database {name} with (force)")
        self.sql(f"drop role {name}")


class StallingProxy:
    """Passes bytes on to a server until it is told to stall; then nothing moves, and nothing ends."""

    def __init__(self, host, port):
        self.target = (host, port)
        self.flows = threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(self.target)
            threading.Thread(target=self.carry, args=(near, far), daemon=True).start()

    def carry(self, near, far):
        other = {near: far, far: near}
        with near, far:
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for side in ready:
                    self.flows.wait()
                    try:
                        data = side.recv(65536)
                        if not data:
                            return
                        self.flows.wait()
                        other[side].sendall(data)
                    except OSError:
                        return

    def stall(self):
        self.flows.clear()

    def resume(self):
        self.flows.set()

    def close(self):
        self.resume()
        self.listener.close()
