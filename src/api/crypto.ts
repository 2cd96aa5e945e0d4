import type { ClaimedCryptoPayment, ClaimedCryptoSettlement } from '../domain/creation';
import {
  assetRules,
  bookCurrency,
  cryptoMethod,
  formatUnits,
  readWindows,
  unitsOf,
  type Windows,
} from '../domain/crypto';
import { Refusal } from '../domain/errors';
import {
  type CreateCryptoPayment,
  type CreateCryptoSettlement,
  createCryptoPayment,
  createCryptoSettlement,
  getCryptoPayment,
  getCryptoSettlement,
  listCryptoPayments,
  listCryptoSettlements,
} from '../domain/wire/crypto';
import { markedLink } from '../keys/claim-mark';
import { tokenKey } from '../keys/pay-token';
import type { KeyOwner } from '../store/keys';
import { addressAt } from '../store/wallets';
import type { ApiDeps } from './context';
import type { CreateHandlers } from './make-once';
import type { Mount } from './mount';
import { presentCryptoPayment, presentCryptoSettlement } from './present';
import { resourceReader } from './reader';

/** @see docs/api.md#crypto */
export function mountCrypto(mount: Mount, deps: ApiDeps): void {
  const payments = cryptoPaymentReader(deps);
  const settlements = cryptoSettlementReader(deps);
  const windows = readWindows(deps.config.CRYPTO_WINDOWS ?? '');

  mount.create(createCryptoPayment, {
    accept: async ({ key, body }) => acceptPayment(deps, windows, key, body),
    create: async ({ key, requestId: request_id, mark }, crypto_payment_id, { request }) => {
      if (request !== null && 'crypto_payment' in request) {
        const input = { ...request.routing, crypto_payment_id, request_id };
        await deps.temporal.openCryptoPayment(input, markedLink(mark, request.crypto_payment));
      }
      return { answer: payments.present(await payments.made(crypto_payment_id, key)) };
    },
  });
  mount.endpoint(getCryptoPayment, payments.read);
  mount.endpoint(listCryptoPayments, payments.list);

  mount.create(createCryptoSettlement, settlementHandlers(deps));
  mount.endpoint(getCryptoSettlement, settlements.read);
  mount.endpoint(listCryptoSettlements, settlements.list);
}

/** Steps that make a settlement, for each door. */
export function settlementHandlers(deps: ApiDeps): CreateHandlers<typeof createCryptoSettlement> {
  const { made, present } = cryptoSettlementReader(deps);
  return {
    accept: ({ key, body }) => acceptSettlement(deps, key, body),
    create: async ({ key, requestId: request_id, mark }, crypto_settlement_id, { request }) => {
      if (request !== null && 'settlement' in request) {
        const input = { ...request.settlement, crypto_settlement_id, request_id };
        await deps.temporal.openCryptoSettlement(input, mark);
      }
      return { answer: present(await made(crypto_settlement_id, key)) };
    },
  };
}

/** Reader of crypto payments, as one account and environment may see them. */
export function cryptoPaymentReader({ stores, config, keys }: ApiDeps) {
  const presentation = { publicUrl: config.PUBLIC_URL, payTokens: keys.pay_token };
  return resourceReader(
    stores.crypto_payments,
    (payment) => presentCryptoPayment(presentation, payment),
    'crypto_payment',
  );
}

/** Reader of settlements, as one account and environment may see them. */
export function cryptoSettlementReader({ stores }: ApiDeps) {
  return resourceReader(stores.crypto_settlements, presentCryptoSettlement, 'crypto_settlement');
}

/** Coin that a request names, and the connector that serves it. @throws Refusal 422 */
function coinOf(
  { connectors }: ApiDeps,
  { livemode }: KeyOwner,
  { asset, network }: { asset: string; network: string },
) {
  const rules = assetRules(asset, network);
  if (rules === undefined) {
    throw new Refusal('asset_not_supported', `There is no ${asset} on ${network} here.`);
  }
  const method = cryptoMethod(rules);
  const connector = connectors.serving(method, livemode);
  if (connector === undefined) {
    throw new Refusal('asset_not_available', `${rules.display_name} is not served here.`);
  }
  return { rules, method, connector };
}

/** Checks the rules before any connector is asked. @throws Refusal 422 */
function acceptPayment(
  deps: ApiDeps,
  windows: Windows,
  key: KeyOwner,
  body: CreateCryptoPayment,
): ClaimedCryptoPayment {
  const { account_id, livemode } = key;
  const { amount, currency, reference, metadata } = body;
  const { rules, method, connector } = coinOf(deps, key, body);
  const { asset, network, window_seconds } = rules;
  const expires_in_seconds = windows.get(asset) ?? window_seconds;
  return {
    crypto_payment: {
      reference: reference ?? null,
      metadata: metadata?.kind === 'object' ? metadata.text : '{}',
      ...tokenKey(deps.keys.pay_token),
    },
    routing: {
      ...{ account_id, livemode, amount, currency, asset, network, method, connector },
      expires_in_seconds,
    },
  };
}

/** Checks wallet and balance; the reservation checks both again. @throws Refusal 422 */
async function acceptSettlement(
  deps: ApiDeps,
  key: KeyOwner,
  body: CreateCryptoSettlement,
): Promise<ClaimedCryptoSettlement> {
  const { stores, now } = deps;
  const { account_id, livemode } = key;
  const { rules, method, connector } = coinOf(deps, key, body);
  const { asset, network } = rules;
  const wallet = await stores.wallets.get(account_id, livemode, network);
  if (addressAt(wallet, now().toISOString()) === null) {
    throw new Refusal('wallet_not_registered', `No wallet on ${network} counts yet.`);
  }
  const currency = bookCurrency(rules);
  const rows = await stores.ledger.balances(account_id, livemode);
  const held = BigInt(rows.find((row) => row.currency === currency)?.available ?? 0);
  const amount = body.amount ?? null;
  if (held < (amount === null ? 1n : unitsOf(amount))) {
    const message = `The balance holds ${formatUnits(held, rules)}.`;
    throw new Refusal('insufficient_balance', message);
  }
  return {
    settlement: { account_id, livemode, amount, currency, asset, network, method, connector },
  };
}
