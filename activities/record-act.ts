import { inTransaction } from '../src/mongo';
import type { AttentionAct, Marking } from '../src/store/attention';
import { auditAct, keptAct } from './operator-acts';
import type { DatedAct, MoveAnswer } from './record-inputs';
import type { RecordDeps, Recorded, RecordTable } from './record-table';

/** Keeps an operator's act that moves nothing, on the resource and in the audit log. */
export async function recordAct<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  { mongo, stores }: RecordDeps,
  { resource, store }: RecordTable<Status, Attention, Change, Document, Loaded>,
  resource_id: string,
  marking: Omit<Marking<Attention>, 'audit'>,
  act: DatedAct,
): Promise<boolean> {
  const { id, at } = act;
  const found = await store.get(resource_id);
  if (found === null) return false;
  const { account_id, livemode } = found;
  const { attention } = marking;
  const before = found.attention ?? 'no attention';
  const made = { act, id, at, before, after: attention ?? 'no attention' };
  return await inTransaction(mongo, async (session) => {
    const audit = { ...keptAct(act), id, at };
    if (!(await store.setAttention(resource_id, { ...marking, audit }, session))) return false;
    await auditAct(stores, { resource, resource_id, account_id, livemode }, made, session);
    return true;
  });
}

/**
 * Answers an act that was not written: undefined where an earlier attempt has, or where the record
 * stands.
 * @throws Error when the record is behind, as for a move
 */
export async function actElsewhere<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  { store }: RecordTable<Status, Attention, Change, Document, Loaded>,
  resource_id: string,
  from: number,
  act: AttentionAct,
): Promise<MoveAnswer<Status, Attention> | undefined> {
  const document = await store.get(resource_id);
  if (document?.audit.some(({ id }) => id === act.id)) return undefined;
  if (document === null || document.version <= from) {
    throw new Error(`The record of ${resource_id} is not where this act was asked for.`);
  }
  const { status, version, attention } = document;
  return { status, version, ahead: { attention } };
}
