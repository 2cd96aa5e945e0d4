import { isLive } from '../domain/environment';
import { ENVIRONMENTS, type Environment } from '../domain/task-queues';
import { recipientFrom, recipientOwner } from '../store/recipients';
import { type ResealDeps, resealed, sum } from './resealing';

const BATCH = 100;

/**
 * Writes recipients that were accepted and never written, as a retry of the caller would. Sealing
 * them anew in their claims would not do: a retry may have read a claim before, and write the old
 * text.
 */
export async function writeClaims(deps: ResealDeps): Promise<void> {
  for (const environment of ENVIRONMENTS) await writeClaimsOf(deps, environment);
}

async function writeClaimsOf(deps: ResealDeps, environment: Environment): Promise<void> {
  const { recipients, idempotency } = deps.stores;
  const { kid } = deps.recipients[environment];
  let after = '';
  for (;;) {
    const claims = await recipients.claimsByOthers(isLive(environment), kid, BATCH, after);
    const last = claims.at(-1);
    if (last === undefined) return;
    after = last._id;
    for (const { resource_id, account_id, livemode, request_id, request } of claims) {
      const owner = { id: resource_id, account_id, livemode, request_id };
      await recipients.insert(recipientFrom(owner, request, deps.now()));
      await idempotency.markWritten(resource_id);
    }
    deps.progress(`recipients that were still to be written: ${claims.length}`);
  }
}

/** @returns how many recipients were sealed anew */
export async function resealRecipients(deps: ResealDeps, unopened: Set<string>): Promise<number> {
  let renewed = 0;
  for (const environment of ENVIRONMENTS) {
    renewed += await resealRecipientsOf(deps, unopened, environment);
  }
  return renewed;
}

async function resealRecipientsOf(
  deps: ResealDeps,
  unopened: Set<string>,
  environment: Environment,
): Promise<number> {
  const { recipients } = deps.stores;
  const { kid, sealer } = deps.recipients[environment];
  let after = '';
  let renewed = 0;
  for (;;) {
    const batch = await recipients.sealedByOthers(isLive(environment), kid, BATCH, after);
    const last = batch.at(-1);
    if (last === undefined) return renewed;
    after = last._id;
    const each = batch.map(async ({ _id, sealed }) => {
      const next = await resealed(deps, unopened, sealed, recipientOwner(_id), sealer);
      if (next === undefined) return 0;
      const { modifiedCount } = await recipients.reseal(_id, sealed, next, sealer.kidOf(next));
      return modifiedCount;
    });
    renewed += sum(await Promise.all(each));
    deps.progress(`recipients sealed anew: ${renewed}`);
  }
}
