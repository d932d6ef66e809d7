#!/usr/bin/env python3
"""The app of examples/notes once more, on Python's standard library and C SQLite.

That library has no AES: bodies are sealed with a SHAKE-256 key stream and an HMAC tag. It is
sound (a fresh nonce, encrypt, authenticate), but home-made: a real app uses a library for it."""
import base64, hashlib, hmac, json, operator, os, secrets, signal, socketserver, sqlite3, tempfile, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

KEY, FILES = base64.urlsafe_b64decode(os.environ["CARLOS_INSTANCE_KEY"]), os.environ["FILES_DIR"]
RUN, LOCK = secrets.token_hex(16), threading.Lock()
DB = sqlite3.connect(os.environ["DATABASE_PATH"], timeout=10, isolation_level=None, check_same_thread=False)
def sql(text, *args):  # one statement, committed, at a time
    with LOCK: return DB.execute(text, args)

def xor(nonce, body):
    return bytes(map(operator.xor, body, hashlib.shake_256(b"encrypt" + KEY + nonce).digest(len(body))))

def tag(id, nonce, sealed):
    return hmac.digest(KEY, hashlib.sha256(id.encode()).digest() + nonce + sealed, "sha256")

def seal(id, body):
    nonce = secrets.token_bytes(16)
    return nonce + tag(id, nonce, sealed := xor(nonce, body.encode())) + sealed

def unseal(id, b):
    nonce, mac, sealed = b[:16], b[16:48], b[48:]
    if not hmac.compare_digest(mac, tag(id, nonce, sealed)): return {"body": "", "error": "it does not open"}
    return {"body": xor(nonce, sealed).decode()}

def digest(name):
    with open(os.path.join(FILES, name), "rb") as f:
        return {"name": name, "sha256": hashlib.file_digest(f, "sha256").hexdigest(), "size": f.tell()}

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/healthz": self.answer(200, sql("SELECT count(*) FROM (SELECT 1 FROM notes LIMIT 1)").fetchall())
        elif self.path == "/files": self.answer(200, [digest(n) for n in sorted(os.listdir(FILES)) if n[0] != "."])
        elif self.path == "/notes":
            rows = sql("SELECT rowid, id, run, body FROM notes ORDER BY rowid").fetchall()
            self.answer(200, [{"rowid": n, "id": id, "run": run, **unseal(id, b)} for n, id, run, b in rows])
        else: self.answer(404, "not found")

    def do_POST(self):
        url, body = urlsplit(self.path), self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try: self.answer(*self.post(url.path, parse_qs(url.query), body))
        except (ValueError, KeyError, TypeError, AttributeError) as e: self.answer(400, repr(e))

    def post(self, path, query, body):
        if path == "/notes":
            note = {"body": "", **json.loads(body)}
            if not note["id"]: raise ValueError("a note's id is empty")
            new = sql("INSERT INTO notes (id, run, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                      note["id"], RUN, seal(note["id"], note["body"])).rowcount
            return 201 if new else 200, {"id": note["id"]}
        if path == "/fill":
            for at in range(0, size := int(query["bytes"][0]), 256 << 10):
                sql("INSERT INTO filler VALUES (randomblob(?))", min(size - at, 256 << 10))
            return 200, {"bytes": size}
        folder, _, name = path.removeprefix("/").partition("/")
        if folder != "files" or not (name := unquote(name)) or name[0] == "." or "/" in name: raise ValueError("no such place")
        with tempfile.NamedTemporaryFile(dir=FILES, prefix=".upload-", delete=False) as f: f.write(body)
        os.replace(f.name, os.path.join(FILES, name))
        return 201, {"name": name}

    def answer(self, status, value):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def address_string(self): return "client"  # a unix socket's has no address
for pragma in "journal_mode=WAL", "wal_autocheckpoint=0": sql("PRAGMA " + pragma).fetchall()
sql("CREATE TABLE IF NOT EXISTS notes (rowid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, run TEXT NOT NULL, body BLOB NOT NULL)")
sql("CREATE TABLE IF NOT EXISTS filler (bytes BLOB NOT NULL)")
if path := os.environ.get("LISTEN_SOCKET"): server = socketserver.ThreadingUnixStreamServer(path, Handler)
else: server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler)
server.daemon_threads = False  # TERM lets the running requests finish
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
with server: server.serve_forever()
DB.close()
