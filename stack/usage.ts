/** Output of `npm start -- --help`. */
export const USAGE = `npm start: runs the whole service on this machine.

Finds or fetches Temporal and MongoDB, starts them, the api, the worker and the sandbox bank,
restarts a part that dies, and stops all on Ctrl-C or SIGTERM. The first start makes a demo
account and prints its keys.

  --inspect PART[:PORT]  lets a debugger attach to that process alone: api, worker or
                         sandbox_bank; port 9229 if none is given
  --watch                builds when a source changes and restarts what the change concerns;
                         the servers stay up. \`npm run dev\` is \`npm start -- --watch\`
  --help                 this text

Environment:
  PORT                8080      the api; it listens on this machine only
  DATA_DIR            .data     data, keys, logs and stack.json; lasts across restarts
  PUBLIC_URL          http://localhost:PORT    the base of links that customers open
  TEMPORAL_ADDRESS              host:port of a Temporal server to use; then none is started
  TEMPORAL_NAMESPACE  default
  TEMPORAL_PORT                 default: a free port, chosen once and kept in DATA_DIR
  TEMPORAL_UI_PORT    8233      Temporal's web UI
  MONGODB_URI                   a MongoDB replica set to use; then none is started
  MONGODB_PORT                  default: a free port, chosen once and kept in DATA_DIR
  MONGODB_DB          payments
  SANDBOX_BANK_PORT   PORT + 1
  SANDBOX_AUTOPLAY    on        off: the sandbox bank settles and completes nothing by itself
  CACHE_DIR           ~/.cache/durable-payments    fetched servers, shared between checkouts
  LIVE_CONNECTORS               live banks: name=method|rail,name=method
  RATE_LIMIT_PER_SECOND  500    requests a key may make, over ten seconds
  LOG_LEVEL           info      fatal, error, warn, info, debug, trace or silent

A second stack runs beside the first with its own PORT, TEMPORAL_UI_PORT and DATA_DIR.
`;
