import type { CallbackResource } from '../domain/banks/callback';
import type { Stores } from '../store';
import type { SentCallback, SignalledCallback } from '../store/callbacks';

/** Callbacks collect for one write. */
const FLUSH_DELAY_MS = 250;
const RESOURCES_MAX = 10_000;

export type CallbackMemory = ReturnType<typeof createCallbackMemory>;

/**
 * Caches owners and signal times in one process, which saves two commands for each callback. A kill
 * loses the signal times of a quarter of a second: these callbacks are signaled again, by the
 * bank's repeat or the audit, and count once.
 */
export function createCallbackMemory(
  callbacks: Pick<Stores['callbacks'], 'markAllSignalled'>,
  log: { warn: (fields: object, message: string) => void },
) {
  const owners = new Map<string, string>();
  const unsavedSignals = new Map<string, SignalledCallback>();
  let flushTimer: NodeJS.Timeout | undefined;
  let lastFlush = Promise.resolve();
  const buildKey = (resource: CallbackResource, id: string) => `${resource}:${id}`;
  const sentKey = ({ _id, signature = '' }: SentCallback) => `${signature}:${_id}`;

  const flush = async () => {
    const rows = [...unsavedSignals.values()];
    if (rows.length === 0) return;
    try {
      await callbacks.markAllSignalled(rows);
      for (const row of rows) unsavedSignals.delete(sentKey(row));
    } catch (err) {
      log.warn({ err }, 'signalled callbacks not marked, will retry');
    }
  };
  const scheduleFlush = () => {
    flushTimer ??= setTimeout(() => {
      flushTimer = undefined;
      lastFlush = lastFlush.then(flush).then(() => {
        if (unsavedSignals.size > 0) scheduleFlush();
      });
    }, FLUSH_DELAY_MS);
  };

  return {
    belongsTo: (resource: CallbackResource, id: string, connector: string) =>
      owners.get(buildKey(resource, id)) === connector,
    /** The connector of a resource never changes. */
    rememberConnector: (resource: CallbackResource, id: string, connector: string) => {
      const [oldest] = owners.keys();
      if (owners.size >= RESOURCES_MAX && oldest !== undefined) owners.delete(oldest);
      owners.set(buildKey(resource, id), connector);
    },
    recordSignal: (sent: SentCallback, signalled_at: string) => {
      unsavedSignals.set(sentKey(sent), { ...sent, signalled_at });
      scheduleFlush();
    },
    wasSignalled: (sent: SentCallback) => unsavedSignals.has(sentKey(sent)),
    /** Finds a signal under any signature. */
    hasSignalled: (id: string) => [...unsavedSignals.values()].some(({ _id }) => _id === id),
    close: async () => {
      clearTimeout(flushTimer);
      await lastFlush;
      await flush();
    },
  };
}
