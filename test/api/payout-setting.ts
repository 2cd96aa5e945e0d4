import { randomUUID } from 'node:crypto';
import { buildPosition } from '../../src/domain/cursor';
import { omitUndefined } from '../../src/domain/defined';
import type { RailId } from '../../src/domain/payout/rails';
import {
  getLast4,
  type RecipientFacts,
  type RecipientInput,
  recipientDetails,
  recipientFacts,
} from '../../src/domain/payout/recipient';
import type { PayoutDocument } from '../../src/store/payouts';
import { buildRecipient, recipientOwner } from '../../src/store/recipients';
import { eventually } from '../support/eventually';
import { fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { buildPayoutRow, paymentAt } from '../support/list-rows';
import type { Service } from '../support/service';

/** Minor units that `openShop` puts on a balance in EUR, GBP and JPY each. */
export const FUNDS = { main: 1_000_000, marketing: 50_000 };

const NAMES = { first_name: 'Ada', last_name: 'Lovelace' };
const ADDRESS = { address_line1: '12 Long Lane', city: 'London', postal_code: 'EC1A 9PT' };
const ACCOUNT = { ...NAMES, type: 'bank_account' } as const;
const SEPA = { ...ACCOUNT, ...ADDRESS, iban: 'DE89370400440532013000' };
const DETAILS: Record<RailId, RecipientInput> = {
  card_payout: {
    ...{ ...NAMES, ...ADDRESS, expiry_month: '12', expiry_year: '2039' },
    type: 'card',
    card_number: '4111111111111111',
    date_of_birth: '1985-12-10',
  },
  sepa_credit_transfer: SEPA,
  sepa_instant: SEPA,
  faster_payments: { ...ACCOUNT, sort_code: '200000', account_number: '55779911' },
};

/** Written as the service writes it, so that a test may also have one that has grown old. */
export async function insertRecipient(
  { stores, recipientEncrypters }: Pick<Service, 'stores' | 'recipientEncrypters'>,
  { account_id, livemode = false }: { account_id: string; livemode?: boolean },
  rail: RailId,
  changes: Partial<RecipientFacts> = {},
): Promise<string> {
  const id = randomUUID();
  const details = recipientDetails(DETAILS[rail]);
  const encrypter = recipientEncrypters.sandbox;
  const ciphertext = await encrypter.encrypt(JSON.stringify(details), recipientOwner(id));
  const stored = { last4: getLast4(details), ciphertext, kid: encrypter.getKid(ciphertext) };
  const recipient = { ...recipientFacts(details), ...stored, ...changes };
  const owner = { id, account_id, livemode, request_id: 'some-request' };
  await stores.recipients.insert(buildRecipient(owner, { recipient }, new Date()));
  return id;
}

interface Balance {
  balance_account: string;
  currency: string;
}

export type Shop = Awaited<ReturnType<typeof openShop>>;

/** A merchant with money in EUR, GBP and JPY, a recipient for each rail, and short words for calls. */
export async function openShop(service: Service) {
  const account = await service.account();
  for (const currency of ['EUR', 'GBP', 'JPY']) {
    for (const [balance_account, amount] of Object.entries(FUNDS)) {
      await fundAccount(service, account, { balance_account, currency, amount });
    }
  }
  const recipients = {
    card_payout: await insertRecipient(service, account, 'card_payout'),
    sepa_credit_transfer: await insertRecipient(service, account, 'sepa_credit_transfer'),
    sepa_instant: await insertRecipient(service, account, 'sepa_instant'),
    faster_payments: await insertRecipient(service, account, 'faster_payments'),
  };
  const ask = (changes: object = {}) => ({
    recipient_id: recipients.sepa_instant,
    method: 'sepa_instant',
    amount: 1_000,
    currency: 'EUR',
    ...changes,
  });
  const pay = (changes: object = {}, idempotencyKey?: string, once = false) =>
    account.post('/v1/payouts', ask(changes), { once, ...omitUndefined({ idempotencyKey }) });
  /** Minor units available and reserved on a balance. */
  const balance = async ({ balance_account = 'main', currency = 'EUR' }: Partial<Balance> = {}) => {
    const rows = await service.stores.ledger.balances(account.account_id, false);
    const row = rows.find(
      (each) => each.balance_account === balance_account && each.currency === currency,
    );
    return [row?.available, row?.reserved];
  };
  return {
    ...account,
    recipients,
    /** Body that `pay` sends: by default 10.00 EUR over SEPA Instant. */
    ask,
    pay,
    /** Pays, and reads the payout once it has a status, by default that its bank has sent it. */
    paid: async (changes: object = {}, status = 'sent') => {
      const created = await pay(changes);
      if (created.status !== 201) throw new Error(created.text);
      return await eventually(`a payout that is ${status}`, async () => {
        const answer = await account.get(`/v1/payouts/${created.body.id}`);
        return answer.body.status === status && answer;
      });
    },
    simulate: (id: string, body?: object) =>
      account.post(`/v1/sandbox/payouts/${id}/simulate`, body),
    balance,
    /** Waits until the bank has every payout, so that nothing is reserved. */
    untilSent: async (of: Partial<Balance> = {}) => {
      await eventually('the bank to have all', async () => (await balance(of))[1] === 0);
    },
  };
}

/** A merchant with money for one file's tests. */
export function useShop(service: Service): Shop {
  return useFixture(() => openShop(service));
}

let storedCount = 0;

/** A payout as the service writes it, with no workflow behind it. */
export function storedPayout(
  owner: { account_id: string },
  changes: Partial<PayoutDocument> = {},
): PayoutDocument {
  const created_at = changes.created_at ?? new Date().toISOString();
  storedCount += 1;
  return {
    ...buildPayoutRow(paymentAt(storedCount, created_at), 0),
    _id: randomUUID(),
    account_id: owner.account_id,
    status: 'sent',
    position: buildPosition(Date.parse(created_at), storedCount),
    amount: 1_000,
    recipient_id: randomUUID(),
    reference: null,
    completed_at: null,
    connector: 'sandbox',
    bank_reference: null,
    ...changes,
  };
}
