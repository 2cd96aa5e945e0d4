import { randomUUID } from 'node:crypto';
import type { EventType } from '../../src/domain/events/event';
import type { PaymentStatus } from '../../src/domain/payment/payment';
import type { PayoutStatus } from '../../src/domain/payout/payout';
import type { RefundStatus } from '../../src/domain/refund/refund';
import { fundBalance } from '../../src/service/money/balances/fund';
import { operatorsAudit } from './audit';
import { eventually, retryUntilDone } from './eventually';
import { type Answer, idealPayment } from './http';
import type { Account, AccountOptions, Service } from './service';

/**
 * Builds what a test begins with, as a merchant and a bank make it: through the API and the bank's
 * callbacks, so that workflow, events and journal entries are real. The answer is the resource as a
 * GET returns it. Fields that a test does not name have values that every rule accepts.
 */
type Resource = Answer['body'];
type Fields = Record<string, unknown>;

interface AccountFields extends AccountOptions {
  /** Minor units of EUR on the main balance. */
  funds?: number;
  crypto?: boolean;
}

export async function buildAccount(
  service: Service,
  { funds, crypto = false, ...options }: AccountFields = {},
): Promise<Account> {
  const account = await service.account(options);
  if (crypto) await service.stores.accounts.setCrypto(account.account_id, true);
  if (funds !== undefined) await fundAccount(service, account, { amount: funds });
  return account;
}

interface Funding {
  amount: number;
  currency?: string;
  balance_account?: string;
  livemode?: boolean;
}

export async function fundAccount(
  { mongo, stores }: Pick<Service, 'mongo' | 'stores'>,
  { account_id }: Pick<Account, 'account_id'>,
  { currency = 'EUR', balance_account = 'main', livemode = false, amount }: Funding,
): Promise<void> {
  const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
  const funding = { account_id, livemode, balance_account, currency, amount };
  // A repeat under the same id credits nothing.
  const id = randomUUID();
  await retryUntilDone(() => fundBalance(deps, funding, { id }));
}

/** A payment of 10.50 EUR by iDEAL that has reached a status. */
export async function buildPayment(
  account: Account,
  { status = 'awaiting_customer', ...fields }: Fields & { status?: PaymentStatus } = {},
): Promise<Resource> {
  const { id } = await create(account, '/v1/payments', idealPayment(fields));
  if (status === 'cancelled') await account.post(`/v1/payments/${id}/cancel`);
  else if (!['created', 'awaiting_customer'].includes(status)) {
    await simulate(account, `payments/${id}`, status);
  }
  return await untilStatus(account, `/v1/payments/${id}`, status);
}

/** A refund, of a settled payment of its own unless `payment_id` names one. */
export async function buildRefund(
  account: Account,
  { status = 'processing', ...fields }: Fields & { status?: RefundStatus } = {},
): Promise<Resource> {
  const payment_id =
    fields['payment_id'] ?? (await buildPayment(account, { status: 'settled' })).id;
  const { id } = await create(account, '/v1/refunds', { ...fields, payment_id });
  if (status !== 'processing') await simulate(account, `refunds/${id}`, status);
  return await untilStatus(account, `/v1/refunds/${id}`, status);
}

/** A dispute of a settled payment, with the fields of its report. */
export async function buildDispute(
  account: Account,
  { payment_id, ...fields }: Fields & { payment_id: string },
): Promise<Resource> {
  const path = `/v1/sandbox/payments/${payment_id}/simulate`;
  const answer = await account.post(path, { event: 'dispute_opened', ...fields });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
  return await eventually(`a dispute of ${payment_id}`, async () => {
    const { body } = await account.get(`/v1/disputes?payment_id=${payment_id}`);
    return body.data[0];
  });
}

/** A recipient with an IBAN; `fields` may make it any other. */
async function buildRecipient(account: Account, fields: Fields = {}): Promise<Resource> {
  return await create(account, '/v1/payout-recipients', {
    type: 'bank_account',
    first_name: 'Grace',
    last_name: 'Hopper',
    iban: 'NL91ABNA0417164300',
    address_line1: 'Keizersgracht 1',
    city: 'Amsterdam',
    postal_code: '1015 CN',
    ...fields,
  });
}

/**
 * A payout of 10.00 EUR by SEPA Instant from an account with funds, to a recipient of its own unless
 * `recipient_id` names one.
 */
export async function buildPayout(
  account: Account,
  { status = 'sent', ...fields }: Fields & { status?: PayoutStatus } = {},
): Promise<Resource> {
  const recipient_id = fields['recipient_id'] ?? (await buildRecipient(account)).id;
  const { id } = await create(account, '/v1/payouts', {
    method: 'sepa_instant',
    amount: 1_000,
    currency: 'EUR',
    ...fields,
    recipient_id,
  });
  const path = `/v1/payouts/${id}`;
  if (status === 'created' || status === 'submitted') return (await account.get(path)).body;
  await untilStatus(account, path, 'sent');
  if (status !== 'sent') await simulate(account, `payouts/${id}`, status);
  return await untilStatus(account, path, status);
}

/** A webhook endpoint; the answer of its create, with the signing secret. */
export async function buildEndpoint(
  account: Account,
  fields: Fields & { url: string; enabled_events?: EventType[] },
): Promise<Resource> {
  return await create(account, '/v1/webhook-endpoints', fields);
}

async function create(account: Account, path: string, body: object): Promise<Resource> {
  const answer = await account.post(path, body);
  if (answer.status !== 201) throw new Error(`POST ${path} answered ${answer.text}`);
  return answer.body;
}

async function simulate(account: Account, path: string, event: string): Promise<void> {
  const answer = await account.post(`/v1/sandbox/${path}/simulate`, { event });
  if (answer.status !== 200) throw new Error(`${path} ${event}: ${answer.text}`);
}

async function untilStatus(account: Account, path: string, status: string): Promise<Resource> {
  return await eventually(`${path} to be ${status}`, async () => {
    const { body } = await account.get(path);
    return body.status === status && body;
  });
}
