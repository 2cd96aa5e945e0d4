import { isLive } from '../../domain/environment';
import { ENVIRONMENTS, type Environment } from '../../domain/task-queues';
import { RECIPIENT_KEY_RINGS } from '../../encryption/recipient-keys';
import { buildRecipient, recipientOwner } from '../../store/recipients';
import { sum } from './counts';
import type { Reencrypt, ReencryptDeps } from './reencrypt-value';

const BATCH = 100;

/**
 * Writes accepted recipients that were never stored. To re-encrypt their idempotency records is not
 * enough: a retry may have read a record earlier, and write the old text.
 */
export async function writePendingRecipients(deps: ReencryptDeps): Promise<void> {
  for (const environment of ENVIRONMENTS) await writePendingInEnvironment(deps, environment);
}

async function writePendingInEnvironment(
  { stores: { recipients, idempotency }, encrypters, now, progress }: ReencryptDeps,
  environment: Environment,
): Promise<void> {
  const { kid } = encrypters[RECIPIENT_KEY_RINGS[environment]];
  let after = '';
  for (;;) {
    const records = await recipients.listRecordsByOtherKeys(isLive(environment), kid, BATCH, after);
    const last = records.at(-1);
    if (last === undefined) return;
    after = last._id;
    for (const { resource_id, account_id, livemode, request_id, request } of records) {
      const owner = { id: resource_id, account_id, livemode, request_id };
      await recipients.insert(buildRecipient(owner, request, now()));
      await idempotency.markWritten(resource_id);
    }
    progress(`recipients that were still to be written: ${records.length}`);
  }
}

/** @returns number of recipients that were re-encrypted */
export async function reencryptRecipients(
  deps: ReencryptDeps,
  reencrypt: Reencrypt,
): Promise<number> {
  let count = 0;
  for (const environment of ENVIRONMENTS) {
    count += await reencryptInEnvironment(deps, reencrypt, environment);
  }
  return count;
}

async function reencryptInEnvironment(
  { stores: { recipients }, encrypters, progress }: ReencryptDeps,
  reencrypt: Reencrypt,
  environment: Environment,
): Promise<number> {
  const current = encrypters[RECIPIENT_KEY_RINGS[environment]];
  let after = '';
  let count = 0;
  for (;;) {
    const batch = await recipients.listByOtherKeys(isLive(environment), current.kid, BATCH, after);
    const last = batch.at(-1);
    if (last === undefined) return count;
    after = last._id;
    const writes = batch.map(async ({ _id, sealed: ciphertext }) => {
      const next = await reencrypt(current, { ciphertext, owner: recipientOwner(_id) });
      if (next === undefined) return 0;
      const kid = current.encrypter.getKid(next);
      return (await recipients.reencrypt(_id, ciphertext, next, kid)).modifiedCount;
    });
    count += sum(await Promise.all(writes));
    progress(`recipients re-encrypted: ${count}`);
  }
}
