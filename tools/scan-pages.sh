#!/usr/bin/env bash
# Scans the pages with Wapiti. Start a stack for this alone, with a payment for each token, and sign in for the
# session's cookie. A session that visits too fast gets a 429, which hides the pages and which Wapiti takes for a token
# that is not checked: raise VISIT_COSTS_MAX in dist/src/dashboard/frame/visit-limits.js for the scan.
# Variables: KEY (API key), SESSION (cookie), TOKEN (of the hosted page), BANK_TOKEN (of the sandbox bank's session).
set -euo pipefail

python3 -m venv wapiti && wapiti/bin/pip install wapiti3==3.2.3
scan() {
  wapiti/bin/wapiti --no-bugreport --flush-session --tasks 4 -l 2 --max-scan-time 60 --max-attack-time 60 \
    -m csp,http_headers,cookieflags,csrf,methods,htaccess,xss,permanentxss,sql,exec,file,crlf,redirect,ssrf,backup,xxe,ldap \
    -u "$@"
}
BASE=http://localhost:8080
scan $BASE/dashboard/ -s $BASE/dashboard/sign-in
scan $BASE/dashboard/sandbox/ -s $BASE/dashboard/sandbox/overview -C "dashboard=$SESSION" \
  -x $BASE/dashboard/sign-out -x "$BASE/dashboard/sandbox/profile*" -x "$BASE/dashboard/sandbox/sessions*" \
  -x "$BASE/dashboard/sandbox/clock*" -x "$BASE/dashboard/sandbox/team/*/*"
scan $BASE/pay/ -s "$BASE/pay/$TOKEN" -x "$BASE/pay/*/cancel"
scan http://localhost:8081/session/ -s "http://localhost:8081/session/$BANK_TOKEN"
scan $BASE/docs/
scan $BASE/ --swagger $BASE/openapi.json -H "Authorization: Bearer $KEY" -x "$BASE/docs*" -x "$BASE/dashboard*"
