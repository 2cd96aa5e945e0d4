import type { PayoutCreation } from '../domain/creation';
import { Refusal } from '../domain/errors';
import type { RuleViolation } from '../domain/lifecycle';
import { balanceAccountOf, balanceFault, railFault } from '../domain/payout-rules';
import { isRailId, railEntry, railRules } from '../domain/rails';
import {
  type CreatePayout,
  createPayout,
  getPayout,
  listPayoutMethods,
  listPayouts,
} from '../domain/wire/payouts';
import { availableRails } from '../routing';
import type { KeyDocument } from '../store/keys';
import type { PayoutDocument } from '../store/payouts';
import type { ApiDeps } from './context';
import type { Mount } from './mount';
import { presentPage, presentPayout } from './present';

/** @see spec §4.5 */
export function mountPayouts(mount: Mount, deps: ApiDeps): void {
  const { payouts } = deps.stores;
  const { present, find } = payoutReader(deps);

  mount.creator(createPayout, {
    accept: ({ key, body }) => acceptPayout(deps, key, body),
    create: async ({ key, requestId: request_id }, payout_id, request) => {
      if (request !== null) {
        await deps.temporal.openPayout({ ...request.routing, payout_id, request_id });
      }
      return present(await find(payout_id, key));
    },
  });

  mount.endpoint(getPayout, async ({ key, params }) => present(await find(params.id, key)));

  mount.endpoint(listPayouts, async ({ key: { account_id, livemode }, query }) => {
    const { created_before: before, limit, ...filter } = query;
    const wanted = { account_id, livemode, ...filter, before };
    return presentPage(await payouts.list({ ...wanted, limit: limit + 1 }), limit, present);
  });

  mount.endpoint(listPayoutMethods, async ({ key }) => {
    const { rails } = await railsOf(deps, key);
    return { object: 'list', data: rails.map(railEntry) };
  });
}

/** One payout, as one account and environment may see it. */
export function payoutReader({ stores }: ApiDeps) {
  return {
    present: presentPayout,
    /** @throws Refusal 404, also for another account's or environment's id */
    find: async (id: string, { account_id, livemode }: KeyDocument): Promise<PayoutDocument> => {
      const payout = await stores.payouts.find(id, account_id, livemode);
      if (payout === null) throw new Refusal('payout_not_found', 'There is no such payout.');
      return payout;
    },
  };
}

/** What the account can pay out over, and for what fees. */
async function railsOf({ stores, connectors }: ApiDeps, { account_id, livemode }: KeyDocument) {
  const account = await stores.accounts.get(account_id);
  const rails = availableRails(connectors, account?.disabled_rails ?? [], livemode);
  return { rails, fees: account?.payout_fees ?? {} };
}

/**
 * Refused here before any bank is called and anything is kept. What the balance holds is decided
 * again when amount and fee are reserved.
 * @throws Refusal 400, 404 or 422
 * @see spec §4.5
 */
async function acceptPayout(
  deps: ApiDeps,
  key: KeyDocument,
  body: CreatePayout,
): Promise<PayoutCreation> {
  const { stores, connectors, now } = deps;
  const { account_id, livemode } = key;
  const { recipient_id, method, amount, currency, reference, metadata } = body;
  const balance = balanceAccountOf(metadata);
  if ('fault' in balance) throw refusalOf(balance.fault);
  const recipient = await stores.recipients.find(recipient_id, account_id, livemode);
  if (recipient === null) throw new Refusal('recipient_not_found', 'There is no such recipient.');
  const { rails, fees } = await railsOf(deps, key);
  const fault = railFault({ method, currency, recipient }, new Set<string>(rails), now());
  if (fault !== undefined) throw refusalOf(fault);
  const connector = connectors.serving(method, livemode);
  if (!isRailId(method) || connector === undefined) {
    throw new RangeError(`No rail that is served: ${method}`);
  }

  const fee = fees[method] ?? 0;
  const draw = { balance_account: balance.name, currency, amount, fee };
  const lack = balanceFault(await stores.ledger.balances(account_id, livemode), draw);
  if (lack !== undefined) throw refusalOf(lack);
  return {
    payout: {
      reference: reference ?? null,
      metadata: metadata?.kind === 'object' ? metadata.text : '{}',
    },
    routing: {
      ...{ account_id, livemode, recipient_id, method, connector, ...draw },
      can_be_returned: railRules(method).can_be_returned,
    },
  };
}

function refusalOf({ code, message, details }: RuleViolation): Refusal {
  return new Refusal(code, message, details === undefined ? {} : { details });
}
