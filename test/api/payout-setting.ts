import { randomUUID } from 'node:crypto';
import { buildPosition } from '../../src/domain/cursor';
import { RAILS, type RailId } from '../../src/domain/payout/rails';
import type { RecipientDetails, RecipientFacts } from '../../src/domain/payout/recipient';
import { fundBalance } from '../../src/service/balances/fund';
import type { PayoutDocument } from '../../src/store/payouts';
import { operatorsAudit } from '../support/audit';
import { useFixture, useFreshFixture } from '../support/fixture';
import { call, eventually } from '../support/http';
import { retryUntilDone } from '../support/insist';
import type { Service } from '../support/service';

/** Minor units that `openShop` puts on a balance in EUR, GBP and JPY each. */
export const FUNDS = { main: 1_000_000, marketing: 50_000 };

export const RAIL_CURRENCY: Record<RailId, string> = {
  card_payout: 'EUR',
  sepa_credit_transfer: 'EUR',
  sepa_instant: 'EUR',
  faster_payments: 'GBP',
};

const ADDRESS = { address_line1: '12 Long Lane', city: 'London', postal_code: 'EC1A 9PT' };
const NONE: RecipientDetails = {
  type: 'bank_account',
  first_name: 'Ada',
  last_name: 'Lovelace',
  card_number: null,
  expiry_month: null,
  expiry_year: null,
  date_of_birth: null,
  iban: null,
  bic: null,
  sort_code: null,
  account_number: null,
  address_line1: null,
  city: null,
  postal_code: null,
  country: null,
  email: null,
  reference: null,
  parent_payment_reference: null,
};
const CARD: Partial<RecipientDetails> = {
  type: 'card',
  card_number: '4111111111111111',
  expiry_month: '12',
  expiry_year: '2039',
  date_of_birth: '1985-12-10',
  ...ADDRESS,
};
const SEPA: Partial<RecipientDetails> = { iban: 'DE89370400440532013000', ...ADDRESS };
const UK: Partial<RecipientDetails> = { sort_code: '200000', account_number: '55779911' };
const DETAILS: Record<RailId, Partial<RecipientDetails>> = {
  card_payout: CARD,
  sepa_credit_transfer: SEPA,
  sepa_instant: SEPA,
  faster_payments: UK,
};

/** Written as the service writes it, so that a test may also have one that has grown old. */
export async function insertRecipient(
  { stores, recipientEncrypters }: Pick<Service, 'stores' | 'recipientEncrypters'>,
  { account_id, livemode = false }: { account_id: string; livemode?: boolean },
  rail: RailId,
  changes: Partial<RecipientFacts> = {},
): Promise<string> {
  const _id = randomUUID();
  const details: RecipientDetails = { ...NONE, ...DETAILS[rail] };
  const isCard = details.type === 'card';
  const encrypter = recipientEncrypters.sandbox;
  const sealed = await encrypter.encrypt(JSON.stringify(details), `recipient/${_id}`);
  await stores.recipients.insert({
    _id,
    account_id,
    livemode,
    type: details.type,
    scheme: isCard ? 'visa' : null,
    has: [...RAILS[rail].required_fields],
    card_expires: isCard ? '2039-12' : null,
    iban_in_sepa: details.iban === null ? null : true,
    last4: (details.card_number ?? details.iban ?? details.account_number ?? '').slice(-4),
    sealed,
    kid: encrypter.getKid(sealed),
    created_at: new Date().toISOString(),
    used_at: new Date().toISOString(),
    request_id: 'some-request',
    ...changes,
  });
  return _id;
}

/** Credits a balance; minor units. Tries again where a busy machine ends the transaction. */
export async function credit(
  { mongo, stores }: Pick<Service, 'mongo' | 'stores'>,
  { account_id, livemode = false }: { account_id: string; livemode?: boolean },
  { balance_account = 'main', currency = 'EUR', amount }: Partial<Balance> & { amount: number },
): Promise<void> {
  const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
  const funding = { account_id, livemode, balance_account, currency, amount };
  // The same id each time, so that it credits once.
  const id = randomUUID();
  await retryUntilDone(() => fundBalance(deps, funding, { id }));
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
      await credit(service, account, { balance_account, currency, amount });
    }
  }
  const insert = (rail: RailId) => insertRecipient(service, account, rail);
  const [card_payout, sepa_credit_transfer, sepa_instant, faster_payments] = await Promise.all([
    insert('card_payout'),
    insert('sepa_credit_transfer'),
    insert('sepa_instant'),
    insert('faster_payments'),
  ]);
  const recipients = { card_payout, sepa_credit_transfer, sepa_instant, faster_payments };
  const { key } = account;
  const ask = (changes: object = {}) => ({
    recipient_id: recipients.sepa_instant,
    method: 'sepa_instant',
    amount: 1_000,
    currency: 'EUR',
    ...changes,
  });
  const pay = (changes: object = {}, idempotencyKey?: string, once = false) =>
    call(service.url, 'POST', '/v1/payouts', {
      ...{ key, once },
      body: ask(changes),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
  /** Minor units available and reserved on a balance. */
  const balance = async ({ balance_account = 'main', currency = 'EUR' }: Partial<Balance> = {}) => {
    const rows = await service.stores.ledger.balances(account.account_id, false);
    const row = rows.find(
      (each) => each.balance_account === balance_account && each.currency === currency,
    );
    return [row?.available, row?.reserved];
  };
  const { get } = account;
  return {
    ...account,
    recipients,
    /** Body that `pay` sends: by default 10.00 EUR over SEPA Instant. */
    ask,
    pay,
    /** Pays until an answer has the bank's word: on a busy machine one may come before it. */
    paySent: (changes: object = {}) =>
      eventually('a payout that is sent at once', async () => {
        const answer = await pay(changes);
        const isEarly = ['created', 'submitted'].includes(answer.body.status);
        return isEarly ? undefined : answer;
      }),
    /**
     * Pays, and reads the payout once the bank has said `word`: on a busy machine a create may be
     * answered before that.
     */
    paid: async (changes: object = {}, word = 'sent') => {
      const { status, body, text } = await pay(changes);
      if (status !== 201) throw new Error(text);
      return await eventually(`a payout that is ${word}`, async () => {
        const answer = await get(`/v1/payouts/${body.id}`);
        return answer.body.status === word && answer;
      });
    },
    simulate: (id: string, body?: object) =>
      account.post(`/v1/sandbox/payouts/${id}/simulate`, body),
    balance,
    /** Waits until the bank has every payout, so that nothing is reserved. */
    untilSent: async (of: Partial<Balance> = {}) => {
      await eventually('the bank to have all', async () => (await balance(of))[1] === 0);
    },
    /** Counts idempotency records of payouts: a refused attempt leaves none. */
    countRecords: () =>
      service
        .collection('idempotency')
        .countDocuments({ account_id: account.account_id, operation: 'createPayout' }),
  };
}

/** A merchant with money for one file's tests. */
export function useShop(service: Service): Shop {
  return useFixture(() => openShop(service));
}

/** As `useShop`, a new one for each test. */
export function useFreshShop(service: Service): Shop {
  return useFreshFixture(() => openShop(service));
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
    _id: randomUUID(),
    account_id: owner.account_id,
    livemode: false,
    version: 3,
    status: 'sent',
    position: buildPosition(Date.parse(created_at), storedCount),
    amount: 1_000,
    fee: 0,
    currency: 'EUR',
    method: 'sepa_instant',
    recipient_id: randomUUID(),
    balance_account: 'main',
    reference: null,
    metadata: '{}',
    failure: null,
    returned: null,
    created_at,
    updated_at: created_at,
    sent_at: created_at,
    completed_at: null,
    connector: 'sandbox',
    bank_reference: null,
    due_at: created_at,
    attention: null,
    request_id: 'some-request',
    audit: [],
    ...changes,
  };
}
