import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import type { Service } from '../support/service';

/**
 * Money from outside to a balance account, or back.
 * @param amount minor units of EUR
 */
export async function fund(
  { mongo, stores }: Service,
  { account_id, livemode = false }: { account_id: string; livemode?: boolean },
  amount: number,
  balance_account = 'main',
): Promise<void> {
  const at = new Date().toISOString();
  const legs = ENTRY_LINES.funded(balance_account, amount);
  const facts = { account_id, livemode, currency: 'EUR', at, legs };
  await inTransaction(mongo, (session) =>
    stores.ledger.post({ kind: 'funded', resource_id: randomUUID(), ...facts }, session),
  );
}
