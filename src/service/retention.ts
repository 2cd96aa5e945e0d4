import { monthsBefore, PAYER_MONTHS } from '../domain/account/retention';
import { buildPosition } from '../domain/cursor';
import { toEnv } from '../domain/environment';
import type { Stores } from '../store';
import type { AccountDocument } from '../store/accounts';

export interface RetentionDeps {
  stores: Pick<Stores, 'accounts' | 'payments' | 'payouts' | 'recipients'>;
  /** Months since the last payout. */
  recipientMonths: number;
  now: () => Date;
  /** Called after each batch with the number of changed records. */
  onProgress: (count: number) => void;
}

const BATCH = 200;
const ENVIRONMENTS = [false, true];

/**
 * Deletes the details of recipients that were neither created nor paid for some months. Every
 * record of a batch leaves the list, so the loop ends.
 * @returns number of deleted recipients
 */
export async function deleteRecipients(deps: RetentionDeps): Promise<number> {
  const { stores, now, onProgress } = deps;
  const before = monthsBefore(now(), deps.recipientMonths).toISOString();
  let deletedCount = 0;
  for (;;) {
    const batch = await stores.recipients.unusedSince(before, BATCH);
    if (batch.length === 0) return deletedCount;
    for (const { _id, used_at } of batch) {
      deletedCount += await deleteUnused(deps, { _id, used_at }, before);
    }
    onProgress(deletedCount);
  }
}

/**
 * Deletes a recipient or stores its last use; a record that changes meanwhile is in the next batch.
 */
async function deleteUnused(
  { stores, now }: RetentionDeps,
  { _id, used_at }: { _id: string; used_at: string },
  before: string,
): Promise<number> {
  const { recipients, payouts } = stores;
  const last = await payouts.lastTo(_id);
  const usedAt = (await payouts.hasInFlight(_id)) ? before : (last?.created_at ?? used_at);
  if (usedAt >= before) {
    await recipients.noteUse(_id, used_at, usedAt);
    return 0;
  }
  const erasedRecipient = await recipients.eraseDetails(_id, now().toISOString(), { used_at });
  return erasedRecipient === null ? 0 : 1;
}

/**
 * Redacts names and e-mail addresses of payers, by the retention period of each account. The
 * account stores the last processed position, so no payment is read twice.
 * @returns number of payments that were read
 */
export async function redactPayers(deps: RetentionDeps): Promise<number> {
  const { accounts } = deps.stores;
  let count = 0;
  let after = '';
  for (;;) {
    const batch = await accounts.page(after, BATCH);
    const last = batch.at(-1);
    if (last === undefined) return count;
    after = last._id;
    for (const account of batch) {
      for (const livemode of ENVIRONMENTS)
        count += await redactAccount(deps, account, livemode, count);
    }
  }
}

async function redactAccount(
  { stores, now, onProgress }: RetentionDeps,
  { _id: account_id, payer_data_months = PAYER_MONTHS, payers_blanked }: AccountDocument,
  livemode: boolean,
  before: number,
): Promise<number> {
  const { accounts, payments } = stores;
  const env = toEnv(livemode);
  const until = buildPosition(monthsBefore(now(), payer_data_months).getTime(), 0);
  let after = payers_blanked?.[env] ?? '';
  let count = 0;
  for (;;) {
    const owner = { account_id, livemode };
    const batch = await payments.listPositions(owner, after, until, BATCH);
    const last = batch.at(-1);
    onProgress(before + count);
    if (last === undefined) return count;
    await payments.redactPayers(batch.map(({ _id }) => _id));
    after = last.position;
    await accounts.setPayersRedacted(account_id, env, after);
    count += batch.length;
  }
}
