import { inTransaction } from '../../src/base/mongo';
import type { AttentionAct, AttentionUpdate } from '../../src/store/attention';
import { auditAct, toStoredAct } from './operator-acts';
import type { DatedAct, TransitionResult } from './record-inputs';
import type { RecordDeps, RecordTable, StoredResource } from './record-table';

/** Stores an operator's act that changes no status, on the resource and in the audit log. */
export async function recordAct<
  Status extends string,
  Attention extends string,
  Change,
  Document extends StoredResource<Status, Attention>,
  Snapshot,
>(
  { mongo, stores }: RecordDeps,
  { resource, store }: RecordTable<Status, Attention, Change, Document, Snapshot>,
  resource_id: string,
  marking: Omit<AttentionUpdate<Attention>, 'audit'>,
  act: DatedAct,
): Promise<boolean> {
  const { id, at } = act;
  const document = await store.get(resource_id);
  if (document === null) return false;
  const { account_id, livemode } = document;
  const { attention } = marking;
  const before = document.attention ?? 'no attention';
  const actChange = { act, id, at, before, after: attention ?? 'no attention' };
  return await inTransaction(mongo, async (session) => {
    const audit = { ...toStoredAct(act), id, at };
    if (!(await store.setAttention(resource_id, { ...marking, audit }, session))) return false;
    await auditAct(stores, { resource, resource_id, account_id, livemode }, actChange, session);
    return true;
  });
}

/**
 * Resolves an act that was not written: undefined where an earlier attempt has, or the stored
 * state.
 * @throws Error when the database is behind, as for a transition
 */
export async function resolveStaleAct<
  Status extends string,
  Attention extends string,
  Change,
  Document extends StoredResource<Status, Attention>,
  Snapshot,
>(
  { store }: RecordTable<Status, Attention, Change, Document, Snapshot>,
  resource_id: string,
  from: number,
  act: AttentionAct,
): Promise<TransitionResult<Status, Attention> | undefined> {
  const document = await store.get(resource_id);
  if (document?.audit.some(({ id }) => id === act.id)) return undefined;
  if (document === null || document.version <= from) {
    throw new Error(`The record of ${resource_id} does not have the version of this act.`);
  }
  const { status, version, attention } = document;
  return { status, version, stale: { attention } };
}
