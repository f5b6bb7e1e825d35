"""A PostgreSQL server from Debian's packages, in a temporary folder, for tests and for trying out a run in a database.

``make postgres`` starts one and prints its address; Ctrl-C ends it, and nothing of it is left. Tests use
:class:`PostgresServer` themselves.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

__all__ = ["PostgresServer", "program"]

USER = "tester"
_WAIT_S = 600.0


def program(name: str) -> str:
    """Where a program of PostgreSQL is; empty when there is none."""
    places = [*map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), os.environ.get("PATH", "")]
    return shutil.which(name, path=os.pathsep.join(places)) or ""


def _another_user() -> str | None:
    """The server refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name for user in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A server on a free port of 127.0.0.1 and on a socket in its folder; use it in a ``with`` block.

    Whoever may read its folder is let in by the socket. The port asks for the password, which is part of the address.

    Raises:
        OSError: there is no server to start, or it cannot be set up here; the message says "no PostgreSQL".
    """

    def __init__(self) -> None:
        if not program("initdb") or not program("postgres"):
            raise OSError("no PostgreSQL server was found")
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket must be
        self._password = secrets.token_urlsafe(12)
        self._user = _another_user()
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        secret = self._folder / "password"
        secret.write_text(self._password, "utf-8")
        if self._user is not None:
            shutil.chown(self._folder, self._user)
            shutil.chown(secret, self._user)
        made = [program("initdb"), "-D", self._folder / "data", "-U", USER, "--pwfile", secret, "--no-sync"]
        if subprocess.call([*made, "--auth-local=trust", "--auth-host=scram-sha-256"], **self._given()) != 0:  # noqa: S603
            shutil.rmtree(self._folder)
            raise OSError("no PostgreSQL server can be set up here")

    def _given(self) -> dict[str, Any]:
        given = {"cwd": self._folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        return given | ({} if self._user is None else {"user": self._user})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop(signal.SIGINT)  # also with connections that a failed test left open
        shutil.rmtree(self._folder)

    def start(self) -> None:
        """Start it, and wait until it answers; what was running before may need a moment to end."""
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self._port}", "-c", "fsync=off"]
        options += ["-c", "max_connections=200", "-k", str(self._folder)]
        until = time.monotonic() + _WAIT_S
        while time.monotonic() < until:
            if self._process is None or self._process.poll() is not None:
                command = [program("postgres"), "-D", self._folder / "data", *options]
                self._process = subprocess.Popen(command, **self._given())  # noqa: S603
            if subprocess.call(self._ready(), stdout=subprocess.DEVNULL) == 0:  # noqa: S603
                return
            time.sleep(0.1)
        raise OSError("no PostgreSQL server has started")

    def _ready(self) -> list[Any]:
        return [program("pg_isready"), "-h", self._folder, "-p", str(self._port), "-t", "10"]

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it: by default as a machine that fails does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def address(self, name: str, user: str = USER) -> str:
        """The address of a database, by the socket."""
        return f"postgresql+psycopg://{user}@/{name}?host={self._folder}&port={self._port}"

    def network_address(self, name: str) -> str:
        """The address of a database, by the port."""
        return f"postgresql+psycopg://{USER}:{self._password}@127.0.0.1:{self._port}/{name}"

    def create(self, name: str, template: str = "template1") -> str:
        """Make a database, and return its address by the socket."""
        command = [program("createdb"), "-h", self._folder, "-p", str(self._port), "-U", USER, "-T", template, name]
        subprocess.run(command, check=True)  # noqa: S603
        return self.address(name)


def main() -> int:
    """Start a server with the database ``runs``, and print its address."""
    try:
        with PostgresServer() as server:
            server.create("runs")
            print(server.network_address("runs"), flush=True)
            print("Ctrl-C stops the server and removes it", file=sys.stderr)
            signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        print(f"{error} (Debian: apt-get install postgresql)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
