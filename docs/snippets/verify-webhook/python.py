import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from durable_payments import SignatureError, verify_webhook

SIGNING_SECRET = os.environ["SIGNING_SECRET"]
PORT = int(os.environ.get("PORT", "9000"))


class Webhooks(BaseHTTPRequestHandler):
    def do_POST(self):
        # The body exactly as received, before any parser.
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signature = self.headers["Service-Signature"]
        try:
            event = verify_webhook(body, signature, SIGNING_SECRET)
        except SignatureError:
            self.send_error(400)
            return
        print(event["type"], event["id"], flush=True)
        self.send_response(204)
        self.end_headers()


HTTPServer(("127.0.0.1", PORT), Webhooks).serve_forever()
