import { inTransaction } from '../../base/mongo';
import { toEnv } from '../../domain/environment';
import { buildRefusal, notFound, Refusal, unavailable } from '../../domain/errors';
import {
  faultsAt,
  getLast4,
  recipientDetails,
  recipientFacts,
} from '../../domain/payout/recipient';
import * as wire from '../../domain/wire/recipients';
import { type Actor, auditBy } from '../../store/audit';

import { buildRecipient, type RecipientDocument, recipientOwner } from '../../store/recipients';
import { type MerchantDeps, type Owner, refuseFrozen, type WriteDeps } from '../access';
import { type CreateRequest, createOnce } from '../create-once';
import { accountNow } from '../merchants/clock';
import { presentRecipient } from './present';
import { findResource } from './read';

/**
 * @throws Refusal 400; 503 when its details cannot be encrypted
 * @see docs/api.md#recipients
 */
export function createRecipient(deps: MerchantDeps, request: CreateRequest<wire.CreateRecipient>) {
  const { caller, requestId: request_id } = request;
  const { stores } = deps;
  return createOnce(deps, request, {
    operation: wire.createRecipient.operation,
    accept: async (body, id) => {
      const details = recipientDetails(body);
      const faults = faultsAt(details, await accountNow(deps, caller));
      if (faults.length > 0) {
        // In the form of a schema error.
        const sentences = faults.map(({ field, message }) => `${field}: ${message}.`);
        throw new Refusal('invalid_request', [...new Set(sentences)].join(' '), {
          details: faults.map(({ field, message }) => ({ code: 'invalid', field, message })),
        });
      }
      const encrypter = deps.recipientEncrypters[toEnv(caller.livemode)];
      try {
        const facts = recipientFacts(details);
        const text = JSON.stringify(details);
        const ciphertext = await encrypter.encrypt(text, recipientOwner(id), facts);
        const kid = encrypter.getKid(ciphertext);
        return { recipient: { ...facts, last4: getLast4(details), ciphertext, kid } };
      } catch (error) {
        throw unavailable('The details can not be encrypted now.', error);
      }
    },
    open: async ({ record: { resource_id: id, request: accepted } }) => {
      if (accepted !== null && 'recipient' in accepted) {
        const { account_id, livemode } = caller;
        const owner = { id, account_id, livemode, request_id };
        const at = await accountNow(deps, caller);
        await stores.recipients.insert(buildRecipient(owner, accepted, at));
        await stores.idempotency.markWritten(id);
      }
      const recipient = await findResource(stores.recipients, 'recipient', caller, id);
      return { answer: presentRecipient(recipient) };
    },
  });
}

/** @throws Refusal 403 `account_frozen`; 404 */
export async function deleteRecipient(
  deps: MerchantDeps,
  { account_id, livemode }: Owner,
  id: string,
  actor: Actor,
): Promise<RecipientDocument> {
  const owner = { account_id, livemode };
  refuseFrozen(await deps.stores.accounts.getCached(account_id));
  const recipient = await eraseRecipient({ ...deps, audit: auditBy(deps, actor) }, id, owner);
  if (recipient === null) throw buildRefusal(notFound('recipient'));
  return recipient;
}

/**
 * Deletes details from a recipient and from its idempotency record. A repeat changes nothing; past
 * payouts have its id and last four.
 * @param owner account and environment that it must belong to, if known
 * @returns the changed recipient; null when there is none
 * @see docs/api.md#delete-a-recipient
 */
export async function eraseRecipient(
  { mongo, stores, audit, now }: WriteDeps,
  id: string,
  owner: Partial<Owner> = {},
): Promise<RecipientDocument | null> {
  const existing = await stores.recipients.get(id);
  if (existing === null) return null;
  const at = (await accountNow({ stores, now }, existing)).toISOString();
  return await inTransaction(mongo, async (session) => {
    const before = await stores.recipients.eraseDetails(id, at, owner, session);
    if (before === null || before.deleted_at) return before;
    await stores.idempotency.markWritten(id, session);
    const { account_id, livemode, type, last4 } = before;
    const change = { act: 'recipient.deleted', account_id, livemode, target: id } as const;
    await audit(
      { ...change, before: { type, last4, deleted_at: null }, after: { deleted_at: at } },
      session,
    );
    return { ...before, ciphertext: null, kid: null, deleted_at: at };
  });
}
