import { randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { retryUntilDone } from '../support/insist';
import type { Service } from '../support/service';

/**
 * Money from outside to a balance account, or back. Tries again where a busy machine ends the
 * transaction.
 * @param amount minor units of EUR
 */
export async function fund(
  service: Service,
  { account_id, livemode = false }: { account_id: string; livemode?: boolean },
  amount: number,
  balance_account = 'main',
): Promise<void> {
  const at = new Date().toISOString();
  const legs = ENTRY_LINES.funded(balance_account, amount);
  const facts = { account_id, livemode, currency: 'EUR', at, legs };
  // The same id each time, so that it is posted once.
  const entry: NewEntry = { kind: 'funded', resource_id: randomUUID(), ...facts };
  await retryUntilDone(() => postOnce(service, entry));
}

/** Posts nothing where an earlier try has, whose answer was lost. */
async function postOnce({ mongo, stores: { ledger } }: Service, entry: NewEntry): Promise<void> {
  try {
    await inTransaction(mongo, (session) => ledger.post(entry, session));
  } catch (error) {
    const stored = isDuplicateKey(error) ? await ledger.findEntry(operationId(entry)) : null;
    if (stored === null) throw error;
  }
}
