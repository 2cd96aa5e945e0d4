import { buildRefusal } from '../../domain/errors';
import { debtFault } from '../../domain/money/insufficient-balance';
import { findPayoutLimit, limitFault, payoutFee } from '../../domain/payout/payout';
import { isRailId } from '../../domain/payout/rails';
import {
  payoutBalanceFault,
  RECIPIENT_DELETED,
  railFault,
  readBalanceAccount,
  unfundedFault,
} from '../../domain/payout/rules';
import * as wire from '../../domain/wire/payouts';
import { availableRails } from '../../routing';
import type { AccountDocument } from '../../store/accounts';
import type { MerchantDeps, Owner } from '../access';
import { readRouting } from '../banks/routing/read';
import { type CreateRequest, createOnce, readMetadataText } from '../create-once';
import { accountNow } from '../merchants/clock';
import { presentPayout } from './present';
import { createGet, createList, findCreated, findResource, readBalances } from './read';

/**
 * @throws Refusal 400, 404, 422; 503 `temporarily_unavailable`: outcome unknown
 * @see docs/api.md#payouts
 * @see docs/api.md#which-money-a-payout-draws
 */
export function createPayout(deps: MerchantDeps, request: CreateRequest<wire.CreatePayout>) {
  const { caller, requestId: request_id } = request;
  return createOnce(deps, request, {
    operation: wire.createPayout.operation,
    // Before anything is stored; the reservation checks the balance again.
    accept: async (body) => {
      const { stores } = deps;
      const { account_id, livemode } = caller;
      const now = await accountNow(deps, caller);
      const { recipient_id, method, amount, currency, reference, metadata } = body;
      const balance = readBalanceAccount(metadata);
      if ('fault' in balance) throw buildRefusal(balance.fault);
      const recipient = await findResource(stores.recipients, 'recipient', caller, recipient_id);
      if (recipient.deleted_at) throw buildRefusal(RECIPIENT_DELETED);
      const [{ balances, receivables }, settings, findConnector] = await Promise.all([
        readBalances({ stores }, { account_id, livemode }),
        // As every write does, this request has just read it again.
        stores.accounts
          .getCached(account_id)
          .then((account) => readSettings(deps, caller, account)),
        readRouting(deps, caller),
      ]);
      const { fees, limits, owedLimits } = settings;
      const rails = new Set<string>(settings.rails);
      const connector = findConnector(method, currency);
      // On live there is no rail until a bank serves one.
      if (connector === undefined) rails.delete(method);
      const fundingViolation = unfundedFault(balances, balance.name);
      if (fundingViolation !== undefined) throw buildRefusal(fundingViolation);
      const fault = railFault(
        { method, currency, recipient, reference: reference ?? null },
        rails,
        now,
      );
      if (fault !== undefined) throw buildRefusal(fault);
      if (!isRailId(method) || connector === undefined) {
        throw new RangeError(`No rail that is served: ${method}`);
      }
      const fee = payoutFee(fees, method, currency);
      const draw = { balance_account: balance.name, currency, amount, fee };
      const owed = receivables.find((row) => row.currency === currency)?.owed ?? 0;
      const debtViolation = debtFault(owed, owedLimits[currency], currency);
      if (debtViolation !== undefined) throw buildRefusal(debtViolation);
      const balanceViolation = payoutBalanceFault(balances, draw);
      if (balanceViolation !== undefined) throw buildRefusal(balanceViolation);
      const limit = findPayoutLimit(limits, currency);
      if (limit !== undefined) {
        const day = { account_id, livemode, currency, created_at: now.toISOString() };
        const limitViolation = limitFault(limit, await stores.payoutDays.getSpent(day), draw);
        if (limitViolation !== undefined) throw buildRefusal(limitViolation);
      }
      return {
        payout: { reference: reference ?? null, metadata: readMetadataText(metadata) },
        routing: { account_id, livemode, recipient_id, method, connector, ...draw },
      };
    },
    open: async ({ record: { resource_id: payout_id, request: accepted }, hashes }) => {
      if (accepted !== null && 'payout' in accepted) {
        await deps.temporal.openPayout({ ...accepted.routing, payout_id, request_id }, hashes);
      }
      const payout = await findCreated(deps.stores.payouts, 'payout', caller, payout_id);
      return { answer: presentPayout(payout) };
    },
  });
}

/** @throws Refusal 404 */
export const getPayout = createGet('payout', ({ payouts }) => payouts);
export const listPayouts = createList(({ payouts }) => payouts);

type SettingDeps = Pick<MerchantDeps, 'stores' | 'connectors'>;

export async function getPayoutSettings(deps: SettingDeps, owner: Owner) {
  return await readSettings(deps, owner, await deps.stores.accounts.get(owner.account_id));
}

async function readSettings(deps: SettingDeps, owner: Owner, account: AccountDocument | null) {
  const findConnector = await readRouting(deps, owner);
  const rails = availableRails(findConnector, account?.disabled_rails ?? []);
  const { payout_fees: fees = {}, payout_limits: limits = {}, owed_limits = {} } = account ?? {};
  return { rails, fees, limits, owedLimits: owed_limits };
}
