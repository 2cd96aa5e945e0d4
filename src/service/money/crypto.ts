import {
  assetRules,
  bookCurrency,
  cryptoMethod,
  DEFAULT_WINDOW_SECONDS,
  formatUnits,
  parseUnits,
  readWindows,
} from '../../domain/crypto/assets';
import { leastSettlement } from '../../domain/crypto/settlement';
import { buildRefusal, Refusal } from '../../domain/errors';
import { balanceFault } from '../../domain/money/insufficient-balance';
import { MAIN_BALANCE } from '../../domain/money/money';
import * as wire from '../../domain/wire/crypto';
import { addressAt, describeNoWallet } from '../../store/wallets';
import type { MerchantDeps, Owner } from '../access';
import { readRouting } from '../banks/routing/read';
import { type CreateRequest, createOnce, readMetadataText } from '../create-once';
import { accountNow } from '../merchants/clock';
import { presentCryptoPayment, presentCryptoSettlement } from './present';
import { createGet, createList, findCreated } from './read';

/** @throws Refusal 422; 503 `temporarily_unavailable`: outcome unknown @see docs/api.md#crypto */
export function createCryptoPayment(
  deps: MerchantDeps,
  request: CreateRequest<wire.CreateCryptoPayment>,
) {
  const { caller, requestId: request_id } = request;
  return createOnce(deps, request, {
    operation: wire.createCryptoPayment.operation,
    accept: async (body) => {
      const { account_id, livemode } = caller;
      const { amount, currency, reference, metadata } = body;
      const { rules, method, connector } = await findAsset(deps, caller, body);
      const { asset, network } = rules;
      const windows = readWindows(deps.config.CRYPTO_WINDOWS ?? '');
      const expires_in_seconds = windows.get(asset) ?? DEFAULT_WINDOW_SECONDS;
      const { crypto_tolerance = 0 } = (await deps.stores.accounts.get(account_id)) ?? {};
      return {
        crypto_payment: { reference: reference ?? null, metadata: readMetadataText(metadata) },
        routing: {
          ...{ account_id, livemode, amount, currency, asset, network, method, connector },
          expires_in_seconds,
          ...(crypto_tolerance > 0 && { tolerance_percent: crypto_tolerance }),
        },
      };
    },
    open: async ({ record: { resource_id: id, request: accepted }, hashes }) => {
      if (accepted !== null && 'crypto_payment' in accepted) {
        const input = { ...accepted.routing, crypto_payment_id: id, request_id };
        await deps.temporal.openCryptoPayment(input, hashes);
      }
      const { crypto_payments } = deps.stores;
      const payment = await findCreated(crypto_payments, 'crypto_payment', caller, id);
      return { answer: presentCryptoPayment(deps, payment) };
    },
  });
}

/** @throws Refusal 404 */
export const getCryptoPayment = createGet(
  'crypto_payment',
  ({ crypto_payments }) => crypto_payments,
);
export const listCryptoPayments = createList(({ crypto_payments }) => crypto_payments);

/**
 * @throws Refusal 422; 503 `temporarily_unavailable`: outcome unknown
 * @see docs/api.md#settlements
 */
export function createCryptoSettlement(
  deps: MerchantDeps,
  request: CreateRequest<wire.CreateCryptoSettlement>,
) {
  const { caller, requestId: request_id } = request;
  return createOnce(deps, request, {
    operation: wire.createCryptoSettlement.operation,
    // Wallet and balance, like the reservation later.
    accept: async (body) => {
      const { stores } = deps;
      const { account_id, livemode } = caller;
      const { rules, method, connector } = await findAsset(deps, caller, body);
      const { asset, network } = rules;
      const now = await accountNow(deps, caller);
      const wallet = await stores.wallets.get(account_id, livemode, network);
      if (addressAt(wallet, now.toISOString()) === null) {
        throw new Refusal('wallet_not_registered', describeNoWallet(wallet, network));
      }
      const currency = bookCurrency(rules);
      const amount = body.amount ?? null;
      const units = amount === null ? null : parseUnits(amount);
      const least = leastSettlement({ asset, network, livemode }, units);
      if (units !== null && units < least) {
        const message = `A settlement must be at least ${formatUnits(least, rules)} (${least}).`;
        const details = [{ code: 'invalid_amount', field: 'amount', message }];
        throw new Refusal('method_requirements_not_met', message, { details });
      }
      const withheld = await stores.movements.sumReorged({ account_id, livemode, currency });
      const needed = units ?? least;
      const debit = { balance_account: MAIN_BALANCE, currency, amount: needed, withheld };
      const fault = balanceFault(await stores.ledger.balances(account_id, livemode), debit);
      if (fault !== undefined) throw buildRefusal(fault);
      return {
        settlement: { account_id, livemode, amount, currency, asset, network, method, connector },
      };
    },
    open: async ({ record: { resource_id: id, request: accepted }, hashes }) => {
      if (accepted !== null && 'settlement' in accepted) {
        const input = { ...accepted.settlement, crypto_settlement_id: id, request_id };
        await deps.temporal.openCryptoSettlement(input, hashes);
      }
      const { crypto_settlements } = deps.stores;
      const settlement = await findCreated(crypto_settlements, 'crypto_settlement', caller, id);
      return { answer: presentCryptoSettlement(settlement) };
    },
  });
}

/** @throws Refusal 404 */
export const getCryptoSettlement = createGet(
  'crypto_settlement',
  ({ crypto_settlements }) => crypto_settlements,
);
export const listCryptoSettlements = createList(({ crypto_settlements }) => crypto_settlements);

async function findAsset(
  deps: MerchantDeps,
  owner: Owner,
  { asset, network }: { asset: string; network: string },
) {
  const rules = assetRules(asset, network);
  if (rules === undefined) {
    throw new Refusal('asset_not_supported', `There is no ${asset} on ${network} here.`);
  }
  const method = cryptoMethod(rules);
  const findConnector = await readRouting(deps, owner);
  const connector = findConnector(method);
  if (connector === undefined) {
    throw new Refusal('asset_not_available', `${rules.display_name} is not served here.`);
  }
  return { rules, method, connector };
}
