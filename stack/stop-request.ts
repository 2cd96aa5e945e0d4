const PARENT_POLL_MS = 500;
/** Time within which a signal is repeated: npm passes Ctrl-C on, and the terminal sends it too. */
const SAME_REQUEST_MS = 250;
const NPM_SCRIPTS: ReadonlySet<string> = new Set(['start', 'dev', 'npx']);

/**
 * Counts Ctrl-C, SIGTERM, and the end of the npm that started this process, since npm's shell does
 * not pass signals on.
 * @returns function that stops listening
 */
export function onStopRequest(onRequest: (count: number, why: string) => void): () => void {
  let count = 0;
  let last = Number.NEGATIVE_INFINITY;
  const request = (why: string): void => {
    const since = performance.now() - last;
    last = performance.now();
    if (since > SAME_REQUEST_MS) onRequest(++count, why);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const names = { SIGINT: 'Ctrl-C', SIGTERM: 'SIGTERM', SIGHUP: 'The terminal was closed' };
  const listeners = signals.map((name) => {
    const listener = (): void => request(names[name]);
    process.on(name, listener);
    return () => process.off(name, listener);
  });

  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    request('npm has ended');
  }, PARENT_POLL_MS);
  if (!NPM_SCRIPTS.has(process.env['npm_lifecycle_event'] ?? '')) clearInterval(watch);

  return () => {
    clearInterval(watch);
    for (const unlisten of listeners) unlisten();
  };
}
