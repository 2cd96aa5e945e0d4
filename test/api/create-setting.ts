import type { ErrorCode } from '../../src/domain/errors';
import { buildAccount, buildPayment } from '../support/factories';
import { idealPayment } from '../support/http';
import type { Account, Service } from '../support/service';
import { ASSET, ETHER, IN_ETHER, openCryptoShop } from './crypto-setting';
import { openShop } from './payout-setting';
import { cardRecipient } from './recipient-bodies';

/** A merchant who creates one kind of resource. */
export interface Creator extends Account {
  /** Body that every rule accepts. */
  body: object;
  /** Changes a resource, so that a read of it differs from the first answer. */
  advance?: (id: string) => Promise<unknown>;
}

interface Creating {
  /** Its collection. */
  name: string;
  path: string;
  operation: string;
  open: (service: Service) => Promise<Creator>;
  /** A change of the body that makes it another valid body. */
  other: object;
  /** A change of the body that is refused before anything is created. */
  refused: readonly [change: object, code: ErrorCode];
}

/** Resources that a bank executes. */
export const CREATES: Creating[] = [
  {
    name: 'payments',
    path: '/v1/payments',
    operation: 'createPayment',
    open: async (service) => {
      const account = await service.account();
      const advance = (id: string) => account.post(`/v1/payments/${id}/cancel`);
      return { ...account, body: idealPayment(), advance };
    },
    other: { metadata: {} },
    refused: [{ currency: 'USD' }, 'method_requirements_not_met'],
  },
  {
    name: 'refunds',
    path: '/v1/refunds',
    operation: 'createRefund',
    open: async (service) => {
      const account = await service.account();
      const { id: payment_id } = await buildPayment(account, { status: 'settled' });
      const advance = (id: string) =>
        account.post(`/v1/sandbox/refunds/${id}/simulate`, { event: 'failed' });
      return { ...account, body: { payment_id, amount: 100 }, advance };
    },
    other: { amount: undefined },
    refused: [{ amount: 1_051 }, 'refund_amount_exceeds_balance'],
  },
  {
    name: 'payouts',
    path: '/v1/payouts',
    operation: 'createPayout',
    open: async (service) => {
      const shop = await openShop(service);
      const advance = (id: string) => shop.simulate(id, { event: 'completed' });
      return { ...shop, body: shop.ask(), advance };
    },
    other: { method: 'sepa_credit_transfer' },
    refused: [{ amount: 99_999_999_999 }, 'insufficient_balance'],
  },
];

/** Resources that a POST creates under an Idempotency-Key. */
export const KEYED: Creating[] = [
  ...CREATES,
  {
    name: 'recipients',
    path: '/v1/payout-recipients',
    operation: 'createRecipient',
    open: async (service) => ({ ...(await buildAccount(service)), body: cardRecipient() }),
    other: { card_number: '5555555555554444' },
    refused: [{ card_number: '4111111111111112' }, 'invalid_request'],
  },
  {
    name: 'webhook_endpoints',
    path: '/v1/webhook-endpoints',
    operation: 'createWebhookEndpoint',
    open: async (service) => {
      const account = await buildAccount(service);
      const advance = (id: string) =>
        account.send('PATCH', `/v1/webhook-endpoints/${id}`, { description: 'Orders' });
      return { ...account, body: { url: 'http://127.0.0.1:9/hook' }, advance };
    },
    other: { description: 'Payouts' },
    refused: [{ enabled_events: [] }, 'invalid_request'],
  },
  {
    name: 'crypto_payments',
    path: '/v1/crypto/payments',
    operation: 'createCryptoPayment',
    open: async (service) => {
      const shop = await openCryptoShop(service);
      const advance = (id: string) =>
        shop.post(`/v1/sandbox/crypto/payments/${id}/simulate`, { event: 'received' });
      return { ...shop, body: IN_ETHER, advance };
    },
    other: { amount: 10_001 },
    refused: [{ asset: 'DOGE', network: 'dogecoin' }, 'asset_not_supported'],
  },
  {
    name: 'crypto_settlements',
    path: '/v1/crypto/settlements',
    operation: 'createCryptoSettlement',
    open: async (service) => {
      const shop = await openCryptoShop(service);
      await shop.registerWallet();
      await shop.payBy('tx-1', ETHER / 25n, 'received');
      const advance = (id: string) => shop.report('crypto_settlement', id, 'completed', {});
      return { ...shop, body: { ...ASSET, amount: String(ETHER / 1_000n) }, advance };
    },
    other: { amount: undefined },
    refused: [{ amount: '1' }, 'method_requirements_not_met'],
  },
];
