import type { MongoClient } from 'mongodb';
import type { ClaimedRecipient } from '../domain/creation';
import { envOf } from '../domain/environment';
import { notFound, Refusal, unavailable } from '../domain/errors';
import type { RecipientDetails } from '../domain/recipient';
import { faultsAt, last4Of, recipientDetails, recipientFacts } from '../domain/recipient-check';
import { createRecipient, deleteRecipient } from '../domain/wire/recipients';
import { forgetRecipient } from '../merchants/recipients';
import { auditBy } from '../store/audit';
import type { KeyOwner } from '../store/keys';
import { type RecipientDocument, recipientFrom, recipientOwner } from '../store/recipients';
import type { ApiDeps } from './context';
import { refusalOf } from './errors';
import type { Mount } from './mount';
import { finder } from './reader';

/** @see docs/api.md#recipients */
export function mountRecipients(mount: Mount, deps: ApiDeps & { mongo: MongoClient }): void {
  const { recipients, idempotency } = deps.stores;
  const find = finder(recipients, 'recipient');

  mount.create(createRecipient, {
    accept: async ({ key, id, body }) => {
      const details = recipientDetails(body);
      refuseOutdated(details, deps.now());
      return await sealedFor(deps, key, id, details);
    },
    create: async ({ key, requestId: request_id }, id, { request }) => {
      const { account_id, livemode } = key;
      if (request !== null && 'recipient' in request) {
        const owner = { id, account_id, livemode, request_id };
        await recipients.insert(recipientFrom(owner, request, deps.now()));
        await idempotency.markWritten(id);
      }
      return { answer: present(await find(id, key)) };
    },
  });

  mount.endpoint(deleteRecipient, async ({ key, params }) => {
    const { _id: key_id, account_id, livemode } = key;
    const audit = auditBy(deps, { door: 'api', key_id });
    const owner = { account_id, livemode };
    const deleted = await forgetRecipient({ ...deps, audit }, params.id, owner);
    if (deleted === null) throw refusalOf(notFound('recipient'));
    return present(deleted);
  });
}

/** Refuses dates that have passed. @throws Refusal 400, in the form of the schema's own */
function refuseOutdated(details: RecipientDetails, now: Date): void {
  const faults = faultsAt(details, now);
  if (faults.length === 0) return;
  throw new Refusal('invalid_request', [...new Set(faults.map(sentence))].join(' '), {
    details: faults.map(({ field, message }) => ({ code: 'invalid', field, message })),
  });
}

function sentence({ field, message }: { field: string; message: string }): string {
  return `${field}: ${message}.`;
}

/** Seals the details, so that nothing readable is kept. @throws Refusal 503 when no key can seal */
async function sealedFor(
  { sealer: shared, recipientSealers }: ApiDeps,
  { livemode }: KeyOwner,
  id: string,
  details: RecipientDetails,
): Promise<ClaimedRecipient> {
  const sealer = recipientSealers?.[envOf(livemode)] ?? shared;
  try {
    const sealed = await sealer.seal(JSON.stringify(details), recipientOwner(id));
    const kid = sealer.kidOf(sealed);
    return { recipient: { ...recipientFacts(details), last4: last4Of(details), sealed, kid } };
  } catch (error) {
    throw unavailable('The details can not be encrypted now.', error);
  }
}

/** Recipient as merchants see it: exactly the fields of docs/api.md#recipients, in their order. */
function present({ _id, type, scheme, last4, created_at, deleted_at }: RecipientDocument) {
  const shown = { id: _id, object: 'payout_recipient', type, scheme, last4, created_at };
  return deleted_at ? { ...shown, deleted: true } : shown;
}
