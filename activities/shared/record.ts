import { ApplicationFailure } from '@temporalio/activity';
import { isDuplicateKey } from '../../src/base/mongo';
import {
  getVerificationMode,
  VERIFICATION_FAULTS,
  type VerificationMode,
} from '../../src/domain/callback/signature';
import { omitUndefined } from '../../src/domain/defined';
import { callbackKey } from '../../src/store/callbacks';
import { recordAct, resolveStaleAct } from './record-act';
import type {
  RecordAttention,
  RecordRefused,
  RecordUnapplied,
  TransitionInput,
  TransitionResult,
} from './record-inputs';
import { recordMove, startPendingDeliveries } from './record-move';
import type { RecordDeps, RecordTable, StoredResource } from './record-table';

/** Activities that every resource has. */
export function createRecord<
  Status extends string,
  Attention extends string,
  Change,
  Document extends StoredResource<Status, Attention>,
  Snapshot,
>(deps: RecordDeps, table: RecordTable<Status, Attention, Change, Document, Snapshot>) {
  return {
    /**
     * Writes document, events, journal entries and audit entry in one transaction; then starts the
     * deliveries.
     */
    transition: (
      input: TransitionInput<Status, Attention, Change>,
    ): Promise<TransitionResult<Status, Attention>> => recordMove(deps, table, input),
    /** Sets or clears the attention reason. An act answers as a transition does. */
    setAttention: async (
      input: RecordAttention<Attention>,
    ): Promise<TransitionResult<Status, Attention> | undefined> => {
      const { resource_id, request_id, audit, ...marking } = input;
      const { version } = marking;
      const isWritten =
        audit === null
          ? await table.store.setAttention(resource_id, { ...marking, audit })
          : await recordAct(deps, table, resource_id, marking, audit);
      if (isWritten || audit === null) return undefined;
      return await resolveStaleAct(table, resource_id, version, audit);
    },
    /**
     * Loads a resource whose workflow starts again.
     * @throws ApplicationFailure not retryable, `{resource}_not_found`
     */
    load: async (input: {
      resource_id: string;
      request_id: string;
    }): Promise<
      Snapshot & { applied: string[]; attention_at?: number; verification: VerificationMode }
    > => {
      const document = await table.store.get(input.resource_id);
      if (document === null) {
        const code = `${table.resource}_not_found`;
        throw ApplicationFailure.nonRetryable(`No such ${table.resource}.`, code);
      }
      await startPendingDeliveries(deps, document);
      const { applied_callbacks: applied = [], attention_at, livemode } = document;
      const snapshot = { ...table.buildSnapshot(document, input.request_id), applied };
      return {
        ...snapshot,
        ...omitUndefined({ attention_at }),
        verification: getVerificationMode(livemode),
      };
    },
  };
}

const TRIES_MAX = 3;

/**
 * Opens a resource, and retries when another attempt wrote first, or the random list position
 * collides.
 * @throws Error of MongoDB when keys collide three times: the collections contradict each other
 */
export async function openWithRetry<T>(attempt: (isRetry: boolean) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt(tries > 1);
    } catch (error) {
      if (!isDuplicateKey(error) || tries === TRIES_MAX) throw error;
    }
  }
}

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

export async function recordRefused(
  { stores, log, refusals }: RecordDeps,
  { report, signature, code, at, request_id }: RecordRefused,
): Promise<void> {
  const { connector, resource, resource_id, name, callback } = report;
  const signing = signature === undefined ? {} : { signed_by: signature.key_id, mac: signature.v1 };
  const about = { connector, resource, resource_id, name, body: callback };
  const reason = `sender not known: ${VERIFICATION_FAULTS[code]}`;
  await stores.callbacks.markRefused(reason, { ...about, ...signing, received_at: at });
  refusals?.refused({ connector, resource, reason: code });
  const { callback_id } = callback;
  const ids = { [`${resource}_id`]: resource_id, request_id, connector, callback_id };
  log.warn({ ...ids, code }, 'callback refused: its sender is not verified');
}
