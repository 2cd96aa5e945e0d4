"""A bank team's server: takes signed instructions, acts once on each, and posts the results.

    python3 docs/examples/bank.py PORT DATABASE SECRET_FILE KEY_FILE CALLBACKS_URL

Standard library only. It moves no money: your bank goes where `execute` is.
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
FACTS = ("activity", "payment_id", "amount", "currency", "method")  # the same in each repeat
BODY_BYTES_MAX = 65_536
FINAL = (202, 400, 409)  # answers to a callback that no repeat changes

# Everything is on disk before it is answered, so a process may be killed at any point.
DB = sqlite3.connect(DATABASE, check_same_thread=False, isolation_level="IMMEDIATE")
LOCK = threading.Lock()
with DB:
    DB.execute("CREATE TABLE IF NOT EXISTS instructions (key PRIMARY KEY, body, status, answer)")
    DB.execute("CREATE TABLE IF NOT EXISTS reports (id PRIMARY KEY, body, status)")


def sign(secret, t, body):
    return hmac.new(secret.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()


def is_genuine(header, body):
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    t, v1 = parts.get("t", ""), parts.get("v1", "")
    # The service may have cancelled what is older.
    if not (t.isascii() and t.isdigit() and abs(time.time() - int(t)) <= 25):
        return False
    return hmac.compare_digest(sign(SECRET, t, body).encode(), v1.encode())


def find(key):
    """Returns an instruction with its answer. Call it with the lock."""
    row = DB.execute("SELECT * FROM instructions WHERE key = ?", (key,)).fetchone()
    return row and {"body": json.loads(row[1]), "status": row[2], "answer": json.loads(row[3])}


def act_once(key, body, decide):
    """Stores what is decided under its key; a repeat is answered from what is stored."""
    with LOCK, DB:
        stored = find(key)
        if stored is None:
            status, answer = decide(body)
            stored = {**body, "recipient": None, "reference": None}  # they are personal
            row = (key, json.dumps(stored), status, json.dumps(answer))
            DB.execute("INSERT INTO instructions VALUES (?, ?, ?, ?)", row)
            return status, answer
    if any(stored["body"].get(name) != body.get(name) for name in FACTS):
        return 409, {"code": "key_of_another_instruction"}
    return stored["status"], stored["answer"]


def refuse(code, message):
    return 422, {"code": code, "message": message}


def execute(instruction):
    """Moves money. A bank that you call here needs the key as its idempotency key."""


def open_session(session):
    id = session["payment_id"]
    if find(f"close:{id}"):
        return refuse("session_closed", "The payment was cancelled before the bank opened it.")
    url = f"http://127.0.0.1:{PORT}/pay/{id}"
    return 200, {"outcome": "opened", "bank_reference": f"B-{id}", "session_url": url}


def close_session(session):
    was_faster = is_reported(session["payment_id"], "authorized")
    return 200, {"outcome": "already_authorized" if was_faster else "closed"}


def void_payment(void):
    """Releases an authorization; your bank must not settle it anymore."""
    id, opened = void["payment_id"], find(void["payment_id"])
    if opened is None or not is_reported(id, "settled"):
        return 200, {"outcome": "voided"}
    money = {name: opened["body"][name] for name in ("amount", "currency")}
    return 200, {"outcome": "already_settled", **money}


def reverse_payment(reversal):
    execute(reversal)
    reference = f"B-{reversal['instruction_id']}"
    money = {name: reversal[name] for name in ("amount", "currency")}
    report("payment", reversal["payment_id"], "reversed", bank_reference=reference, **money)
    return 200, {"outcome": "accepted", "bank_reference": reference}


def send_refund(refund):
    execute(refund)
    report("refund", refund["refund_id"], "settled")
    return 200, {"outcome": "accepted", "bank_reference": f"B-{refund['refund_id']}"}


def send_payout(payout):
    """Pays payout["recipient"], which is not stored."""
    id = payout["payout_id"]
    if payout["amount"] == 66_600:
        return refuse("amount_too_high", "The bank sends no transfer of this amount.")
    if find(f"cancel:{id}"):
        return refuse("cancelled", "The payout was cancelled before it reached the bank.")
    execute(payout)
    for event in ("sent", "completed"):
        report("payout", id, event)
    return 200, {"outcome": "submitted", "bank_reference": f"B-{id}"}


def cancel_payout(payout):
    """Cancels what never arrived, or was refused. This bank executes all else at once."""
    sent = find(payout["payout_id"])
    return 200, {"outcome": "too_late" if sent and sent["status"] == 200 else "cancelled"}


ACTIVITIES = {  # by their names: the key, and what decides once; look-ups decide nothing
    "openSession": ("{payment_id}", open_session),
    "closeSession": ("close:{payment_id}", close_session),
    "voidPayment": ("{instruction_id}", void_payment),
    "reversePayment": ("{instruction_id}", reverse_payment),
    "sendRefund": ("{refund_id}", send_refund),
    "lookUpRefund": ("{refund_id}", None),
    "sendPayout": ("{payout_id}", send_payout),
    "lookUpPayout": ("{payout_id}", None),
    "cancelPayout": ("cancel:{payout_id}", cancel_payout),
}


def instruct(activity, body, header):
    if activity not in ACTIVITIES:
        return 404, {"code": "activity_unknown"}
    template, decide = ACTIVITIES[activity]
    key = template.format_map(body)
    # The signature covers the body alone.
    if activity != body["activity"] or header not in (None, key):
        return 400, {"code": "not_what_was_signed"}
    if decide:
        return act_once(key, body, decide)
    with LOCK:  # not while a transaction may still be undone
        sent = find(key)
    return (sent["status"], sent["answer"]) if sent else (200, {"outcome": "not_found"})


def pay(id):
    """Takes the customer's payment, once. Returns where the browser goes next."""
    with LOCK, DB:
        session = find(id)
        expires_at = datetime.fromisoformat(session["body"]["expires_at"].replace("Z", "+00:00"))
        is_open = not find(f"close:{id}") and datetime.now(timezone.utc) < expires_at
        if is_open and not is_reported(id, "authorized"):
            for event in ("authorized", "settled"):
                report("payment", id, event)
    return session["body"]["return_url"]


def report(resource, id, event, bank_reference=None, **facts):
    """Stores a callback, once for each fact; `post_reports` posts it until it is answered."""
    reference, now = bank_reference or f"B-{id}", datetime.now(timezone.utc).isoformat()
    fact = {"callback_id": f"{reference}:{event}", "resource": resource, "resource_id": id}
    body = {**fact, "event": event, "occurred_at": now, "bank_reference": reference, **facts}
    row = (body["callback_id"], json.dumps(body))
    DB.execute("INSERT OR IGNORE INTO reports VALUES (?, ?, NULL)", row)


def is_reported(id, event):
    rows = DB.execute("SELECT 1 FROM reports WHERE id = ?", (f"B-{id}:{event}",))
    return rows.fetchone() is not None


def post_reports():
    while True:
        query = "SELECT id, body FROM reports WHERE status IS NULL ORDER BY rowid LIMIT 100"
        with LOCK:
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


def desk(path, body):
    """Desk of `connector check`, for a fake bank alone: what was moved, and events on demand."""
    if path == "/desk/reports":
        with LOCK, DB:
            report(body["resource"], body["resource_id"], body["name"])
        return 200, {}
    with LOCK:
        stored = find(unquote(path.removeprefix("/desk/effects/")))
    return 200, {"effects": [stored["body"]] if stored and stored["status"] == 200 else []}


class Bank(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = int(self.headers.get("Content-Length", "0"))
        raw = self.rfile.read(min(length, BODY_BYTES_MAX))
        if self.path.startswith("/desk/"):
            return self.answer(*desk(self.path, json.loads(raw)))
        if self.path.startswith("/pay/"):
            return self.answer(303, {}, pay(self.path.removeprefix("/pay/")))
        signature = self.headers.get("Service-Signature", "")
        if length > BODY_BYTES_MAX or not is_genuine(signature, raw):
            return self.answer(401, {"code": "signature_invalid"})
        activity = self.path.removeprefix("/instructions/")
        self.answer(*instruct(activity, json.loads(raw), self.headers.get("Idempotency-Key")))

    def do_GET(self):
        if self.path.startswith("/pay/"):  # where the customer pays
            return self.answer(200, '<form method="post"><button>Pay</button></form>')
        self.answer(*desk(self.path, None))

    def answer(self, status, body, location=None):
        is_page = isinstance(body, str)
        raw = (body if is_page else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if is_page else "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass  # bodies and addresses are personal


if __name__ == "__main__":
    threading.Thread(target=post_reports, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(PORT)), Bank)
    print(f"The bank is at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
