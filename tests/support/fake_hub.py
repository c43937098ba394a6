"""A hub on loopback that answers what huggingface_hub asks to pull and push, with faults to
order.
"""

import base64
import hashlib
import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """Commits, each a table of path to content, and the names of some."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False
    """Whether only those may see its files who were granted access."""

    def commit(self, files, ref="main"):
        """Add a commit, and return its name."""
        number = str(len(self.commits)).encode()
        name = hashlib.sha1(
            number + b"".join(map(str.encode, sorted(files))), usedforsecurity=False
        ).hexdigest()
        self.commits[name] = dict(files)
        self.refs[ref] = name
        return name

    def find(self, revision):
        name = self.refs.get(revision, revision)
        return name if name in self.commits else None


class FakeHub(ThreadingHTTPServer):
    """A hub; changes of its attributes hold from the next request on."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.repositories: dict[str, Repository] = {}
        self.token = None
        """What requests have to bring to see private repositories, and to write."""
        self.requests: list[str] = []
        """Of each request its method and path."""
        self.broken: str | None = None
        """The end of the path of a file whose connections break off after half of it."""
        self.replaced: dict[str, bytes] = {}
        """The end of a path to the bytes sent in place of the file or the answer."""
        self.status = None
        """What every request is answered with."""
        self.has_left = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, repo, bundle, folder, ref="main"):
        """Add a bundle to a branch of a repository, in this folder, and return the commit."""
        repository = self.repositories.setdefault(repo, Repository())
        before = repository.commits.get(repository.refs.get(ref, ""), {})
        prefix = f"{folder}/" if folder else ""
        files = {
            f"{prefix}{file.name}": file.read_bytes()
            for file in Path(bundle).iterdir()
            if file.name != "source.json"
        }
        return repository.commit({**before, **files}, ref)

    def leave(self):
        """Stop to listen, and hang up on those who are connected."""
        self.has_left = True
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Print nothing: clients that disconnect are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeHub

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.has_left:
            self.close_connection = True
            return None
        self.server.requests.append(f"{self.command} {self.path}")
        path = unquote(urlsplit(self.path).path)
        parts = path.strip("/").split("/")
        if parts[1:2] == ["resolve"] or (
            parts[:2] == ["api", "models"] and parts[2] in self.server.repositories
        ):
            # a model of no organisation
            parts.insert(parts.index("resolve") if "api" not in parts else 3, "")
        if self.server.status is not None:
            return self.send(self.server.status, b"refused")
        for end, content in self.server.replaced.items():
            if path.endswith(end):
                return self.send(200, content)
        if parts[:2] == ["api", "models"]:
            return self.answer_model("/".join(filter(None, parts[2:4])), parts[4:])
        if parts == ["api", "repos", "create"]:
            return self.create()
        if parts == ["api", "validate-yaml"]:
            return self.send_json({"errors": [], "warnings": []})
        if parts[2:3] == ["resolve"]:
            return self.send_file("/".join(filter(None, parts[:2])), parts[3:])
        return self.send(404)

    def is_known(self):
        return (
            self.server.token is not None
            and self.headers.get("Authorization") == f"Bearer {self.server.token}"
        )

    def repository(self, name):
        """Return a repository that the client may see; answer and return None otherwise."""
        repository = self.server.repositories.get(name)
        if self.headers.get("Authorization") and self.server.token and not self.is_known():
            return self.send(401, message="Invalid credentials in Authorization header")
        if repository is None or (repository.private and not self.is_known()):
            return self.send(404, b'{"error": "Repository not found"}', code="RepoNotFound")
        if repository.gated and "/api/" not in self.path:
            return self.send(403, b'{"error": "Access is restricted"}', code="GatedRepo")
        return repository

    def answer_model(self, name, rest):
        repository = self.repository(name)
        if repository is None:
            return None
        if rest[:1] == ["tree"]:  # of a folder that no repository here has
            return self.send(404, b'{"error": "Not found"}', code="EntryNotFound")
        if rest[:1] in (["preupload"], ["commit"]):
            return self.preupload() if rest[0] == "preupload" else self.commit(repository, rest[1])
        commit = repository.find("/".join(rest[1:]) or "main")
        if commit is None:
            return self.send(404, b'{"error": "Invalid rev id"}', code="RevisionNotFound")
        files = repository.commits[commit]
        info = {"id": name, "sha": commit, "private": repository.private, "tags": []}
        siblings = [{"rfilename": path} for path in files]
        return self.send_json({**info, "siblings": siblings})

    def create(self):
        wanted = json.loads(self.body)
        name = f"{wanted['organization']}/{wanted['name']}"
        if not self.is_known():
            return self.send(401, b'{"error": "Invalid username or password."}')
        if name in self.server.repositories:
            error = {
                "error": "You already created this model repo",
                "url": f"{self.server.url}/{name}",
            }
            return self.send(409, json.dumps(error).encode())
        self.server.repositories[name] = Repository(
            # as the client's version says
            private=bool(wanted.get("private")) or wanted.get("visibility") == "private"
        )
        self.server.repositories[name].commit({".gitattributes": b"*.onnx filter=lfs\n"})
        return self.send_json({"url": f"{self.server.url}/{name}"})

    def preupload(self):
        files = [
            {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
            for file in json.loads(self.body)["files"]
        ]
        return self.send_json({"files": files})

    def commit(self, repository, branch):
        if not self.is_known():
            return self.send(403, b'{"error": "Forbidden"}')
        files = dict(repository.commits[repository.refs[branch]])
        for line in map(json.loads, self.body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = repository.commit(files, branch)
        return self.send_json(
            {
                "commitOid": commit,
                "commitUrl": f"{self.server.url}/x/y/commit/{commit}",
                "success": True,
            }
        )

    def send_file(self, name, parts):
        repository = self.repository(name)
        if repository is None:
            return
        commit, path = repository.find(parts[0]), "/".join(parts[1:])
        content = repository.commits.get(commit, {}).get(path)
        if content is None:
            self.send(404, code="EntryNotFound", commit=commit)
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        is_broken = (
            self.server.broken is not None
            and path.endswith(self.server.broken)
            and self.command == "GET"
        )
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", commit)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(
                content[start : (start + len(content)) // 2] if is_broken else content[start:]
            )
        self.close_connection = is_broken

    def send_json(self, document, kind="application/json"):
        return self.send(200, json.dumps(document).encode(), kind)

    def send(self, status, body=b"", kind="application/json", code=None, message=None, commit=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if code is not None:
            self.send_header("X-Error-Code", code)
        if message is not None:
            self.send_header("X-Error-Message", message)
        if commit is not None:
            self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def fake_hub(port=0):
    hub = FakeHub(port)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        hub.leave()
        thread.join()
