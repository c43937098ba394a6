"""A hub on loopback, as far as pulling and pushing go, with faults to order."""

import base64
import hashlib
import itertools
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
    gated: str | None = None
    """What only those may see who were granted access: "files", as on the hub, or "info" as well."""

    def commit(self, files, ref="main"):
        """Add a commit, and return its name."""
        number = str(len(self.commits)).encode()
        name = hashlib.sha1(number + b"".join(map(str.encode, sorted(files))), usedforsecurity=False).hexdigest()
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
        self.login = None
        """The user and the password that the web server asks for, with a colon between them."""
        self.requests: list[str] = []
        """Of each request its method and path."""
        self.cuts: list[int] = []
        """After how many bytes of a file connections break off; each once, and then no more."""
        self.file_of_cuts = "model.onnx"
        self.replaced: dict[str, bytes] = {}
        """The end of a path to the bytes sent in place of the file or the answer."""
        self.status = None
        """What every request is answered with."""
        self.endless = None
        """The end of the path of a file that does not end."""
        self.ignores_ranges = False
        self.shifts_ranges = 0
        """How many bytes earlier than asked for, or later, a part begins."""
        self.declares_sizes = True
        self.lists_sizes = True
        self.lists_refs = True
        self.silence = None
        """What the answers to `silent` paths wait for."""
        self.silent = ""
        """The end of these paths."""
        self.half_sent: threading.Barrier | None = None
        """Where the sending of a graph waits when half of it is sent: for the test, and again to be let go on."""
        self.uploads: dict[str, bytes] = {}
        self.refuses_uploads = False
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
            f"{prefix}{file.name}": file.read_bytes() for file in Path(bundle).iterdir() if file.name != "source.json"
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

    def do_PUT(self):
        self.answer()

    def answer(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.has_left:
            self.close_connection = True
            return None
        asked = self.headers.get("Range")
        self.server.requests.append(f"{self.command} {self.path}" + (f" {asked}" if asked else ""))
        path = unquote(urlsplit(self.path).path)
        parts = path.strip("/").split("/")
        if parts[1:2] == ["resolve"] or (parts[:2] == ["api", "models"] and parts[2] in self.server.repositories):
            parts.insert(parts.index("resolve") if "api" not in parts else 3, "")  # a model of no organisation
        if self.server.silence is not None and path.endswith(self.server.silent):
            self.server.silence.wait(20)
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
        if parts[0] == "upload" and self.server.refuses_uploads:
            return self.send(500)
        if parts[0] == "upload":
            self.server.uploads[parts[1]] = self.body
            return self.send(200)
        if parts[-4:] == ["info", "lfs", "objects", "batch"]:
            return self.answer_lfs()
        if parts[2:3] == ["resolve"]:
            return self.send_file("/".join(filter(None, parts[:2])), parts[3:])
        if parts[:1] == ["files"] and not self.has_login():
            return self.send(401)
        if parts[:1] == ["files"]:  # a web server without a list
            return self.send_file("/".join(parts[1:3]), ["main", *parts[3:]], is_hub=False)
        return self.send(404)

    def is_known(self):
        return self.server.token is not None and self.headers.get("Authorization") == f"Bearer {self.server.token}"

    def has_login(self):
        login = self.server.login
        expected = None if login is None else f"Basic {base64.b64encode(login.encode()).decode()}"
        return expected is None or self.headers.get("Authorization") == expected

    def repository(self, name):
        """Return a repository that the client may see; answer and return None otherwise."""
        repository = self.server.repositories.get(name)
        if self.headers.get("Authorization") and self.server.token and not self.is_known():
            return self.send(401, message="Invalid credentials in Authorization header")
        if repository is None or (repository.private and not self.is_known()):
            return self.send(404, b'{"error": "Repository not found"}', code="RepoNotFound")
        if repository.gated == "info" or (repository.gated and "/api/" not in self.path):
            return self.send(403, b'{"error": "Access is restricted"}', code="GatedRepo")
        return repository

    def answer_model(self, name, rest):
        repository = self.repository(name)
        if repository is None:
            return None
        if rest[:1] == ["refs"] and self.server.lists_refs:
            branches = [
                {"name": ref, "ref": f"refs/heads/{ref}", "targetCommit": sha} for ref, sha in repository.refs.items()
            ]
            return self.send_json({"branches": branches, "tags": [], "converts": []})
        if rest[:1] == ["tree"]:  # of a folder that no repository here has
            return self.send(404, b'{"error": "Not found"}', code="EntryNotFound")
        if rest[:1] in (["preupload"], ["commit"]):
            return self.preupload() if rest[0] == "preupload" else self.commit(repository, rest[1])
        commit = repository.find("/".join(rest[1:]) or "main")
        if commit is None:
            return self.send(404, b'{"error": "Invalid rev id"}', code="RevisionNotFound")
        files = repository.commits[commit]
        info = {"id": name, "sha": commit, "private": repository.private, "tags": []}
        siblings = [{"rfilename": path, "size": len(content)} for path, content in files.items()]
        if not self.server.lists_sizes or "blobs" not in self.path:
            siblings = [{"rfilename": path} for path in files]
        return self.send_json({**info, "siblings": siblings})

    def create(self):
        wanted = json.loads(self.body)
        name = f"{wanted['organization']}/{wanted['name']}"
        if not self.is_known():
            return self.send(401, b'{"error": "Invalid username or password."}')
        if name in self.server.repositories:
            error = {"error": "You already created this model repo", "url": f"{self.server.url}/{name}"}
            return self.send(409, json.dumps(error).encode())
        self.server.repositories[name] = Repository(
            private=bool(wanted.get("private")) or wanted.get("visibility") == "private"  # as the client's version says
        )
        self.server.repositories[name].commit({".gitattributes": b"*.onnx filter=lfs\n"})
        return self.send_json({"url": f"{self.server.url}/{name}"})

    def preupload(self):
        wanted = json.loads(self.body)["files"]
        return self.send_json(
            {
                "files": [
                    {
                        "path": one["path"],
                        "uploadMode": "lfs" if one["size"] > 10_000 else "regular",
                        "shouldIgnore": False,
                    }
                    for one in wanted
                ]
            }
        )

    def answer_lfs(self):
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.server.url}/upload/{one['oid']}", "header": {}}}}
            for one in json.loads(self.body)["objects"]
        ]
        return self.send_json({"transfer": "basic", "objects": objects}, "application/vnd.git-lfs+json")

    def commit(self, repository, branch):
        if not self.is_known():
            return self.send(403, b'{"error": "Forbidden"}')
        files = dict(repository.commits[repository.refs[branch]])
        for line in map(json.loads, self.body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.uploads[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = repository.commit(files, branch)
        return self.send_json(
            {"commitOid": commit, "commitUrl": f"{self.server.url}/x/y/commit/{commit}", "success": True}
        )

    def send_file(self, name, parts, is_hub=True):
        repository = self.repository(name) if is_hub else self.server.repositories.get(name)
        if repository is None:
            return None if is_hub else self.send(404)
        revision, path = parts[0], "/".join(parts[1:])
        commit = repository.find(revision)
        if commit is None or path not in repository.commits[commit]:
            return self.send(404, b"", code="EntryNotFound")
        content = repository.commits[commit][path]
        if self.server.endless is not None and path.endswith(self.server.endless):
            return self.send_endlessly()
        self.commit_of_file = commit
        start = 0
        asked = self.headers.get("Range")
        if asked and not self.server.ignores_ranges:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            if start >= len(content):
                return self.send(416)
            start += self.server.shifts_ranges
        return self.send_part(path, content, start)

    def send_part(self, path, content, start):
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", self.commit_of_file)  # by which huggingface_hub knows a hub, and the tag
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.server.declares_sizes:
            self.send_header("Content-Length", str(len(content) - start))
        elif self.command == "HEAD":
            self.send_header("X-Linked-Size", str(len(content)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = self.server.cuts.pop(0) if self.server.cuts and path.endswith(self.server.file_of_cuts) else None
        if cut is not None:
            self.close_connection = True
            self.wfile.write(content[start : start + cut])
        elif self.server.half_sent is not None and path.endswith("model.onnx"):
            half, barrier, self.server.half_sent = len(content) // 2, self.server.half_sent, None
            self.wfile.write(content[start:half])
            barrier.wait(30)
            barrier.wait(30)
            self.wfile.write(content[half:])
        else:
            self.wfile.write(content[start:])

    def send_endlessly(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for _ in itertools.count():
            self.wfile.write(b"\0" * 65536)

    def send_json(self, document, kind="application/json"):
        return self.send(200, json.dumps(document).encode(), kind)

    def send(self, status, body=b"", kind="application/json", code=None, message=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if code is not None:
            self.send_header("X-Error-Code", code)
        if message is not None:
            self.send_header("X-Error-Message", message)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def fake_hub(port=0):
    """Run a hub in a thread."""
    hub = FakeHub(port)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        hub.leave()
        thread.join()
