import type { ClaimedPayout } from '../domain/creation';
import { payoutFee } from '../domain/payout-fees';
import {
  balanceAccountOf,
  balanceFault,
  DELETED,
  limitFault,
  railFault,
  unfundedFault,
} from '../domain/payout-rules';
import { isRailId, railEntry, railRules } from '../domain/rails';
import {
  type CreatePayout,
  createPayout,
  getPayout,
  listPayoutMethods,
  listPayouts,
} from '../domain/wire/payouts';
import { availableRails } from '../routing';
import type { KeyOwner } from '../store/keys';
import type { ApiDeps } from './context';
import { refusalOf } from './errors';
import type { Mount } from './mount';
import { presentPayout } from './present';
import { finder, resourceReader } from './reader';

/** @see docs/api.md#payouts */
export function mountPayouts(mount: Mount, deps: ApiDeps): void {
  const { made, present, read, list } = payoutReader(deps);

  mount.create(createPayout, {
    accept: ({ key, body }) => acceptPayout(deps, key, body),
    create: async ({ key, requestId: request_id, mark }, payout_id, { request }) => {
      if (request !== null && 'payout' in request) {
        await deps.temporal.openPayout({ ...request.routing, payout_id, request_id }, mark);
      }
      return { answer: present(await made(payout_id, key)) };
    },
  });

  mount.endpoint(getPayout, read);
  mount.endpoint(listPayouts, list);
  mount.endpoint(listPayoutMethods, async ({ key }) => {
    const { rails } = await railsOf(deps, key);
    return { object: 'list', data: rails.map(railEntry) };
  });
}

/** Reader of payouts, as one account and environment may see them. */
export function payoutReader({ stores }: ApiDeps) {
  return resourceReader(stores.payouts, presentPayout, 'payout');
}

/** Rails that the account can pay out over, and its fees. */
async function railsOf({ stores, connectors }: ApiDeps, { account_id, livemode }: KeyOwner) {
  const account = await stores.accounts.get(account_id);
  const rails = availableRails(connectors, account?.disabled_rails ?? [], livemode);
  return { rails, fees: account?.payout_fees ?? {}, limits: account?.payout_limits ?? {} };
}

/**
 * Checks the rules of payouts before any bank is called and anything is kept. The reservation
 * checks the balance again.
 * @throws Refusal 400, 404 or 422
 * @see docs/api.md#which-money-a-payout-draws
 */
async function acceptPayout(
  deps: ApiDeps,
  key: KeyOwner,
  body: CreatePayout,
): Promise<ClaimedPayout> {
  const { stores, connectors, now } = deps;
  const { account_id, livemode } = key;
  const { recipient_id, method, amount, currency, reference, metadata } = body;
  const balance = balanceAccountOf(metadata);
  if ('fault' in balance) throw refusalOf(balance.fault);
  const recipient = await finder(stores.recipients, 'recipient')(recipient_id, key);
  if (recipient.deleted_at) throw refusalOf(DELETED);
  const [balances, { rails, fees, limits }] = await Promise.all([
    stores.ledger.balances(account_id, livemode),
    railsOf(deps, key),
  ]);
  // Asked before the rail: on live without a bank no rail is there to be asked about.
  const unfunded = unfundedFault(balances, balance.name);
  if (unfunded !== undefined) throw refusalOf(unfunded);
  const fault = railFault({ method, currency, recipient }, new Set<string>(rails), now());
  if (fault !== undefined) throw refusalOf(fault);
  const connector = connectors.serving(method, livemode);
  if (!isRailId(method) || connector === undefined) {
    throw new RangeError(`No rail that is served: ${method}`);
  }

  const fee = payoutFee(fees, method, currency);
  const draw = { balance_account: balance.name, currency, amount, fee };
  const lack = balanceFault(balances, draw);
  if (lack !== undefined) throw refusalOf(lack);
  const limit = limits[currency];
  if (limit !== undefined) {
    const day = { account_id, livemode, currency, created_at: now().toISOString() };
    const passed = limitFault(limit, await stores.payoutDays.spent(day), draw);
    if (passed !== undefined) throw refusalOf(passed);
  }
  return {
    payout: {
      reference: reference ?? null,
      metadata: metadata?.kind === 'object' ? metadata.text : '{}',
    },
    routing: {
      account_id,
      livemode,
      recipient_id,
      method,
      connector,
      ...draw,
      can_be_returned: railRules(method).can_be_returned,
    },
  };
}
