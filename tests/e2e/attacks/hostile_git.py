"""What an attacker of git has: repositories whose settings run a script of theirs, and a server that writes down what it is told."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.forge.sample import git

MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ml}\ndata: {text: %s}\n"


@dataclass
class Trap:
    """A script that writes down who ran it, and with which token."""

    folder: Path

    @property
    def _seen(self) -> Path:
        return self.folder / "seen.txt"

    def command(self, name: str) -> str:
        """What a setting runs; *name* says which one it was."""
        script = self.folder / "trap.sh"
        if not script.exists():
            script.write_text(f'echo "$1 with token ${{DRA_INFRA_FETCH_TOKEN:-none}}" >> {self._seen}\n')
        return f"sh {script} {name}"

    def sprung(self) -> list[str]:
        """Who ran it."""
        return sorted(set(self._seen.read_text().splitlines())) if self._seen.exists() else []


def embed(folder: Path, settings: str, *, attributes: str = "", text: str = "x", signature: str = "") -> str:
    """Make *folder* a repository, as plain files that a pull request can carry; the hash of its one commit.

    Args:
        folder: Where `HEAD`, `config`, `objects` and `refs` come to lie.
        settings: What its configuration says besides where its files are.
        attributes: Its `.gitattributes`.
        text: What its manifest says.
        signature: One that its commit has.
    """
    made = folder.parent / f"{folder.name}-made"
    made.mkdir(parents=True)
    (made / "a.yaml").write_text(MANIFEST % text)
    if attributes:
        (made / ".gitattributes").write_text(attributes)
    git(made, "init", "--quiet")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "planted")
    if signature:
        told = git(made, "cat-file", "commit", "HEAD") + "\n"
        headers, _, message = told.partition("\n\n")
        signed = f"{headers}\ngpgsig -----BEGIN PGP SIGNATURE-----\n {signature}\n -----END PGP SIGNATURE-----\n\n{message}"
        (made / "commit").write_text(signed)
        commit = git(made, "hash-object", "-t", "commit", "-w", "commit")
        (made / "commit").unlink()
        git(made, "update-ref", "refs/heads/main", commit)
    commit = git(made, "rev-parse", "HEAD")
    shutil.rmtree(made / ".git" / "hooks")
    shutil.rmtree(made / ".git" / "logs")
    (made / ".git" / "config").unlink()
    shutil.copytree(made / ".git", folder, dirs_exist_ok=True)
    shutil.copytree(made, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    shutil.rmtree(made)
    # Git carries no empty folders.
    for each in ("objects", "refs/heads"):
        (folder / each / ".keep").write_text("")
    # The manifest differs from the index, so that git has to read it.
    (folder / "a.yaml").write_text(MANIFEST % f"{text}-now")
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {folder}\n{settings}\n"
    )
    return commit


@dataclass
class Listener:
    """A server that writes down each `Authorization` it is sent, and sends everybody on to *redirect*."""

    redirect: str = ""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def listening(redirect: str = "") -> Iterator[Listener]:
    """A listener that runs until the end of the block."""
    listener = Listener(redirect)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            listener.asked.append(self.path)
            if "Authorization" in self.headers:
                listener.authorizations.append(self.headers["Authorization"])
            if listener.redirect:
                self.send_response(302)
                self.send_header("Location", listener.redirect + self.path)
            else:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = answer  # noqa: N815  (what the server looks for)

        def log_message(self, *_: object) -> None:
            pass

    with _served(Handler) as listener.port:
        yield listener


@contextlib.contextmanager
def git_server(folder: Path, accepted: Collection[str]) -> Iterator[str]:
    """The repositories below *folder* over HTTP, for who sends an authorization that is *accepted*; the server's address."""
    backend = Path(git(folder, "--exec-path")) / "git-http-backend"

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if self.headers.get("Authorization") not in accepted:
                self.send_error(401)
                return
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = subprocess.run(
                [backend],
                input=body,
                capture_output=True,
                check=True,
                env={
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(folder),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                },
            ).stdout
            head, _, content = said.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815  (what the server looks for)

        def log_message(self, *_: object) -> None:
            pass

    with _served(Handler) as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
