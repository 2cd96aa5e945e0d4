import { buildPosition } from '../../domain/cursor';
import { toEnv } from '../../domain/environment';
import { monthsBefore, PAYER_MONTHS, type RetentionMonths } from '../../domain/operators/retention';
import type { Stores } from '../../store';
import type { AccountDocument } from '../../store/accounts';

export interface RetentionDeps {
  stores: Stores;
  months: RetentionMonths;
  now: () => Date;
  /** Called after each batch. */
  onProgress: (count: number) => void;
}

const BATCH = 200;
const DELETED_AT_ONCE = 1_000;
const ENVIRONMENTS = [false, true];

/**
 * Deletes details of recipients that were neither created nor paid for some months. Every record of
 * a batch leaves the list, so the loop ends.
 */
export async function deleteRecipients(deps: RetentionDeps): Promise<number> {
  const { stores, now, onProgress } = deps;
  const { recipients, payouts } = stores;
  const before = monthsBefore(now(), deps.months.recipients).toISOString();
  let deletedCount = 0;
  for (;;) {
    const batch = await recipients.unusedSince(before, BATCH);
    if (batch.length === 0) return deletedCount;
    for (const { _id, used_at } of batch) {
      const last = await payouts.lastTo(_id);
      const usedAt = (await payouts.hasInFlight(_id)) ? before : (last?.created_at ?? used_at);
      // A record that changes meanwhile is in the next batch.
      if (usedAt >= before) await recipients.noteUse(_id, used_at, usedAt);
      else if (await recipients.eraseDetails(_id, now().toISOString(), { used_at })) {
        deletedCount += 1;
      }
    }
    onProgress(deletedCount);
  }
}

/**
 * Redacts payers by the account's retention period. The account stores the last position, so no
 * payment is read twice.
 * @returns number of payments that were read
 */
export async function redactPayers(deps: RetentionDeps): Promise<number> {
  const { now, onProgress } = deps;
  const { accounts, disputes, payments } = deps.stores;
  let count = 0;
  for await (const account of listAccounts(deps)) {
    const { _id: account_id, payer_data_months = PAYER_MONTHS, payers_redacted_to } = account;
    const before = buildPosition(monthsBefore(now(), payer_data_months).getTime(), 0);
    for (const livemode of ENVIRONMENTS) {
      const env = toEnv(livemode);
      let after = payers_redacted_to?.[env] ?? '';
      for (;;) {
        const owner = { account_id, livemode };
        const batch = await payments.listPayers(owner, { after, before }, BATCH);
        const last = batch.at(-1);
        onProgress(count);
        if (last === undefined) break;
        const ids = batch.map(({ _id }) => _id);
        await payments.redactPayers(ids);
        await disputes.eraseEvidence(ids);
        after = last.position;
        await accounts.setPayersRedacted(account_id, env, after);
        count += batch.length;
      }
    }
  }
  return count;
}

async function* listAccounts({ stores: { accounts } }: RetentionDeps) {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const batch: AccountDocument[] = await accounts.page(after, BATCH);
    yield* batch;
    after = batch.at(-1)?._id;
  }
}

/** Deletes events with their deliveries, and dismissed callbacks. A pending delivery stays. */
export async function deleteRecords(deps: RetentionDeps): Promise<number> {
  const { stores, months, now, onProgress } = deps;
  let count = 0;
  const deleteAll = async (deleteBatch: () => Promise<number>) => {
    for (let deleted = await deleteBatch(); deleted > 0; deleted = await deleteBatch()) {
      count += deleted;
      onProgress(count);
    }
  };
  const dismissedBefore = monthsBefore(now(), months.dismissed_callbacks).toISOString();
  await deleteAll(() => stores.callbacks.deleteDismissed(dismissedBefore, DELETED_AT_ONCE));
  const oldest = monthsBefore(now(), months.events);
  // Before the first is gone: a check of the ledger would miss it.
  await stores.scheduleRuns.noteEventsDeleted(oldest.toISOString());
  const before = buildPosition(oldest.getTime(), 0);
  for await (const { _id: account_id } of listAccounts(deps)) {
    for (const livemode of ENVIRONMENTS) {
      const owner = { account_id, livemode };
      await deleteAll(() => stores.deliveries.deleteOld(owner, before, DELETED_AT_ONCE));
    }
    onProgress(count);
  }
  return count;
}
