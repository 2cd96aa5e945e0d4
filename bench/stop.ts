const PARENT_POLL_MS = 500;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `stop` once: on Ctrl-C, on SIGTERM, or when the `npm run bench` that started this process
 * has ended, since npm's shell does not pass signals on.
 */
export function onInterrupt(stop: (why: string) => void): { dispose(): void } {
  let asked = false;
  const ask = (why: string): void => {
    if (!asked) stop(why);
    asked = true;
  };
  const listeners = SIGNALS.map((name) => ({ name, listener: () => ask(name) }));
  for (const { name, listener } of listeners) process.on(name, listener);
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid !== parent) ask('npm has ended');
  }, PARENT_POLL_MS);
  // A run that was started by hand may outlive the shell that it was started from.
  if (process.env['npm_lifecycle_event'] !== 'bench') clearInterval(watch);
  return {
    dispose() {
      clearInterval(watch);
      for (const { name, listener } of listeners) process.off(name, listener);
    },
  };
}
