import type { ObjectId } from 'mongodb';
import { ENVIRONMENTS } from '../domain/task-queues';
import type { Stores } from '../store';

const BATCH = 100;

export async function* everyEndpoint(endpoints: Stores['endpoints']) {
  let after: ObjectId | undefined;
  for (;;) {
    const batch = await endpoints.page(BATCH, after);
    if (batch.length === 0) return;
    yield* batch;
    after = batch.at(-1)?._id;
  }
}

export async function* everyUser(users: Stores['users']) {
  let after = '';
  for (;;) {
    const batch = await users.withTotp(after, BATCH);
    if (batch.length === 0) return;
    yield* batch;
    after = batch.at(-1)?._id ?? '';
  }
}

export async function* everyConnectorKey(keys: Stores['connectorKeys']) {
  let after = '';
  for (;;) {
    const batch = await keys.page(after, BATCH);
    if (batch.length === 0) return;
    yield* batch;
    after = batch.at(-1)?._id ?? '';
  }
}

export async function* everyPayerKey(accounts: Stores['accounts']) {
  let after = '';
  for (;;) {
    const batch = await accounts.page(after, BATCH);
    if (batch.length === 0) return;
    for (const { _id: account_id, payer_keys = {} } of batch) {
      for (const env of ENVIRONMENTS) {
        const key = payer_keys[env]?.sealed;
        if (key !== undefined) yield { account_id, env, key };
      }
    }
    after = batch.at(-1)?._id ?? '';
  }
}
