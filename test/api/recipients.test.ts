import { randomUUID } from 'node:crypto';
import { createRecipientDecrypter } from '../../connectors/contract/recipients';
import type { Encrypter } from '../../src/encryption/encrypter';
import { type Answer, call } from '../support/http';
import { useAccount, useService } from '../support/service';
import { storedPayout } from './payout-setting';
import { bankRecipient, cardRecipient, ukRecipient } from './recipient-bodies';
import { expectNotQuoted, expectRefusal } from './refusal';

const PATH = '/v1/payout-recipients';
const TURKISH = 'TR330006100519786457841326';

const service = useService();
const shop = useAccount(service);

const create = (body: object, idempotencyKey: string = randomUUID()) =>
  shop.post(PATH, body, { idempotencyKey });
const findRecord = (key: string) =>
  service.collection('idempotency_records').findOne({ account_id: shop.account_id, key });
const countStored = () =>
  Promise.all([shop.count('recipients'), shop.count('idempotency_records')]);

describe('a recipient', () => {
  test.each([
    ['a card', cardRecipient(), 'card', 'visa', '1111'],
    ['an account in the SEPA area', bankRecipient(), 'bank_account', null, '4300'],
    ['an account in the United Kingdom', ukRecipient(), 'bank_account', null, '6819'],
  ])('that is %s is answered without its details', async (_, body, type, scheme, last4) => {
    const { status, body: answer } = await create(body);
    const id = expect.stringMatching(/^[0-9a-f-]{36}$/);
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const shown = { id, object: 'payout_recipient', type, scheme, last4, created_at };
    expect([status, answer]).toEqual([201, shown]);
  });

  test.each([
    ['with both kinds of account number', bankRecipient({ ...ukRecipient(), last4: '4300' })],
    ['with a card but no address', cardRecipient({ address_line1: undefined, postal_code: null })],
    ['with null for other fields', ukRecipient({ card_number: null, scheme: null, last4: null })],
  ])('%s is accepted', async (_, body) => {
    const answer = await create(body);
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 201 });
  });

  const NONE = {
    ...{ first_name: undefined, last_name: undefined, card_number: undefined },
    ...{ date_of_birth: undefined, expiry_month: undefined, expiry_year: undefined },
  };
  const NUMBERS = { card_number: '4111111111111111', expiry_month: '12', expiry_year: '2099' };
  const [iban, bic] = ['NL91ABNA0417164300', 'ABNANL2A'];
  const { sort_code, account_number } = ukRecipient();
  type Changes = Record<string, unknown>;
  type Case = [what: string, build: (by: Changes) => object, changes: Changes, fields?: string[]];

  // Lengths, types and patterns are in the OpenAPI document: these are what it cannot say.
  test.each<Case>([
    ['a card without a field', cardRecipient, NONE],
    ['an unknown type', cardRecipient, { type: 'iban' }],
    [
      'only white space',
      cardRecipient,
      { first_name: '', last_name: '\t', address_line1: ' ', city: '', postal_code: '' },
    ],
    [
      'malformed values',
      cardRecipient,
      {
        ...{ first_name: 'a\0b', card_number: '4111111111111112', expiry_month: '13' },
        ...{ expiry_year: '99', date_of_birth: '2023-02-30', scheme: 'VISA', last4: '111' },
        ...{ country: 'UK', email: 'ada', reference: 'x'.repeat(256), token: 'tok_1' },
      },
    ],
    ['an expired card', cardRecipient, { expiry_year: '2001' }, ['expiry_month', 'expiry_year']],
    ['the scheme of another card', cardRecipient, { scheme: 'mastercard' }],
    ['the end of another number', cardRecipient, { last4: '1112' }],
    ['an account of a card', cardRecipient, { iban, bic, sort_code, account_number }],
    ['a card of an account', bankRecipient, { ...NUMBERS, scheme: 'visa' }],
    ['a BIC of no country', bankRecipient, { bic: 'ABNAZZ2A' }],
    ['the end of another account', ukRecipient, { last4: '6813' }],
    ['half an account and an IBAN', bankRecipient, { account_number }, ['sort_code']],
    ['no account', bankRecipient, { iban: null }, ['iban', 'sort_code', 'account_number']],
    [
      'many faults of an account',
      bankRecipient,
      { iban: TURKISH, last4: '0000', scheme: 'visa', sort_code: '1' },
      ['bic', 'last4', 'scheme', 'sort_code', 'account_number'],
    ],
  ])('with %s is refused by its fields, whose values are not quoted', async (...each) => {
    const [, build, changes, fields = Object.keys(changes)] = each;
    const before = await countStored();
    const answer = await create(build(changes));
    expectRefusal(answer, 'invalid_request', fields);
    for (const value of Object.values(changes).map(String)) {
      // A short text can be in the words of a refusal by chance.
      if (value.length > 4) expectNotQuoted(answer.text, value);
    }
    expect(await countStored()).toEqual(before);
  });

  test('that is deleted has no details any more, and a repeat says the same', async () => {
    const owner = await service.account();
    const post = () => owner.post(PATH, cardRecipient(), { idempotencyKey: 'own' });
    const remove = (id: string) => owner.delete(`${PATH}/${id}`);
    const created = (await post()).body;
    const { id } = created;
    const first = await remove(id);
    const shown = { ...created, deleted: true };
    expect([first.status, first.body]).toEqual([200, shown]);
    const stored = await service.stores.recipients.get(id);
    const redacted = { ciphertext: null, kid: null, has: [], card_expires: null };
    const visible = { type: 'card', scheme: 'visa', last4: '1111' };
    expect(stored).toMatchObject({ ...visible, ...redacted });
    expect((await remove(id)).body).toEqual(shown);
    expect(await service.stores.recipients.get(id)).toEqual(stored);
    const { account_id } = owner;
    const log = await service.stores.auditLog.list({ account_id, livemode: false, limit: 10 });
    const actor = {
      ...{ via: 'api', key_id: expect.stringMatching(/^key_/) },
      ...{ address: expect.any(String), request_id: expect.any(String) },
    };
    const after = { deleted_at: stored?.deleted_at };
    expect(log).toMatchObject([{ act: 'recipient.deleted', target: id, actor, after }]);
    expect((await post()).body).toEqual(created);
  });

  test('that is deleted is not written again by a create that was interrupted', async () => {
    const { id } = (await create(cardRecipient(), 'recorded')).body;
    const records = service.collection('idempotency_records');
    const { type, scheme, last4, ciphertext, kid } = Object(
      await service.stores.recipients.get(id),
    );
    const recipient = { type, scheme, last4, ciphertext, kid, has: [], card_expires: null };
    const open = { request: { recipient }, body: null, status: null };
    await records.updateOne({ resource_id: id }, { $set: open });
    expect((await shop.delete(`${PATH}/${id}`)).status).toBe(200);
    expect(await findRecord('recorded')).toMatchObject({ request: null });
    const again = (await create(cardRecipient(), 'recorded')).body;
    expect(again).toMatchObject({ id, deleted: true });
    expect(await service.stores.recipients.get(id)).toMatchObject({ ciphertext: null });
  });
});

// That none is stored or logged in plain text: test/leaks. Who decrypts them: test/encryption.
describe('the details of a recipient', () => {
  const last_name = 'Quillfeather';
  const CARD = cardRecipient({ last_name, card_number: '5555555555554444' });
  const SEPA = bankRecipient({ last_name, iban: 'DE89370400440532013000' });
  const SECRET = /Quillfeather|5555555555554444|DE89370400440532013000/;

  /** Opens a recipient as the connector of a payout to it would. */
  const decrypt = (id: string, by: Pick<Encrypter, 'decrypt'> = service.recipientDecrypter) => {
    const { recipients } = service.stores;
    const facts = { recipient_id: id, connector: 'sandbox', status: 'created' } as const;
    const payouts = { get: async () => storedPayout(shop, facts) };
    const deps = { payouts, recipients, encrypter: by, log: { info: () => undefined } };
    return createRecipientDecrypter({ ...deps, connector: 'sandbox' })(randomUUID());
  };

  /** Posts a body to an API of which some parts fail, and which logs everything. */
  async function postWith(
    faults: { encrypt?: Encrypter['encrypt']; insert?: true; reserveKey?: true },
    body: object,
    idempotencyKey: string = randomUUID(),
  ): Promise<{ answer: Answer; log: string }> {
    const { recipientEncrypters, stores } = service;
    const { sandbox } = recipientEncrypters;
    const { encrypt = sandbox.encrypt } = faults;
    const fail = () => Promise.reject(new Error('unexpected'));
    const recipients = { ...stores.recipients, ...(faults.insert && { insert: fail }) };
    const idempotency = { ...stores.idempotency, ...(faults.reserveKey && { reserveKey: fail }) };
    const parts = {
      recipientEncrypters: { ...recipientEncrypters, sandbox: { ...sandbox, encrypt } },
      stores: { ...stores, recipients, idempotency },
    };
    const answers: Answer[] = [];
    const log = await service.withApp(parts, async (url) => {
      const request = { key: shop.key, idempotencyKey, once: true, body };
      answers.push(await call(url, 'POST', PATH, request));
    });
    const [answer] = answers;
    if (answer === undefined) throw new Error('There is no answer.');
    expect(`${log}${answer.text}`).not.toMatch(SECRET);
    return { answer, log };
  }

  test('are encrypted in the record of a create that was interrupted, and a repeat completes it', async () => {
    const { answer, log } = await postWith({ insert: true }, CARD, 'interrupted');
    expectRefusal(answer, 'internal_error');
    expect(log).toContain('unexpected');
    const record = await findRecord('interrupted');
    expect(Object.keys(record?.['request'])).toEqual(['recipient']);
    expect(Object.keys(record?.['request'].recipient).sort()).toEqual([
      ...['card_expires', 'ciphertext', 'has', 'iban_in_sepa', 'kid', 'last4', 'scheme', 'type'],
    ]);
    expect(JSON.stringify(record)).not.toMatch(SECRET);
    const again = await create(CARD, 'interrupted');
    expect([again.status, again.body.id]).toEqual([201, record?.['resource_id']]);
    expect(await findRecord('interrupted')).toMatchObject({ request: null });
    expect(await decrypt(again.body.id)).toMatchObject({ last_name: 'Quillfeather' });
  });

  test.each([
    [
      'they cannot be encrypted',
      { encrypt: () => Promise.reject(new Error('no key')) },
      'temporarily_unavailable',
      'no key',
    ],
    ['the record cannot be written', { reserveKey: true }, 'internal_error', 'unexpected'],
  ] as const)('are not stored when %s', async (_, faults, code, reason) => {
    const before = await countStored();
    const { answer, log } = await postWith(faults, SEPA);
    expectRefusal(answer, code);
    expect(log).toContain(reason);
    expect(await countStored()).toEqual(before);
  });

  test('are not quoted when they are not as expected', async () => {
    const { id } = (await create(CARD)).body;
    for (const text of ['not JSON: Quillfeather', '{"last_name": "Quillfeather"}']) {
      const failing = decrypt(id, { decrypt: async () => text });
      const error: unknown = await failing.catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(Error);
      expect(Object(error).message).not.toContain('Quill');
      expect(error).not.toHaveProperty('cause');
    }
  });
});
