import { RAIL_IDS, type RailId } from '../../src/domain/payout/rails';
import { sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
import { useService } from '../support/service';
import {
  FUNDS,
  insertRecipient,
  openShop,
  RAIL_CURRENCY,
  useFreshShop,
  useShop,
} from './payout-setting';
import { expectRefusal } from './refusal';
import { inOneDay } from './window';

const service = useService();

const FEE = 25;
const setFee = ({ account_id }: { account_id: string }) =>
  service.stores.accounts.setPayoutFee(account_id, 'sepa_instant', FEE);
const listFaults = ({
  body,
}: {
  body: { error: { details: { code: string; field: string }[] } };
}) => body.error.details.map(({ code, field }) => `${code}:${field}`);

describe('a payout', () => {
  const shop = useShop(service);

  test.each(RAIL_IDS)('over %s is sent, and every read shows it alike', async (method) => {
    const recipient_id = shop.recipients[method];
    const body = { method, recipient_id, amount: 1, currency: RAIL_CURRENCY[method] };
    const created = await shop.paySent(body);
    expect([created.status, created.body]).toMatchObject([201, { ...body, status: 'sent' }]);
    expect((await shop.get(`/v1/payouts/${created.body.id}`)).text).toBe(created.text);
  });

  test('to a card may be in yen, which have no decimals', async () => {
    const yen = { method: 'card_payout', currency: 'JPY', amount: 1 };
    const recipient_id = shop.recipients.card_payout;
    const { status, body } = await shop.paySent({ ...yen, recipient_id });
    expect([status, body]).toMatchObject([201, { ...yen, status: 'sent' }]);
  });

  test('has its reference on the statement of the bank', async () => {
    const { body } = await shop.paid({ reference: 'Salary 12/2026' });
    const bank = service.mongo.db(sandboxBankDatabase(service.database));
    const book = bank.collection<{ _id: string }>('payouts');
    expect(await book.findOne({ _id: body.id })).toMatchObject({ statement: 'Salary 12/2026' });
  });

  test.each([
    ['left out', {}],
    ['null', { reference: null, metadata: null }],
  ])('shows a reference and metadata that are %s as null and {}', async (_, changes) => {
    const { status, body } = await shop.pay(changes);
    expect([status, body.reference, body.metadata]).toEqual([201, null, {}]);
  });

  describe('that is refused leaves nothing behind:', () => {
    let before: number;
    beforeEach(async () => {
      before = await shop.count('payouts');
    });
    afterEach(async () => expect(await shop.count('payouts')).toBe(before));

    const BALANCE_FIELD = 'metadata.balance_account';

    test.each([
      ['an unknown field', { description: 'x' }, ['description']],
      ['a field of the answer', { status: 'completed' }, ['status']],
      ['no recipient', { recipient_id: undefined }, ['recipient_id']],
      ['a recipient that is no text', { recipient_id: { $ne: null } }, ['recipient_id']],
      ['an id of 101 characters', { recipient_id: 'x'.repeat(101) }, ['recipient_id']],
      ['no rail', { method: undefined }, ['method']],
      ['no currency', { currency: undefined }, ['currency']],
      ['a currency that is none', { currency: 'XXX' }, ['currency']],
      ['a reference of 256 characters', { reference: 'x'.repeat(256) }, ['reference']],
      ['metadata that is a list', { metadata: [] }, ['metadata']],
      ['a balance account that is a number', { metadata: { balance_account: 1 } }, [BALANCE_FIELD]],
      ['three faults', { method: 1, currency: 'eur', x: 1 }, ['method', 'currency', 'x']],
    ])('%s is named', async (_, changes, fields) => {
      expectRefusal(await shop.pay(changes), 'invalid_request', fields);
    });

    test.each([
      ['an unknown rail', { method: 'toString' }, ['method_not_found:method']],
      ['another currency', { currency: 'GBP' }, ['currency_not_supported:currency']],
    ])('%s does not meet the requirements of the rail', async (_, changes, faults) => {
      const refused = await shop.pay(changes);
      expectRefusal(refused, 'rail_requirements_not_met');
      expect(listFaults(refused)).toEqual(faults);
    });

    test('faults of the request and of the recipient are named together', async () => {
      const facts = { has: ['iban' as const], iban_in_sepa: false };
      const recipient_id = await insertRecipient(service, shop, 'sepa_instant', facts);
      expect(listFaults(await shop.pay({ recipient_id, currency: 'USD' }))).toEqual([
        'currency_not_supported:currency',
        'field_required:address_line1',
        'field_required:city',
        'field_required:postal_code',
        'iban_not_in_sepa:iban',
      ]);
    });

    test('a rail does not pay a recipient of the other kind', async () => {
      const { card_payout, sepa_instant } = shop.recipients;
      for (const [method, recipient_id] of [
        ['sepa_instant', card_payout],
        ['card_payout', sepa_instant],
      ] as const) {
        expectRefusal(await shop.pay({ method, recipient_id }), 'recipient_type_mismatch');
      }
    });

    test('a recipient of another account or environment is not found, like an unknown one', async () => {
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

    test('no rail is available live without a live connector, and balances are not shared', async () => {
      const live = await service.withKey(shop, true);
      const owner = { account_id: shop.account_id, livemode: true };
      const recipient_id = await insertRecipient(service, owner, 'sepa_instant');
      const refused = await live.post('/v1/payouts', shop.ask({ recipient_id }));
      expectRefusal(refused, 'rail_requirements_not_met');
      expect(listFaults(refused)).toEqual(['method_not_enabled:method']);
      // A balance account of the sandbox does not exist live.
      const drawn = shop.ask({ recipient_id, metadata: { balance_account: 'marketing' } });
      expectRefusal(await live.post('/v1/payouts', drawn), 'balance_account_not_found');
    });
  });
});

describe('the money of a payout', () => {
  const shop = useFreshShop(service);
  /** Amount that the sandbox bank takes without saying that it is sent. */
  const NOT_SENT = 66_624;
  const SENT = ['payout.submitted', 'payout.sent'];

  test('stays debited when the payout is completed', async () => {
    await setFee(shop);
    const created = (await shop.paid()).body;
    expect(await shop.balance()).toEqual([FUNDS.main - 1_000 - FEE, 0]);
    const { body } = await shop.simulate(created.id, { event: 'completed' });
    expect(body).toEqual({ ...created, status: 'completed', completed_at: expect.any(String) });
    expect(body.completed_at >= created.created_at).toBe(true);
    expect(await shop.balance()).toEqual([FUNDS.main - 1_000 - FEE, 0]);
  });

  test('comes back with the fee when the payout fails', async () => {
    await setFee(shop);
    const created = (await shop.paid()).body;
    const event = { event: 'failed', code: 'AC04', reason: 'Account closed' };
    const { body } = await shop.simulate(created.id, event);
    const failure = { code: 'AC04', message: 'Account closed' };
    expect(body).toEqual({ ...created, status: 'failed', failure });
    expect(await shop.balance()).toEqual([FUNDS.main, 0]);
  });

  test('is released when the payout fails before it is sent', async () => {
    await setFee(shop);
    const created = await shop.paid({ amount: NOT_SENT }, 'submitted');
    const reserved = NOT_SENT + FEE;
    expect(await shop.balance()).toEqual([FUNDS.main - reserved, reserved]);
    const { body } = await shop.simulate(created.body.id, { event: 'failed' });
    expect([body.status, body.completed_at]).toEqual(['failed', null]);
    expect(await shop.balance()).toEqual([FUNDS.main, 0]);
    expect(await shop.events(body.id)).toEqual(['payout.submitted', 'payout.failed']);
  });

  test.each([
    ['sent', []],
    ['completed', ['completed']],
  ])('comes back without the fee when a %s payout is returned', async (_, first) => {
    await setFee(shop);
    const created = (await shop.paid()).body;
    for (const event of first) await shop.simulate(created.id, { event });
    const before = (await shop.get(`/v1/payouts/${created.id}`)).body;
    const returned = { code: 'AC04', reason: 'Account closed' };
    const { body } = await shop.simulate(created.id, { event: 'returned', ...returned });
    const completed_at = before.completed_at ?? expect.any(String);
    const amount_returned = created.amount;
    const changes = { status: 'returned', returned, amount_returned, completed_at };
    expect(body).toEqual({ ...created, ...changes });
    expect(await shop.balance()).toEqual([FUNDS.main - FEE, 0]);
    const last = [...first, 'returned'].map((event) => `payout.${event}`);
    expect(await shop.events(created.id)).toEqual([...SENT, ...last]);
  });

  test('stays debited when a rail without returns reports one', async () => {
    const recipient_id = shop.recipients.card_payout;
    const created = await shop.paid({ method: 'card_payout', recipient_id });
    const after = await shop.simulate(created.body.id, { event: 'returned' });
    expect(after.text).toBe(created.text);
    expect(await shop.balance()).toEqual([FUNDS.main - 1_000, 0]);
    const { body } = await shop.simulate(created.body.id, { event: 'completed' });
    expect(body.status).toBe('completed');
  });

  test('has an event for each step, also for those that a report skips', async () => {
    const [first, second] = await Promise.all(
      [1, 2].map(() => shop.paid({ amount: NOT_SENT }, 'submitted')),
    );
    const sent = await shop.simulate(first?.body.id, { event: 'sent' });
    expect(sent.body).toEqual({ ...first?.body, status: 'sent' });
    expect(await shop.events(sent.body.id)).toEqual(SENT);
    const completed = await shop.simulate(second?.body.id, { event: 'completed' });
    expect(completed.body.status).toBe('completed');
    expect(await shop.events(completed.body.id)).toEqual([...SENT, 'payout.completed']);
  });
});

describe('the balance account of a payout', () => {
  const shop = useFreshShop(service);
  const marketing = { balance_account: 'marketing' };
  const fromMarketing = { metadata: marketing };

  test('is the one in its metadata, for amount, fee and returns', async () => {
    await setFee(shop);
    const { body } = await shop.paid(fromMarketing);
    expect(body.metadata).toEqual(marketing);
    const debited = FUNDS.marketing - 1_000 - FEE;
    expect(await shop.balance(marketing)).toEqual([debited, 0]);
    await shop.simulate(body.id, { event: 'returned' });
    expect(await shop.balance(marketing)).toEqual([debited + 1_000, 0]);
    expect(await shop.balance()).toEqual([FUNDS.main, 0]);
  });

  test('must hold amount and fee, to the last minor unit', async () => {
    await setFee(shop);
    const all = FUNDS.marketing - FEE;
    const over = await shop.pay({ ...fromMarketing, amount: all + 1 });
    expectRefusal(over, 'insufficient_balance');
    expect(over.body.error.message).toContain('€500.00');
    await shop.paid({ ...fromMarketing, amount: all });
    expect(await shop.balance(marketing)).toEqual([0, 0]);
    expectRefusal(await shop.pay({ ...fromMarketing, amount: 1 }), 'insufficient_balance');
    await shop.paid({ metadata: { balance_account: 'main' } });
  });

  test('is debited in the currency of the payout, whose fee may be its own', async () => {
    const { accounts } = service.stores;
    const pay = { method: 'card_payout', recipient_id: shop.recipients.card_payout, amount: 500 };
    const yen = { ...pay, ...fromMarketing, currency: 'JPY' };
    const row = { ...marketing, currency: 'JPY' };
    await accounts.setPayoutFee(shop.account_id, 'card_payout', 7);
    await shop.paid(yen);
    expect(await shop.balance(row)).toEqual([FUNDS.marketing - 507, 0]);
    await accounts.setPayoutFee(shop.account_id, 'card_payout:JPY', 11);
    await shop.paid(yen);
    expect(await shop.balance(row)).toEqual([FUNDS.marketing - 507 - 511, 0]);
    // The main balance account exists also in a currency in which it was never funded.
    const dollars = await shop.pay({ ...pay, currency: 'USD' });
    expectRefusal(dollars, 'insufficient_balance');
    expect(dollars.body.error.message).toContain('$0.00');
    const unknown = await shop.pay({ metadata: { balance_account: 'sales' } });
    expectRefusal(unknown, 'balance_account_not_found');
  });

  test('never falls below zero, however many payouts come at once', async () => {
    const fifth = { ...fromMarketing, amount: FUNDS.marketing / 5 };
    const answers = await Promise.all(Array.from({ length: 12 }, () => shop.pay(fifth)));
    const created = answers.filter(({ status }) => status === 201);
    expect(created).toHaveLength(5);
    for (const answer of answers.filter((each) => !created.includes(each))) {
      expectRefusal(answer, 'insufficient_balance');
    }
    await shop.untilSent(marketing);
    expect(await shop.balance(marketing)).toEqual([0, 0]);
  });
});

describe('the daily limit of payouts', () => {
  const OVER = 'payout_limit_exceeded';

  async function openLimitedShop(limit: number) {
    const shop = await openShop(service);
    const setLimit = (currency: string, to: number | null) =>
      service.stores.accounts.setPayoutLimit(shop.account_id, currency, to);
    await setLimit('EUR', limit);
    const payAll = async (...amounts: number[]) => {
      const answers = await Promise.all(amounts.map((amount) => shop.pay({ amount })));
      return answers.map(({ status, body }) => (status === 201 ? 'accepted' : body.error.code));
    };
    return { ...shop, setLimit, payAll };
  }

  test(
    'holds for simultaneous payouts, and is zero in every currency without a limit',
    inOneDay(async () => {
      const { pay, setLimit, payAll, countRecords, recipients } = await openLimitedShop(2_500);
      const all = await payAll(1_000, 1_000, 1_000, 1_000);
      expect(all.toSorted()).toEqual(['accepted', 'accepted', OVER, OVER]);
      expect(await countRecords()).toBe(2);
      expect(await payAll(501, 500)).toEqual([OVER, 'accepted']);
      const refused = await pay({ amount: 1 });
      expectRefusal(refused, OVER);
      expect(refused.body.error.message).toContain('€0.00 more today');
      const method: RailId = 'faster_payments';
      const payPounds = () => pay({ method, recipient_id: recipients[method], currency: 'GBP' });
      expectRefusal(await payPounds(), OVER);
      await setLimit('GBP', 5_000);
      expect((await payPounds()).status).toBe(201);
      await setLimit('GBP', null);
      await setLimit('EUR', null);
      expect(await payAll(1)).toEqual(['accepted']);
    }),
  );

  test(
    'does not count a payout that has failed',
    inOneDay(async () => {
      const { pay, simulate, payAll } = await openLimitedShop(1_000);
      const { id } = (await pay()).body;
      expect(await payAll(1)).toEqual([OVER]);
      await simulate(id, { event: 'failed', code: 'x', reason: 'y' });
      await service.becomes('payouts', id, { status: 'failed' });
      expect(await payAll(1_000)).toEqual(['accepted']);
    }),
  );
});
