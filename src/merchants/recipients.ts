import type { MongoClient } from 'mongodb';
import { inTransaction } from '../mongo';
import type { Stores } from '../store';
import type { Audit } from '../store/audit';
import type { RecipientDocument } from '../store/recipients';

export interface RecipientDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'recipients' | 'idempotency'>;
  audit: Audit;
  now: () => Date;
}

/**
 * Deletes what identifies a recipient, from its record and from its claim in one write, with a line
 * in the audit log; again changes nothing. Past payouts keep its id and last four.
 * @param owner account and environment that it must belong to, where they are known
 * @returns the recipient as it is now; null when there is none
 * @see docs/api.md#delete-a-recipient
 */
export async function forgetRecipient(
  { mongo, stores, audit, now }: RecipientDeps,
  id: string,
  owner: { account_id?: string; livemode?: boolean } = {},
): Promise<RecipientDocument | null> {
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const before = await stores.recipients.forget(id, at, owner, session);
    if (before === null || before.deleted_at) return before;
    await stores.idempotency.markWritten(id, session);
    const { account_id, livemode, type, last4 } = before;
    const change = { act: 'recipient.deleted', account_id, livemode, target: id } as const;
    await audit(
      { ...change, before: { type, last4, deleted_at: null }, after: { deleted_at: at } },
      session,
    );
    return { ...before, sealed: null, kid: null, deleted_at: at };
  });
}
