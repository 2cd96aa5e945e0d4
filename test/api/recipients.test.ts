import { randomUUID } from 'node:crypto';
import type { Client } from '../support/http';
import { useAccount, useService } from '../support/service';
import { bankRecipient, cardRecipient, ukRecipient } from './recipient-bodies';
import { expectNotQuoted, expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

const PATH = '/v1/payout-recipients';
const create = (body: object, idempotencyKey: string = randomUUID(), as: Client = shop) =>
  as.post(PATH, body, { idempotencyKey });
const count = (name: string) => service.collection(name).countDocuments();
const TURKISH = 'TR330006100519786457841326';
const long = (length: number) => 'x'.repeat(length);

test.each([
  ['a card', cardRecipient(), 'card', 'visa', '1111'],
  ['an account in the SEPA area', bankRecipient(), 'bank_account', null, '4300'],
  ['an account in the United Kingdom', ukRecipient(), 'bank_account', null, '6819'],
])(
  '%s is answered with what docs/api.md#recipients lists',
  async (_, body, type, scheme, last4) => {
    const { status, body: made } = await create(body);
    expect(status).toBe(201);
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      object: 'payout_recipient',
      type,
      scheme,
      last4,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    expect(Object.keys(made)).toEqual(['id', 'object', 'type', 'scheme', 'last4', 'created_at']);
  },
);

test.each([
  ['mastercard', '5555555555554444'],
  ['mastercard', '2223003122003222'],
  ['amex', '378282246310005'],
  [null, '6011111111111117'],
])('the network is told by the number: %s', async (scheme, card_number) => {
  const body = cardRecipient({ card_number, scheme, last4: card_number.slice(-4) });
  expect((await create(body)).body).toMatchObject({ scheme, last4: card_number.slice(-4) });
});

test.each([
  ['an IBAN as people write it', bankRecipient({ iban: 'nl91 abna 0417 1643 00' })],
  ['an IBAN outside the SEPA area with its BIC', bankRecipient({ iban: TURKISH, bic: 'AKBKTRIS' })],
  ['both kinds of account number', bankRecipient({ ...ukRecipient(), last4: '4300' })],
  ['an account without an address', bankRecipient({ address_line1: null, city: null })],
  ['a card without an address', cardRecipient({ address_line1: undefined, postal_code: null })],
  ['a date of birth of an account holder', ukRecipient({ date_of_birth: '1912-06-23' })],
  [
    'null for every field that may be left out',
    {
      ...ukRecipient(),
      card_number: null,
      expiry_month: null,
      expiry_year: null,
      date_of_birth: null,
      iban: null,
      bic: null,
      address_line1: null,
      city: null,
      postal_code: null,
      last4: null,
      scheme: null,
      country: null,
      email: null,
      reference: null,
      parent_payment_reference: null,
    },
  ],
  [
    'every field at its longest',
    cardRecipient({
      first_name: long(100),
      last_name: long(100),
      address_line1: long(200),
      city: long(100),
      postal_code: long(20),
      reference: long(255),
      parent_payment_reference: long(255),
      country: 'GB',
      email: 'ada@example.com',
      scheme: 'visa',
      last4: '1111',
    }),
  ],
])('%s is accepted', async (_, body) => {
  const answer = await create(body);
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 201 });
});

type Case = [what: string, body: object, fields: string[]];
const card = (field: string, ...values: unknown[]): Case[] =>
  values.map((value) => [field, cardRecipient({ [field]: value }), [field]]);
const bank = (field: string, ...values: unknown[]): Case[] =>
  values.map((value) => [field, bankRecipient({ [field]: value }), [field]]);
const uk = (field: string, ...values: unknown[]): Case[] =>
  values.map((value) => [field, ukRecipient({ [field]: value }), [field]]);

test.each<Case>([
  ...card('type', undefined, null, 'iban', 'CARD', 5),
  ...card('first_name', undefined, null, '', '  ', long(101), 5, 'a\0b'),
  ...card('last_name', undefined, null, '', '\t', long(101), {}),
  ...card('card_number', undefined, null, '', '4111111111111112', '41111111111', long(16), 4111),
  ...card('card_number', '4111 1111 1111 1111', '41111111111111111111'),
  ...card('expiry_month', undefined, null, '', '0', '00', '13', '1', '012', 12),
  ...card('expiry_year', undefined, null, '', '99', '20999', 'MMXX', 2099),
  ...card('date_of_birth', undefined, null, '', '1899-12-31', '2023-02-30', '10-12-1985', 1985),
  ...card('date_of_birth', '2999-01-01'),
  ...card('iban', 'NL91ABNA0417164300', 'not one'),
  ...card('bic', 'ABNANL2A'),
  ...card('sort_code', '601613'),
  ...card('account_number', '31926819'),
  ...card('scheme', 'mastercard', 'maestro', 'VISA', ''),
  ...card('last4', '1112', '111', '11111', '', 1111),
  ...card('country', 'gb', 'UK', 'GBR', ''),
  ...card('email', 'ada', '', 'ada@', `${long(250)}@example.com`),
  ...card('address_line1', '', ' ', long(201), 1),
  ...card('city', '', long(101)),
  ...card('postal_code', '', long(21)),
  ...card('reference', long(256), 5),
  ...card('parent_payment_reference', long(256), 5),
  ...card('token', 'tok_1'),
  ...bank('iban', '', 'NL92ABNA0417164300', 'NL91ABNA041716430', 'ZZ91ABNA0417164300', 5),
  ...bank('bic', 'ABNA', 'ABN4NL2A', 'ABNAZZ2A', ''),
  ...bank('card_number', '4111111111111111'),
  ...bank('expiry_month', '12'),
  ...bank('expiry_year', '2099'),
  ...bank('scheme', 'visa'),
  ...bank('last4', '4301', '6819'),
  ...bank('sort_code', '60161', '60-16-13', '6016133', 601_613).map(
    ([field, body, fields]): Case => [field, { ...body, account_number: '31926819' }, fields],
  ),
  ...uk('sort_code', undefined, null, '60161a'),
  ...uk('account_number', undefined, null, '3192681', '319268190', ''),
  ...uk('last4', '6813'),
  ['half an account beside an IBAN', bankRecipient({ sort_code: '601613' }), ['account_number']],
  ['a foreign IBAN without a BIC', bankRecipient({ iban: TURKISH }), ['bic']],
  ['no account', bankRecipient({ iban: null }), ['iban', 'sort_code', 'account_number']],
  ['a card of last year', cardRecipient({ expiry_year: '2001' }), ['expiry_month', 'expiry_year']],
])('refused, naming the field: %s (%j)', async (_, body, fields) => {
  const before = [await count('recipients'), await count('idempotency')];
  const answer = await create(body);
  expectRefusal(answer, 'invalid_request', fields);
  for (const field of fields) expectNoEcho(answer.text, Object(body)[field]);
  expect([await count('recipients'), await count('idempotency')]).toEqual(before);
});

/** Short ones stand in the words of a refusal by chance: a month, a network. */
function expectNoEcho(text: string, value: unknown): void {
  if (typeof value === 'string' && value.length > 4 && value !== 'maestro') {
    expectNotQuoted(text, value);
  }
}

test('every field that is wrong is named at once, alone or together', async () => {
  const body = cardRecipient({
    first_name: ' ',
    card_number: '4111111111111112',
    expiry_month: undefined,
    date_of_birth: null,
    iban: 'NL91ABNA0417164300',
    scheme: 'amex',
    country: 'XX',
    extra: 1,
  });
  expectRefusal(await create(body), 'invalid_request', [
    'first_name',
    'card_number',
    'expiry_month',
    'date_of_birth',
    'iban',
    'country',
    'extra',
  ]);
  const account = bankRecipient({ iban: TURKISH, last4: '0000', scheme: 'visa', sort_code: '1' });
  expectRefusal(await create(account), 'invalid_request', [
    'bic',
    'last4',
    'scheme',
    'sort_code',
    'account_number',
  ]);
});

test('a key belongs to one account and one environment, and so does what it made', async () => {
  const other = await service.account();
  const live = await service.withKey(shop, true);
  const made = [
    await create(cardRecipient(), 'shared'),
    await create(cardRecipient(), 'shared', live),
    await create(cardRecipient(), 'shared', other),
  ];
  expect(made.map(({ status }) => status)).toEqual([201, 201, 201]);
  const [sandboxId, liveId, otherId] = made.map(({ body }) => body.id);
  expect(new Set([sandboxId, liveId, otherId]).size).toBe(3);
  const { recipients } = service.stores;
  expect(await recipients.find(sandboxId, shop.account_id, false)).not.toBeNull();
  expect(await recipients.find(sandboxId, shop.account_id, true)).toBeNull();
  expect(await recipients.find(liveId, shop.account_id, false)).toBeNull();
  expect(await recipients.find(otherId, shop.account_id, false)).toBeNull();
});

describe('a recipient that is deleted', () => {
  const PLAIN = { type: 'card', scheme: 'visa', last4: '1111' };
  const remove = (id: string, as: Client = shop) => as.delete(`${PATH}/${id}`);
  const lines = (account: string) =>
    service.stores.auditLog.list({ account_id: account, livemode: false, limit: 10 });

  test('is answered with deleted: true, its details are gone, and a repeat says the same', async () => {
    const mine = await service.account();
    const { id, created_at } = (await create(cardRecipient(), 'own', mine)).body;
    const first = await remove(id, mine);
    const shown = { id, object: 'payout_recipient', ...PLAIN, created_at, deleted: true };
    expect([first.status, first.body]).toEqual([200, shown]);
    const stored = await service.stores.recipients.get(id);
    expect(stored).toMatchObject({
      ...PLAIN,
      sealed: null,
      kid: null,
      has: [],
      card_expires: null,
    });
    expect((await remove(id, mine)).body).toEqual(shown);
    expect(await service.stores.recipients.get(id)).toEqual(stored);
    expect(await lines(mine.account_id)).toMatchObject([
      {
        act: 'recipient.deleted',
        target: id,
        actor: {
          ...{ door: 'api', key_id: expect.stringMatching(/^key_/) },
          ...{ address: expect.any(String), request_id: expect.any(String) },
        },
        after: { deleted_at: stored?.deleted_at },
      },
    ]);
    expect((await create(cardRecipient(), 'own', mine)).body).toEqual({
      ...shown,
      deleted: undefined,
    });
  });

  test('takes along what its claim still holds, and is not written again by it', async () => {
    const { id } = (await create(cardRecipient(), 'claimed')).body;
    const claims = service.collection('idempotency');
    const { type, sealed, kid } = Object(await service.stores.recipients.get(id));
    const left = { recipient: { ...PLAIN, type, has: [], card_expires: null, iban_in_sepa: null } };
    const open = {
      request: { recipient: { ...left.recipient, sealed, kid } },
      body: null,
      status: null,
    };
    await claims.updateOne({ resource_id: id }, { $set: open });
    expect((await remove(id)).status).toBe(200);
    expect(await claims.findOne({ resource_id: id })).toMatchObject({ request: null });
    expect((await create(cardRecipient(), 'claimed')).body).toMatchObject({ id, deleted: true });
    expect(await service.stores.recipients.get(id)).toMatchObject({ sealed: null });
  });
});
