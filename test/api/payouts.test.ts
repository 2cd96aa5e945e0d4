import { RAIL_IDS, type RAILS } from '../../src/domain/payout/rails';
import type { RecipientFacts } from '../../src/domain/payout/recipient';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { insertRecipient, openShop, RAIL_CURRENCY, useShop } from './payout-setting';
import { expectRefusal } from './refusal';
import { inOneDay } from './window';

const service = useService();
const shop = useShop(service);

const over = (method: keyof typeof RAILS, changes: object = {}) => ({
  method,
  recipient_id: shop.recipients[method],
  currency: RAIL_CURRENCY[method],
  ...changes,
});

const BALANCE_FIELD = 'metadata.balance_account';
const ADDRESS = ['address_line1', 'city', 'postal_code'].map((field) => `field_required:${field}`);
const CARD_NEEDS = ['field_required:card_number', 'field_required:date_of_birth', ...ADDRESS];
const SEPA_NEEDS = ['field_required:iban', ...ADDRESS];
const UK_NEEDS = ['field_required:sort_code', 'field_required:account_number'];

function faultsOf({ body }: { body: { error: { details: { code: string; field: string }[] } } }) {
  return body.error.details.map(({ code, field }) => `${code}:${field}`);
}

test.each(RAIL_IDS)(
  'over %s a payout is sent, with the fields of docs/api.md#payouts',
  async (method) => {
    const more = { reference: 'Salary 11/2026', metadata: { run: 7, tags: ['a'] } };
    const { status, body, text } = await shop.paySent(over(method, more));
    expect(status).toBe(201);
    expect(Object.keys(body)).toEqual([
      'id',
      'object',
      'status',
      'amount',
      'currency',
      'method',
      'recipient_id',
      'reference',
      'metadata',
      'failure',
      'returned',
      'fee',
      'amount_returned',
      'livemode',
      'created_at',
      'completed_at',
    ]);
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
      object: 'payout',
      status: 'sent',
      amount: 1_000,
      currency: RAIL_CURRENCY[method],
      method,
      recipient_id: shop.recipients[method],
      ...more,
      failure: null,
      returned: null,
      fee: 0,
      amount_returned: null,
      livemode: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      completed_at: null,
    });
    expect((await shop.get(`/v1/payouts/${body.id}`)).text).toBe(text);
  },
);

test('the reference of a payout is on the bank’s statement of it', async () => {
  const { body } = await shop.paid({ reference: 'Salary 12/2026' });
  const book = service.mongo
    .db(`${service.database}_sandbox_bank`)
    .collection<{ _id: string }>('payouts');
  expect(await book.findOne({ _id: body.id })).toMatchObject({ statement: 'Salary 12/2026' });
});

test.each([
  ['left out', {}],
  ['null', { reference: null, metadata: null }],
])('reference and metadata that are %s are null and {}', async (_, changes) => {
  const { status, body } = await shop.pay(changes);
  expect([status, body.reference, body.metadata]).toEqual([201, null, {}]);
});

test('a card takes a payout in yen, which have no decimals', async () => {
  const { status, body } = await shop.paySent(over('card_payout', { currency: 'JPY', amount: 1 }));
  expect([status, body.status, body.amount, body.currency]).toEqual([201, 'sent', 1, 'JPY']);
});

describe('what is refused', () => {
  let before: number;
  beforeEach(async () => {
    before = await shop.count('payouts');
  });
  afterEach(async () => expect(await shop.count('payouts')).toBe(before));

  const withFacts = async (rail: keyof typeof RAILS, facts: Partial<RecipientFacts>) =>
    over(rail, { recipient_id: await insertRecipient(service, shop, rail, facts) });

  test.each([
    ['an unknown field', { description: 'x' }, ['description']],
    ['a fee of its own', { fee: 0 }, ['fee']],
    ['a field of the answer', { status: 'completed' }, ['status']],
    ['no recipient', { recipient_id: undefined }, ['recipient_id']],
    ['a recipient that is no text', { recipient_id: { $ne: null } }, ['recipient_id']],
    ['an id of endless length', { recipient_id: 'x'.repeat(101) }, ['recipient_id']],
    ['no rail', { method: undefined }, ['method']],
    ['a rail that is null', { method: null }, ['method']],
    ['no currency', { currency: undefined }, ['currency']],
    ['a currency that is none', { currency: 'XXX' }, ['currency']],
    ['a reference of 256 characters', { reference: 'x'.repeat(256) }, ['reference']],
    ['metadata that is a list', { metadata: [] }, ['metadata']],
    ['a balance account that is a number', { metadata: { balance_account: 1 } }, [BALANCE_FIELD]],
    ['one that is an object', { metadata: { balance_account: { $ne: 1 } } }, [BALANCE_FIELD]],
    ['three faults', { method: 1, currency: 'eur', x: 1 }, ['method', 'currency', 'x']],
  ])('%s is refused, naming every field at fault', async (_, changes, fields) => {
    expectRefusal(await shop.pay(changes), 'invalid_request', fields);
  });

  test.each([
    ['no rail', { method: 'cash' }, ['method_not_found:method']],
    ['the name of a method of objects', { method: 'toString' }, ['method_not_found:method']],
    ['a payment method', { method: 'ideal' }, ['method_not_found:method']],
    ['another currency', { currency: 'GBP' }, ['currency_not_supported:currency']],
  ])('%s is rail_requirements_not_met', async (_, changes, faults) => {
    const refused = await shop.pay(changes);
    expectRefusal(refused, 'rail_requirements_not_met');
    expect(faultsOf(refused)).toEqual(faults);
  });

  test.each([
    ['card_payout', { has: [] }, CARD_NEEDS],
    ['card_payout', { card_expires: '2026-10' }, ['card_expired:expiry_year']],
    ['card_payout', { scheme: null }, ['scheme_not_supported:scheme']],
    ['sepa_credit_transfer', { has: [], iban_in_sepa: null }, SEPA_NEEDS],
    ['sepa_instant', { has: ['iban', 'city'] }, SEPA_NEEDS.filter((f) => !/iban|city/.test(f))],
    ['sepa_instant', { iban_in_sepa: false }, ['iban_not_in_sepa:iban']],
    ['faster_payments', { has: ['iban'] }, UK_NEEDS],
  ] as const)('%s names every field that the recipient lacks: %j', async (rail, facts, faults) => {
    const changes: Partial<RecipientFacts> =
      'has' in facts ? { ...facts, has: [...facts.has] } : facts;
    const refused = await shop.pay(await withFacts(rail, changes));
    expectRefusal(refused, 'rail_requirements_not_met');
    expect(faultsOf(refused)).toEqual([...faults]);
  });

  test('faults of the request and of the recipient are named together', async () => {
    const asked = await withFacts('sepa_instant', { has: ['iban'], iban_in_sepa: false });
    expect(faultsOf(await shop.pay({ ...asked, currency: 'USD' }))).toEqual([
      'currency_not_supported:currency',
      'field_required:address_line1',
      'field_required:city',
      'field_required:postal_code',
      'iban_not_in_sepa:iban',
    ]);
  });

  test('a rail does not pay out to the other kind of recipient', async () => {
    const { recipients } = shop;
    const card = { recipient_id: recipients.card_payout };
    expectRefusal(await shop.pay(card), 'recipient_type_mismatch');
    const account = over('card_payout', { recipient_id: recipients.sepa_instant });
    expectRefusal(await shop.pay(account), 'recipient_type_mismatch');
  });

  test("what nobody has, and another account's or environment's recipient, is not found", async () => {
    const live = { account_id: shop.account_id, livemode: true };
    const foreign = [
      await insertRecipient(service, await service.account(), 'sepa_instant'),
      await insertRecipient(service, live, 'sepa_instant'),
    ];
    const unknown = await shop.pay({ recipient_id: 'some-id' });
    expectRefusal(unknown, 'recipient_not_found');
    for (const recipient_id of ['', shop.account_id, ...foreign]) {
      const answer = await shop.pay({ recipient_id, method: 'cash' });
      expectRefusal(answer, 'recipient_not_found');
      expect(answer.body.error.message).toBe(unknown.body.error.message);
    }
  });
});

test('where no connector serves live, no rail is there and nothing can be paid out', async () => {
  const live = await service.withKey(shop, true);
  const owner = { account_id: shop.account_id, livemode: true };
  const recipient_id = await insertRecipient(service, owner, 'sepa_instant');
  const refused = await live.post('/v1/payouts', shop.ask({ recipient_id }));
  expectRefusal(refused, 'rail_requirements_not_met');
  expect(faultsOf(refused)).toEqual(['method_not_enabled:method']);
  // A balance account of the sandbox is none of live.
  const drawn = shop.ask({ recipient_id, metadata: { balance_account: 'marketing' } });
  const unfunded = await live.post('/v1/payouts', drawn);
  expectRefusal(unfunded, 'balance_account_not_found');
});

describe('a payout limit', () => {
  const limited = async (limit: number) => {
    const other = await openShop(service);
    const { account_id } = other;
    const set = (to: number | null) =>
      service.stores.accounts.setPayoutLimit(account_id, 'EUR', to);
    await set(limit);
    const outcomes = async (amounts: number[]) => {
      const answers = await Promise.all(amounts.map((amount) => other.pay({ amount })));
      return answers.map(({ status, body }) => (status === 201 ? 'accepted' : body.error.code));
    };
    return { ...other, set, outcomes };
  };

  test(
    'holds for payouts of one day that come at once, and every other currency has the limit 0',
    inOneDay(async () => {
      const { account_id, pay, set, outcomes, claims, recipients } = await limited(2_500);
      const all = await outcomes([1_000, 1_000, 1_000, 1_000]);
      const passed = 'payout_limit_exceeded';
      expect(all.toSorted()).toEqual(['accepted', 'accepted', passed, passed]);
      expect(await claims()).toBe(2);
      expect(await outcomes([501, 500])).toEqual([passed, 'accepted']);
      const refused = await pay({ amount: 1 });
      expectRefusal(refused, passed);
      expect(refused.body.error.message).toContain('€0.00 more today');
      const pounds = { method: 'faster_payments', recipient_id: recipients.faster_payments };
      expectRefusal(await pay({ ...pounds, currency: 'GBP' }), passed);
      await service.stores.accounts.setPayoutLimit(account_id, 'GBP', 5_000);
      expect((await pay({ ...pounds, currency: 'GBP' })).status).toBe(201);
      await service.stores.accounts.setPayoutLimit(account_id, 'GBP', null);
      await set(null);
      expect(await outcomes([1])).toEqual(['accepted']);
    }),
  );

  test(
    'counts what failed no more',
    inOneDay(async () => {
      const { pay, simulate, outcomes, get } = await limited(1_000);
      const { id } = (await pay({ amount: 1_000 })).body;
      expect(await outcomes([1])).toEqual(['payout_limit_exceeded']);
      await simulate(id, { event: 'failed', code: 'x', reason: 'y' });
      await eventually('its failure', async () => {
        const { body } = await get(`/v1/payouts/${id}`);
        return body.status === 'failed' ? body : undefined;
      });
      expect(await outcomes([1_000])).toEqual(['accepted']);
    }),
  );
});
