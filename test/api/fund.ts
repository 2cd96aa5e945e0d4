import { randomUUID } from 'node:crypto';
import type { NewEntry } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import type { Service } from '../support/service';
import { postOnce } from '../support/write-once';

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
  await postOnce(service, entry);
}
