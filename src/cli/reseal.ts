import { isLive } from '../domain/environment';
import type { Sealed, Sealer } from '../keys/seal';
import { payerKeyOwner } from '../store/accounts';
import { connectorKeyOwner } from '../store/connector-keys';
import { endpointOwner } from '../store/endpoints';
import { totpOwner } from '../store/users';
import { resealRecipients, writeClaims } from './reseal-recipients';
import { type ResealDeps, resealed, type SealedStores, sum } from './resealing';
import { everyConnectorKey, everyEndpoint, everyPayerKey, everyUser } from './sealed-values';

/** Passes: the second finds changes made during the first, further ones secrets rolled since. */
const PASSES_MAX = 10;
/** Name for the key of a text that names none. */
const NO_KEY = '?';

/** Counts of the values that one key has sealed. */
export interface Held {
  recipients: number;
  endpoints: number;
  /** Recipients that were accepted and are not written yet. */
  claims: number;
  /** People with a second factor. */
  users: number;
  /** Keys of connectors. */
  connector_keys: number;
  /** Data keys of payers, one for each account and environment. */
  payer_keys: number;
}

export const NOTHING_HELD: Held = {
  recipients: 0,
  endpoints: 0,
  claims: 0,
  users: 0,
  connector_keys: 0,
  payer_keys: 0,
};

/**
 * Counts what each key has sealed. Claims come first, so that a claim that becomes a recipient
 * meanwhile is counted as that.
 */
export async function heldByKeys(stores: SealedStores, sealer: Sealer) {
  const { accounts, recipients, endpoints, users, connectorKeys } = stores;
  const held = new Map<string, Held>();
  const add = (kid: string, what: keyof Held, count: number) => {
    const row = held.get(kid) ?? NOTHING_HELD;
    held.set(kid, { ...row, [what]: row[what] + count });
  };
  for (const [kid, count] of await recipients.countClaimsByKey()) add(kid, 'claims', count);
  for (const [kid, count] of await recipients.countByKey()) add(kid, 'recipients', count);
  for await (const { secrets } of everyEndpoint(endpoints)) {
    const kids = new Set(secrets.map(({ sealed }) => kidOf(sealer, sealed)));
    for (const kid of kids) add(kid, 'endpoints', 1);
  }
  for await (const { totp, totp_offered } of everyUser(users)) {
    for (const sealed of [totp?.sealed, totp_offered]) {
      if (sealed) add(kidOf(sealer, sealed), 'users', 1);
    }
  }
  for await (const { sealed } of everyConnectorKey(connectorKeys)) {
    add(kidOf(sealer, sealed), 'connector_keys', 1);
  }
  for await (const { key } of everyPayerKey(accounts)) add(kidOf(sealer, key), 'payer_keys', 1);
  return held;
}

/** Names of the keys that seal now. */
export interface CurrentKeys {
  kid: string;
  recipients: readonly string[];
}

/** Number of values that other keys have sealed than those that would seal them now. */
export function heldByOthers(held: ReadonlyMap<string, Held>, current: CurrentKeys): number {
  const counts = [...held].map(([kid, { recipients, claims, ...rest }]) => {
    const ofRecipients = current.recipients.includes(kid) ? 0 : recipients + claims;
    return ofRecipients + (kid === current.kid ? 0 : sum(Object.values(rest)));
  });
  return sum(counts);
}

/**
 * Seals the values of other keys with the current one. Every write is conditional on the value that
 * was opened, so it can be stopped anywhere and run again, beside a service at work.
 * @returns how many values were sealed anew
 */
export async function resealAll(deps: ResealDeps): Promise<number> {
  const unopened = new Set<string>();
  let resealed = 0;
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    await writeClaims(deps);
    const renewed =
      (await resealRecipients(deps, unopened)) +
      (await resealEndpoints(deps, unopened)) +
      (await resealUsers(deps, unopened)) +
      (await resealConnectorKeys(deps, unopened)) +
      (await resealPayerKeys(deps, unopened));
    if (renewed === 0) break;
    resealed += renewed;
  }
  return resealed;
}

async function resealEndpoints(deps: ResealDeps, unopened: Set<string>): Promise<number> {
  const { endpoints } = deps.stores;
  let renewed = 0;
  for await (const { _id, account_id, livemode, secrets } of everyEndpoint(endpoints)) {
    const owner = endpointOwner(account_id, livemode);
    for (const { sealed } of secrets) {
      if (kidOf(deps.sealer, sealed) === deps.kid) continue;
      const next = await resealed(deps, unopened, sealed, owner);
      if (next === undefined) continue;
      renewed += (await endpoints.resealSecret(_id, sealed, next)).modifiedCount;
    }
  }
  if (renewed > 0) deps.progress(`signing secrets sealed anew: ${renewed}`);
  return renewed;
}

async function resealUsers(deps: ResealDeps, unopened: Set<string>): Promise<number> {
  const { users } = deps.stores;
  let renewed = 0;
  for await (const { _id, totp, totp_offered } of everyUser(users)) {
    const owner = totpOwner(_id);
    const fields = { 'totp.sealed': totp?.sealed, totp_offered };
    for (const field of ['totp.sealed', 'totp_offered'] as const) {
      const sealed = fields[field];
      if (!sealed || kidOf(deps.sealer, sealed) === deps.kid) continue;
      const next = await resealed(deps, unopened, sealed, owner);
      if (next === undefined) continue;
      renewed += (await users.resealTotp(_id, field, { before: sealed, sealed: next }))
        .modifiedCount;
    }
  }
  if (renewed > 0) deps.progress(`second factors sealed anew: ${renewed}`);
  return renewed;
}

async function resealConnectorKeys(deps: ResealDeps, unopened: Set<string>): Promise<number> {
  const { connectorKeys } = deps.stores;
  let renewed = 0;
  for await (const { _id, sealed } of everyConnectorKey(connectorKeys)) {
    if (kidOf(deps.sealer, sealed) === deps.kid) continue;
    const next = await resealed(deps, unopened, sealed, connectorKeyOwner(_id));
    if (next === undefined) continue;
    renewed += (await connectorKeys.reseal(_id, sealed, next)).modifiedCount;
  }
  if (renewed > 0) deps.progress(`connector keys sealed anew: ${renewed}`);
  return renewed;
}

async function resealPayerKeys(deps: ResealDeps, unopened: Set<string>): Promise<number> {
  const { accounts } = deps.stores;
  let renewed = 0;
  for await (const { account_id, env, key } of everyPayerKey(accounts)) {
    if (kidOf(deps.sealer, key) === deps.kid) continue;
    const owner = payerKeyOwner({ account_id, livemode: isLive(env) });
    const next = await resealed(deps, unopened, key, owner);
    if (next === undefined) continue;
    const now = { sealed: next, kid: deps.sealer.kidOf(next) };
    renewed += (await accounts.resealPayerKey(account_id, env, key, now)).modifiedCount;
  }
  if (renewed > 0) deps.progress(`keys of payers sealed anew: ${renewed}`);
  return renewed;
}

function kidOf(sealer: Sealer, sealed: Sealed): string {
  try {
    return sealer.kidOf(sealed);
  } catch {
    return NO_KEY;
  }
}
