import { positionOf } from '../domain/cursor';
import { envOf } from '../domain/environment';
import { monthsBefore, PAYER_MONTHS } from '../domain/retention';
import type { Stores } from '../store';
import type { AccountDocument } from '../store/accounts';
import type { Payers } from './payers';

export interface RetentionDeps {
  stores: Pick<Stores, 'accounts' | 'idempotency' | 'payments' | 'payouts' | 'recipients'>;
  payers: Pick<Payers, 'seal'>;
  /** Months after the last payout for which a recipient's details are kept. */
  recipientMonths: number;
  now: () => Date;
  /** Tells after each batch how many records were changed. */
  told: (count: number) => void;
}

const BATCH = 200;
const ENVIRONMENTS = [false, true];

/**
 * Deletes the details of recipients that were neither made nor paid for some months, unless a payout
 * to them is under way. Every record of a batch leaves the list, so that it ends.
 * @returns how many were deleted
 */
export async function deleteRecipients(deps: RetentionDeps): Promise<number> {
  const { stores, now, told } = deps;
  await stores.idempotency.limitOpen();
  const before = monthsBefore(now(), deps.recipientMonths).toISOString();
  let deleted = 0;
  while ((await stores.recipients.noteCreation(BATCH)) > 0) told(deleted);
  for (;;) {
    const batch = await stores.recipients.unusedSince(before, BATCH);
    if (batch.length === 0) return deleted;
    for (const { _id, used_at } of batch) {
      deleted += await deleteUnused(deps, { _id, used_at }, before);
    }
    told(deleted);
  }
}

/** Deletes one, or notes until when it is kept; what others change meanwhile is looked at again. */
async function deleteUnused(
  { stores, now }: RetentionDeps,
  { _id, used_at }: { _id: string; used_at: string },
  before: string,
): Promise<number> {
  const { recipients, payouts } = stores;
  const last = await payouts.lastTo(_id);
  const usedAt = (await payouts.isUnderWay(_id)) ? before : (last?.created_at ?? used_at);
  if (usedAt >= before) {
    await recipients.noteUse(_id, used_at, usedAt);
    return 0;
  }
  const known = await recipients.forget(_id, now().toISOString(), { used_at });
  return known === null ? 0 : 1;
}

/**
 * Blanks names and e-mail addresses of payers, each account's by its own time. The place up to which
 * an account's are blanked is kept, so that no payment is looked at twice.
 * @returns how many payments were looked at
 */
export async function blankPayers(deps: RetentionDeps): Promise<number> {
  const { accounts } = deps.stores;
  let count = 0;
  let after = '';
  for (;;) {
    const batch = await accounts.page(after, BATCH);
    const last = batch.at(-1);
    if (last === undefined) return count;
    after = last._id;
    for (const account of batch) {
      for (const livemode of ENVIRONMENTS) count += await blankOf(deps, account, livemode, count);
    }
  }
}

async function blankOf(
  { stores, now, told }: RetentionDeps,
  { _id: account_id, payer_data_months = PAYER_MONTHS, payers_blanked }: AccountDocument,
  livemode: boolean,
  before: number,
): Promise<number> {
  const { accounts, payments } = stores;
  const env = envOf(livemode);
  const until = positionOf(monthsBefore(now(), payer_data_months).getTime(), 0);
  let after = payers_blanked?.[env] ?? '';
  let count = 0;
  for (;;) {
    const owner = { account_id, livemode };
    const places = await payments.placesBetween(owner, after, until, BATCH);
    const last = places.at(-1);
    told(before + count);
    if (last === undefined) return count;
    await payments.blankPayers(places.map(({ _id }) => _id));
    after = last.position;
    await accounts.notePayersBlanked(account_id, env, after);
    count += places.length;
  }
}

/**
 * Seals payers that were stored in clear, before there was a seal for them.
 * @returns how many payments were changed
 */
export async function sealPayers({ stores, payers, told }: RetentionDeps): Promise<number> {
  let count = 0;
  for (const livemode of ENVIRONMENTS) {
    let after = '';
    for (;;) {
      const batch = await stores.payments.withClearPayer(livemode, after, BATCH);
      const last = batch.at(-1);
      if (last === undefined) break;
      after = last._id;
      for (const { _id, account_id, customer } of batch) {
        if (!('email' in customer)) continue;
        const sealed = await payers.seal({ account_id, livemode }, _id, customer);
        count += (await stores.payments.sealPayer(_id, sealed)).modifiedCount;
      }
      told(count);
    }
  }
  return count;
}
