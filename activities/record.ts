import { ApplicationFailure } from '@temporalio/activity';
import { SENDER_FAULTS, type SenderCheck, senderCheck } from '../src/domain/callback-mac';
import { defined } from '../src/domain/defined';
import { isDuplicateKey } from '../src/mongo';
import { callbackKey } from '../src/store/callbacks';
import { actElsewhere, recordAct } from './record-act';
import type {
  MoveAnswer,
  ReadStanding,
  RecordAttention,
  RecordMove,
  RecordRefused,
  RecordUnapplied,
  Standing,
} from './record-inputs';
import { recordMove, startPendingDeliveries } from './record-move';
import type { RecordDeps, Recorded, RecordTable } from './record-table';

/** The activities that every kind of resource has. */
export function createRecord<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(deps: RecordDeps, table: RecordTable<Status, Attention, Change, Document, Loaded>) {
  return {
    /** Document, events, postings and audit entry in one transaction; then the deliveries start. */
    move: (input: RecordMove<Status, Attention, Change>): Promise<MoveAnswer<Status, Attention>> =>
      recordMove(deps, table, input),
    /** Marks or unmarks it for operators while the state stays. An act answers as a move does. */
    setAttention: async (
      input: RecordAttention<Attention>,
    ): Promise<MoveAnswer<Status, Attention> | undefined> => {
      const { resource_id, request_id, audit, ...marking } = input;
      const { version } = marking;
      const isWritten =
        audit === null
          ? await table.store.setAttention(resource_id, { ...marking, audit })
          : await recordAct(deps, table, resource_id, marking, audit);
      if (isWritten || audit === null) return undefined;
      return await actElsewhere(table, resource_id, version, audit);
    },
    /**
     * Reads where the record stands, before a bank is instructed.
     * @throws Error when the record is behind, or not there: a restored database, most likely. It is
     *   retried: no money moves that no record holds.
     */
    standing: async ({ resource_id, version }: ReadStanding): Promise<Standing<Status>> => {
      const document = await table.store.get(resource_id);
      if (document === null || document.version < version) {
        throw new Error(`The record of ${resource_id} is behind its workflow.`);
      }
      return { status: document.status, version: document.version };
    },
    /**
     * State and facts of a resource whose workflow starts again.
     * @throws ApplicationFailure not retryable, `{resource}_not_found`
     */
    load: async (input: {
      resource_id: string;
      request_id: string;
    }): Promise<Loaded & { applied: string[]; marked_at?: number; senders: SenderCheck }> => {
      const document = await table.store.get(input.resource_id);
      if (document === null) {
        const code = `${table.resource}_not_found`;
        throw ApplicationFailure.nonRetryable(`No such ${table.resource}.`, code);
      }
      await startPendingDeliveries(deps, document);
      const { applied_callbacks: applied = [], marked_at, livemode } = document;
      const loaded = { ...table.loaded(document, input.request_id), applied };
      return { ...loaded, ...defined({ marked_at }), senders: senderCheck(livemode) };
    },
  };
}

/** Keys that an opening may find taken before it gives up: its own, by another attempt, or a place. */
const TAKEN_MAX = 3;

/**
 * Opens a resource, and looks again when a unique key was taken meanwhile: another attempt was
 * first, or (one in a million) the place in a list was.
 * @throws Error of MongoDB when keys are taken again and again: the collections contradict each other
 */
export async function openedOnce<T>(attempt: (isAgain: boolean) => Promise<T>): Promise<T> {
  for (let taken = 1; ; taken += 1) {
    try {
      return await attempt(taken > 1);
    } catch (error) {
      if (!isDuplicateKey(error) || taken === TAKEN_MAX) throw error;
    }
  }
}

/** Keeps a callback that moved nothing, with its reason. */
export async function recordUnapplied(
  { stores, log }: RecordDeps,
  { resource, resource_id, connector, name, callback, reason, request_id }: RecordUnapplied,
): Promise<void> {
  const about = { connector, resource, resource_id, name, body: callback };
  const key = callbackKey(connector, callback.callback_id);
  await stores.callbacks.markUnapplied(key, reason, about);
  const ids = { [`${resource}_id`]: resource_id, request_id, connector };
  log.warn({ ...ids, code: name }, 'callback moved nothing');
}

/** Keeps a callback whose sender is not known, with the reason. */
export async function recordRefused(
  { stores, log, refusals }: RecordDeps,
  { told, mac, code, at, request_id }: RecordRefused,
): Promise<void> {
  const { connector, resource, resource_id, name, callback } = told;
  const signing = mac === undefined ? {} : { signed_by: mac.key_id, mac: mac.v1 };
  const about = { connector, resource, resource_id, name, body: callback };
  const reason = `sender not known: ${SENDER_FAULTS[code]}`;
  await stores.callbacks.markRefused(reason, { ...about, ...signing, received_at: at });
  refusals?.refused({ connector, resource, reason: code });
  const { callback_id } = callback;
  const ids = { [`${resource}_id`]: resource_id, request_id, connector, callback_id };
  log.warn({ ...ids, code }, 'callback refused: its sender is not known');
}
