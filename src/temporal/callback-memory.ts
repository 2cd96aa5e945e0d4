import type { CallbackResource } from '../domain/callback';
import type { Stores } from '../store';
import type { SentCallback, SignalledCallback } from '../store/callbacks';

/** Wait before callbacks are noted as signalled, so that one write notes many. */
const GATHER_MS = 250;
const RESOURCES_MAX = 10_000;

/** Facts about callbacks that a process remembers, so as to ask and write less. */
export interface CallbackMemory {
  /** Whether a resource is this connector's: undefined where that is not known. */
  isOf: (resource: CallbackResource, id: string, connector: string) => boolean | undefined;
  /** Remembers the connector of a resource, which never changes. */
  belongs: (resource: CallbackResource, id: string, connector: string) => void;
  /** Notes soon that a callback was signalled. */
  signalled: (sent: SentCallback, at: string) => void;
  /** Whether a callback was signalled and that is not noted yet. */
  wasSignalled: (sent: SentCallback) => boolean;
  /** Notes what is left. */
  close: () => Promise<void>;
}

/**
 * Memory of one process. A kill loses the notes of a quarter of a second: these callbacks are then
 * signalled again, by the bank's repeat or by the audit, and their workflows count each once.
 */
export function createCallbackMemory(
  callbacks: Pick<Stores['callbacks'], 'markAllSignalled'>,
  log: { warn: (fields: object, message: string) => void },
): CallbackMemory {
  const owners = new Map<string, string>();
  const unnoted = new Map<string, SignalledCallback>();
  let gathering: NodeJS.Timeout | undefined;
  let noting = Promise.resolve();
  const keyOf = (resource: CallbackResource, id: string) => `${resource}:${id}`;
  const sentKey = ({ _id, mac = '' }: SentCallback) => `${mac}:${_id}`;

  const note = async () => {
    const rows = [...unnoted.values()];
    if (rows.length === 0) return;
    try {
      await callbacks.markAllSignalled(rows);
      for (const row of rows) unnoted.delete(sentKey(row));
    } catch (err) {
      log.warn({ err }, 'signalled callbacks not noted, tried again');
    }
  };
  const gather = () => {
    gathering ??= setTimeout(() => {
      gathering = undefined;
      noting = noting.then(note).then(() => {
        if (unnoted.size > 0) gather();
      });
    }, GATHER_MS);
  };

  return {
    isOf: (resource, id, connector) => {
      const owner = owners.get(keyOf(resource, id));
      return owner === undefined ? undefined : owner === connector;
    },
    belongs: (resource, id, connector) => {
      const [oldest] = owners.keys();
      if (owners.size >= RESOURCES_MAX && oldest !== undefined) owners.delete(oldest);
      owners.set(keyOf(resource, id), connector);
    },
    signalled: (sent, signalled_at) => {
      unnoted.set(sentKey(sent), { ...sent, signalled_at });
      gather();
    },
    wasSignalled: (sent) => unnoted.has(sentKey(sent)),
    close: async () => {
      clearTimeout(gathering);
      await noting;
      await note();
    },
  };
}
