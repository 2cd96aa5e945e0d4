"""A bank team's server: takes signed payouts, executes each once, and posts the results.

    python3 docs/examples/bank.py PORT DATABASE SECRET_FILE KEY_FILE CALLBACKS_URL

Standard library only. It pays nobody: your bank goes where `execute` is.
"""
import hashlib, hmac, json, sqlite3, sys, threading, time
from datetime import datetime, timezone
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import Request, urlopen

PORT, DATABASE, SECRET_FILE, KEY_FILE, CALLBACKS_URL = sys.argv[1:]
SECRET = open(SECRET_FILE).read().strip()  # signs instructions: INSTRUCTIONS_SECRET_FILE
KEY = json.load(open(KEY_FILE))["secret"]  # signs callbacks: `connector key create NAME --json`
REFUSALS = {"amount_too_high": "The bank sends no transfer of this amount."}
BODY_BYTES_MAX = 65_536
FINAL = (202, 400, 409)  # answers to a callback that no repeat changes

# Everything is on disk before it is answered, so a process may be killed at any point.
DB = sqlite3.connect(DATABASE, check_same_thread=False, isolation_level="IMMEDIATE")
LOCK = threading.Lock()
with DB:
    DB.execute("CREATE TABLE IF NOT EXISTS payouts (id TEXT PRIMARY KEY, facts TEXT, refusal TEXT)")
    DB.execute("CREATE TABLE IF NOT EXISTS reports (id TEXT PRIMARY KEY, body TEXT, status INTEGER)")


def sign(secret, t, body):
    return hmac.new(secret.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()


def is_genuine(header, body):
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    t, v1 = parts.get("t", ""), parts.get("v1", "")
    if not (t.isascii() and t.isdigit() and abs(time.time() - int(t)) <= 300):
        return False
    return hmac.compare_digest(sign(SECRET, t, body).encode(), v1.encode())


def send_payout(payout):
    """Stores the instruction under its key; a repeat is answered from what is stored."""
    id, refusal = payout["payout_id"], "amount_too_high" if payout["amount"] == 66_600 else None
    facts = json.dumps({name: payout[name] for name in ("amount", "currency", "method")})
    with LOCK, DB:
        row = (id, facts, refusal)
        is_new = DB.execute("INSERT OR IGNORE INTO payouts VALUES (?, ?, ?)", row).rowcount == 1
        if is_new and refusal is None:
            execute(payout)
        stored = DB.execute("SELECT facts FROM payouts WHERE id = ?", (id,)).fetchone()[0]
    return look_up(id) if stored == facts else (409, {"code": "key_of_another_payout"})


def execute(payout):
    """Pays payout["recipient"]. A bank that you call needs payout_id as its idempotency key."""
    for event in ("sent", "completed"):
        report("payout", payout["payout_id"], event)


def look_up(id):
    with LOCK:  # not while a transaction may still be undone
        row = DB.execute("SELECT refusal FROM payouts WHERE id = ?", (id,)).fetchone()
    if row is None:
        return 200, {"outcome": "not_found"}
    if row[0] is not None:
        return 422, {"code": row[0], "message": REFUSALS[row[0]]}
    return 200, {"outcome": "submitted", "bank_reference": f"B-{id}"}


def report(resource, id, event):
    """Stores a callback, once for each fact; `post_reports` posts it until it is answered."""
    body = {
        **{"callback_id": f"{id}:{event}", "resource": resource, "resource_id": id, "event": event},
        **{"occurred_at": datetime.now(timezone.utc).isoformat(), "bank_reference": f"B-{id}"},
    }
    row = (body["callback_id"], json.dumps(body))
    DB.execute("INSERT OR IGNORE INTO reports VALUES (?, ?, NULL)", row)


def post_reports():
    while True:
        with LOCK:
            query = "SELECT id, body FROM reports WHERE status IS NULL ORDER BY rowid LIMIT 100"
            rows = DB.execute(query).fetchall()
        for id, body in rows:
            t, raw = str(int(time.time())), body.encode()
            signature = f"t={t},v1={sign(KEY, t, raw)}"
            headers = {"Connector-Signature": signature, "Content-Type": "application/json"}
            try:
                status = urlopen(Request(CALLBACKS_URL, raw, headers), timeout=10).status
            except HTTPError as error:
                status = error.code
            except (OSError, HTTPException):
                status = None
            if status not in FINAL:
                break  # and again, in this order
            with LOCK, DB:
                DB.execute("UPDATE reports SET status = ? WHERE id = ?", (status, id))
        time.sleep(0.2)


def instruct(activity, body):
    if activity == "sendPayout":
        return send_payout(body)
    if activity == "lookUpPayout":
        return look_up(body["payout_id"])
    return 404, {"code": "activity_unknown"}


def desk(path, body):
    """Desk of `connector check`, for a fake bank alone: what was paid, and events on demand."""
    if path == "/desk/reports":
        with LOCK, DB:
            report(body["resource"], body["resource_id"], body["name"])
        return (200, {}) if body["resource"] == "payout" else (404, {})
    id = unquote(path.removeprefix("/desk/effects/"))
    with LOCK:
        query = "SELECT facts FROM payouts WHERE id = ? AND refusal IS NULL"
        rows = DB.execute(query, (id,)).fetchall()
    return 200, {"effects": [json.loads(facts) for (facts,) in rows]}


class Bank(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = int(self.headers.get("Content-Length", "0"))
        raw = self.rfile.read(min(length, BODY_BYTES_MAX))
        if self.path.startswith("/desk/"):
            return self.answer(*desk(self.path, json.loads(raw)))
        if length > BODY_BYTES_MAX or not is_genuine(self.headers.get("Service-Signature", ""), raw):
            return self.answer(401, {"code": "signature_invalid"})
        body, activity = json.loads(raw), self.path.removeprefix("/instructions/")
        # The signature covers the body alone.
        key = self.headers.get("Idempotency-Key", body.get("payout_id"))
        if activity != body["activity"] or key != body.get("payout_id"):
            return self.answer(400, {"code": "not_what_was_signed"})
        self.answer(*instruct(activity, body))

    def do_GET(self):
        self.answer(*desk(self.path, None))

    def answer(self, status, body):
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass  # bodies and addresses are personal


if __name__ == "__main__":
    threading.Thread(target=post_reports, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(PORT)), Bank)
    print(f"The bank is at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
