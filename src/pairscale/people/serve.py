"""Serving the pages: in a thread, for this machine alone unless another address is given."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pairscale.core.errors import InputError, MissingExtraError
from pairscale.core.notices import notice
from pairscale.core.options import FilePath

if TYPE_CHECKING:
    from fastapi import FastAPI

    from pairscale.core.traits import Trait
    from pairscale.judges.human import QuestionQueue
    from pairscale.people.queue import LabelStore

DEFAULT_PORT = 8484
_START_S = 30.0
_STOP_S = 10.0
_LINGER_S = 3.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where to serve.

    Attributes:
        host: the address to listen on; 127.0.0.1 is reached from this machine alone.
        port: 0 takes a free one.
        url: how people reach it, when that is otherwise, such as behind a proxy: ``https://labels.example.org``.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    url: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None:
            parts = urlsplit(self.url)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
                raise InputError(f"url {self.url!r} must look like https://labels.example.org, without a path")

    @property
    def is_open(self) -> bool:
        """Whether other machines reach it."""
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host != "localhost"

    def names(self) -> list[str]:
        """The host names that a browser may call it by."""
        named = [self.host] if self.url is None else [self.host, str(urlsplit(self.url).hostname)]
        return [*named, socket.gethostname(), socket.getfqdn()] if self.is_open else named

    def base(self, port: int) -> str:
        """The beginning of every link."""
        if self.url is not None:
            return self.url.rstrip("/")
        everywhere = self.host in {"0.0.0.0", "::"}  # noqa: S104 - it is asked for, and said
        host = socket.gethostname() if everywhere else self.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@dataclass(frozen=True, slots=True)
class LabelSite:
    """The links of the people who answer.

    Attributes:
        url: the beginning of every link.
        links: each person's name and link.
        owner: the owner's link; empty for the questions of a run that is not saved, which has no such page.
    """

    url: str
    links: dict[str, str]
    owner: str = ""


@contextmanager
def serve_labels(
    store: LabelStore,
    *,
    address: Address | None = None,
    instructions: str = "",
    plain: bool = False,
) -> Iterator[LabelSite]:
    """Serve the labelling page of a run file while the block runs.

    Args:
        store: the labels.
        address: where.
        instructions: for labellers, in Markdown.
        plain: show texts as they are written, not as Markdown.

    Raises:
        InputError: the port is taken, or there is no such address.
        MissingExtraError: the packages of the extra ``web`` are not installed.
    """
    with _serving(_labelling(store, instructions, plain), address or Address()) as url:
        yield LabelSite(url, _links(url, store), f"{url}/owner/{store.owner_token}")


@contextmanager
def serve_questions(
    queue: QuestionQueue,
    people: Sequence[str],
    *,
    trait: Trait | None = None,
    address: Address | None = None,
    instructions: str = "",
    plain: bool = False,
    linger: float = _LINGER_S,
    run: FilePath | None = None,
) -> Iterator[LabelSite]:
    """Show the questions of a :class:`pairscale.HumanJudge` to people while the block runs.

    Args:
        queue: that of the judge.
        people: who answers; each gets a link of their own.
        trait: what is judged.
        address: where.
        instructions: for them, in Markdown.
        plain: show texts as they are written, not as Markdown.
        linger: seconds to keep serving at the end, so that those who wait are told that it is over.
        run: the run file of the run that asks. It keeps the links, so that they are the same when the run is resumed,
            and there is an owner's page. Without one the links end with the block.

    Raises:
        InputError: the port is taken, or no one is named.
        MissingExtraError: the packages of the extra ``web`` are not installed.
    """
    from pairscale.people.queue import LiveQuestions

    queue.open(people)
    with closing(queue), LiveQuestions(queue, people, trait, run) as questions:
        with _serving(_labelling(questions, instructions, plain), address or Address()) as url:
            owner = "" if run is None else f"{url}/owner/{questions.owner_token}"
            yield LabelSite(url, _links(url, questions), owner)
            queue.close()
            time.sleep(linger)


def _links(url: str, questions: LabelStore) -> dict[str, str]:
    return {labeller.name: f"{url}/l/{labeller.token}" for labeller in questions.labellers()}


@contextmanager
def serve_run(run: str, *, address: Address | None = None) -> Iterator[str]:
    """Serve the page of a run, also while another process writes it, while the block runs; gives its address.

    Args:
        run: the run file.
        address: where.

    Raises:
        InputError: the port is taken, or there is no such address.
        StoreError: there is no such run file.
        MissingExtraError: the packages of the extra ``web`` are not installed.
    """
    from pairscale.store.runfile import open_run

    open_run(run).close()

    try:
        from pairscale.people.watch import create_watch_app
    except ModuleNotFoundError as error:
        raise MissingExtraError("the page of a run", "web") from error
    with _serving(partial(create_watch_app, run), address or Address()) as url:
        yield url


def require_page() -> None:
    """Check that the labelling page can be served, before anything is written.

    Raises:
        MissingExtraError: the packages of the extra ``web`` are not installed.
    """
    try:
        import python_multipart  # noqa: F401 - what FastAPI reads forms with; it would say so only later
        import uvicorn  # noqa: F401

        import pairscale.people.app  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("the labelling page", "web") from error


def _labelling(questions: LabelStore, instructions: str, plain: bool) -> Callable[..., FastAPI]:
    require_page()
    from pairscale.people.app import create_app

    return partial(create_app, questions, instructions=instructions, plain=plain)


@contextmanager
def _serving(make_app: Callable[..., FastAPI], address: Address) -> Iterator[str]:
    """A server in a thread, for as long as the block runs."""
    import uvicorn

    app = make_app(hosts=address.names())
    listening = _bound(address)
    port = listening.getsockname()[1]
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="off", timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="pairscale page", daemon=True)
    thread.start()
    try:
        _wait_for(server, thread)
        if address.is_open:
            notice(
                f"the page is open to other machines on port {port}, without encryption; put a proxy with https before "
                "it (--url) when the network is not yours"
            )
        yield address.base(port)
    finally:
        server.should_exit = True
        thread.join(_STOP_S)
        listening.close()


def _bound(address: Address) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, where = addresses[0]
        return socket.create_server(where[:2], family=family, backlog=256)
    except OSError as error:
        raise InputError(
            f"nothing can be served on {address.host}, port {address.port}: {error.strerror or error}; "
            "name another --port, or 0 for a free one"
        ) from None


def _wait_for(server: Any, thread: threading.Thread) -> None:
    deadline = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise InputError("the page could not be served; is something wrong with the network of this machine?")
        time.sleep(0.01)
