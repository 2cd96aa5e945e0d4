import { randomUUID } from 'node:crypto';
import { createEncrypter, DecryptionError, type Encrypter } from '../../src/encryption/encrypter';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { followPairs } from '../../src/encryption/recipient-pairs';
import { call } from '../support/http';
import { recipientDecrypter } from '../support/recipient-decrypter';
import { useAccount, useService } from '../support/service';
import { bankRecipient, cardRecipient, ukRecipient } from './recipient-bodies';
import { expectNotQuoted, expectRefusal } from './refusal';

const PATH = '/v1/payout-recipients';
const TURKISH = 'TR330006100519786457841326';

const service = useService();
const shop = useAccount(service);

const create = (body: object, idempotencyKey: string = randomUUID()) =>
  shop.post(PATH, body, { idempotencyKey });
const countStored = () => Promise.all([shop.count('recipients'), shop.count('idempotency')]);
const long = (length: number) => 'x'.repeat(length);

describe('a recipient', () => {
  test.each([
    ['a card', cardRecipient(), 'card', 'visa', '1111'],
    ['an account in the SEPA area', bankRecipient(), 'bank_account', null, '4300'],
    ['an account in the United Kingdom', ukRecipient(), 'bank_account', null, '6819'],
  ])('that is %s is answered without its details', async (_, body, type, scheme, last4) => {
    const { status, body: answer } = await create(body);
    expect([status, answer]).toEqual([
      201,
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        object: 'payout_recipient',
        type,
        scheme,
        last4,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    ]);
  });

  test.each([
    ['of another network', cardRecipient({ card_number: '5555555555554444', last4: '4444' })],
    ['of no known network', cardRecipient({ card_number: '6011111111111117', scheme: null })],
    ['with an IBAN as people write it', bankRecipient({ iban: 'nl91 abna 0417 1643 00' })],
    ['outside the SEPA area with its BIC', bankRecipient({ iban: TURKISH, bic: 'AKBKTRIS' })],
    ['with both kinds of account number', bankRecipient({ ...ukRecipient(), last4: '4300' })],
    ['with an account but no address', bankRecipient({ address_line1: null, city: null })],
    ['with a card but no address', cardRecipient({ address_line1: undefined, postal_code: null })],
    ['with an account and a birth date', ukRecipient({ date_of_birth: '1912-06-23' })],
    [
      'with null for every optional field',
      ukRecipient({
        ...{ card_number: null, expiry_month: null, expiry_year: null, date_of_birth: null },
        ...{ iban: null, bic: null, address_line1: null, city: null, postal_code: null },
        ...{ last4: null, scheme: null, country: null, email: null, reference: null },
        parent_payment_reference: null,
      }),
    ],
    [
      'with every field at its longest',
      cardRecipient({
        ...{ first_name: long(100), last_name: long(100), address_line1: long(200) },
        ...{ city: long(100), postal_code: long(20), reference: long(255), country: 'GB' },
        ...{ parent_payment_reference: long(255), email: 'ada@example.com', last4: '1111' },
        scheme: 'visa',
      }),
    ],
  ])('%s is accepted', async (_, body) => {
    const answer = await create(body);
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 201 });
  });

  type Case = [what: string, body: object, fields: string[]];
  const listCases =
    (build: (changes: Record<string, unknown>) => object) =>
    (field: string, ...values: unknown[]): Case[] =>
      values.map((value) => [field, build({ [field]: value }), [field]]);
  const card = listCases(cardRecipient);
  const bank = listCases(bankRecipient);
  const uk = listCases(ukRecipient);

  test.each<Case>([
    ...card('type', undefined, null, 'iban', 'CARD', 5),
    ...card('first_name', undefined, null, '', '  ', long(101), 5, 'a\0b'),
    ...card('last_name', undefined, null, '', '\t', long(101), {}),
    ...card('card_number', undefined, null, '', '4111111111111112', long(16), 4111),
    ...card('expiry_month', undefined, null, '', '0', '00', '13', '1', '012', 12),
    ...card('expiry_year', undefined, null, '', '99', '20999', 'MMXX', 2099),
    ...card('date_of_birth', undefined, null, '', '2023-02-30', '10-12-1985', 1985, '2999-01-01'),
    ...card('iban', 'NL91ABNA0417164300', 'not one'),
    ...card('bic', 'ABNANL2A'),
    ...card('sort_code', '601613'),
    ...card('account_number', '31926819'),
    ...card('scheme', 'mastercard', 'maestro', 'VISA', ''),
    ...card('last4', '1112', '111', '11111', '', 1111),
    ...card('country', 'gb', 'UK', 'GBR', ''),
    ...card('email', 'ada', '', `${long(250)}@example.com`),
    ...card('address_line1', '', ' ', long(201), 1),
    ...card('city', '', long(101)),
    ...card('postal_code', '', long(21)),
    ...card('reference', long(256), 5),
    ...card('parent_payment_reference', long(256), 5),
    ...card('token', 'tok_1'),
    ...bank('iban', '', 'NL92ABNA0417164300', 5),
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
    ['half an account and an IBAN', bankRecipient({ sort_code: '601613' }), ['account_number']],
    ['a foreign IBAN without a BIC', bankRecipient({ iban: TURKISH }), ['bic']],
    ['no account', bankRecipient({ iban: null }), ['iban', 'sort_code', 'account_number']],
    ['an expired card', cardRecipient({ expiry_year: '2001' }), ['expiry_month', 'expiry_year']],
    [
      'many faults of a card',
      cardRecipient({ first_name: ' ', expiry_month: undefined, date_of_birth: null, extra: 1 }),
      ['first_name', 'expiry_month', 'date_of_birth', 'extra'],
    ],
    [
      'many faults of an account',
      bankRecipient({ iban: TURKISH, last4: '0000', scheme: 'visa', sort_code: '1' }),
      ['bic', 'last4', 'scheme', 'sort_code', 'account_number'],
    ],
  ])('is refused by its fields, whose values are not quoted: %s (%j)', async (_, body, fields) => {
    const before = await countStored();
    const answer = await create(body);
    expectRefusal(answer, 'invalid_request', fields);
    for (const value of fields.map((field) => Object(body)[field])) {
      // A short text can be in the words of a refusal by chance.
      const isLong = typeof value === 'string' && value.length > 4 && value !== 'maestro';
      if (isLong) expectNotQuoted(answer.text, value);
    }
    expect(await countStored()).toEqual(before);
  });

  test('belongs to one account and environment, and so does its idempotency key', async () => {
    const key = { idempotencyKey: 'shared' };
    const owners = [shop, await service.withKey(shop, true), await service.account()];
    const ids: string[] = [];
    for (const owner of owners) {
      const { status, body } = await owner.post(PATH, cardRecipient(), key);
      expect(status).toBe(201);
      ids.push(body.id);
    }
    const found = await Promise.all(
      [...ids, ids[0] ?? ''].map((id, n) =>
        service.stores.recipients.find(id, shop.account_id, n === 3),
      ),
    );
    expect(found.map((each) => each?._id)).toEqual([ids[0], undefined, undefined, undefined]);
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
    const redacted = { sealed: null, kid: null, has: [], card_expires: null };
    const visible = { type: 'card', scheme: 'visa', last4: '1111' };
    expect(stored).toMatchObject({ ...visible, ...redacted });
    expect((await remove(id)).body).toEqual(shown);
    expect(await service.stores.recipients.get(id)).toEqual(stored);
    const { account_id } = owner;
    const log = await service.stores.auditLog.list({ account_id, livemode: false, limit: 10 });
    expect(log).toMatchObject([
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
    expect((await post()).body).toEqual(created);
  });

  test('that is deleted also leaves its idempotency record, which does not write it again', async () => {
    const { id } = (await create(cardRecipient(), 'recorded')).body;
    const records = service.collection('idempotency');
    const { type, scheme, last4, sealed, kid } = Object(await service.stores.recipients.get(id));
    const facts = { type, scheme, last4, has: [], card_expires: null, iban_in_sepa: null };
    const open = { request: { recipient: { ...facts, sealed, kid } }, body: null, status: null };
    await records.updateOne({ resource_id: id }, { $set: open });
    expect((await shop.delete(`${PATH}/${id}`)).status).toBe(200);
    expect(await records.findOne({ resource_id: id })).toMatchObject({ request: null });
    const again = (await create(cardRecipient(), 'recorded')).body;
    expect(again).toMatchObject({ id, deleted: true });
    expect(await service.stores.recipients.get(id)).toMatchObject({ sealed: null });
  });
});

describe('the details of a recipient', () => {
  const OWN = {
    ...{ first_name: 'Zebedee', last_name: 'Quillfeather', date_of_birth: '1971-03-19' },
    ...{ address_line1: '77 Hidden Lane', city: 'Nowhereville', postal_code: 'QX9 9ZZ' },
    ...{ email: 'zebedee@quill.example', reference: 'own-ref-7781', country: 'GB' },
    parent_payment_reference: 'parent-ref-9912',
  };
  const CARD = cardRecipient({ ...OWN, card_number: '5555555555554444', expiry_year: '2087' });
  const SEPA = bankRecipient({ ...OWN, iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' });
  const UK = ukRecipient({ ...OWN, sort_code: '601613', account_number: '31926819' });
  /** Fields that are stored as plain text. */
  const PLAIN = ['type', 'expiry_month', 'expiry_year', 'country'];

  const decrypt = (id: string, by: Pick<Encrypter, 'decrypt'> = service.recipientDecrypter) =>
    recipientDecrypter(service.stores.recipients, by)(id);

  function expectNoSecret(text: string): void {
    for (const [field, value] of [CARD, SEPA, UK].flatMap((body) => Object.entries(body))) {
      if (PLAIN.includes(field)) continue;
      expectNotQuoted(text, String(value));
      for (const encoding of ['base64', 'base64url'] as const) {
        expect(text).not.toContain(Buffer.from(String(value)).toString(encoding));
      }
    }
  }

  /** Reads every document of the account, in any collection. */
  async function readStored(): Promise<string> {
    const collections = await service.db.collections();
    const documents = await Promise.all(collections.map((each) => each.find().toArray()));
    const texts = documents.flat().map((document) => JSON.stringify(document));
    return texts.filter((text) => text.includes(shop.account_id)).join();
  }

  /** Serves the API with a log of everything; some parts of it may fail. */
  async function withFaults(
    faults: { encrypt?: Encrypter['encrypt']; insert?: true; reserveKey?: true },
    run: (
      post: (body: object, idempotencyKey?: string) => ReturnType<typeof call>,
    ) => Promise<void>,
  ): Promise<string> {
    const { recipientEncrypters, stores } = service;
    const { encrypt = recipientEncrypters.sandbox.encrypt } = faults;
    const fail = () => Promise.reject(new Error('unexpected'));
    const recipients = { ...stores.recipients, ...(faults.insert && { insert: fail }) };
    const idempotency = { ...stores.idempotency, ...(faults.reserveKey && { reserveKey: fail }) };
    const parts = {
      recipientEncrypters: {
        ...recipientEncrypters,
        sandbox: { ...recipientEncrypters.sandbox, encrypt },
      },
      stores: { ...stores, recipients, idempotency },
    };
    return await service.withApp(parts, async (url) => {
      const { key } = shop;
      await run((body, idempotencyKey = randomUUID()) =>
        call(url, 'POST', PATH, { key, body, idempotencyKey, once: true }),
      );
    });
  }

  test('are stored and logged nowhere as plain text', async () => {
    const log = await withFaults({}, async (post) => {
      for (const body of [CARD, SEPA, UK]) {
        const key = randomUUID();
        expect((await post(body, key)).status).toBe(201);
        expectRefusal(await post({ ...body, extra: 1 }, key), 'idempotency_key_reused');
      }
      const refused = await post({ ...CARD, iban: 'DE89370400440532013000' });
      expectRefusal(refused, 'invalid_request', ['iban']);
      expectNoSecret(refused.text);
    });
    expect(log).toContain('answered');
    expectNoSecret(log);
    const stored = await readStored();
    expect(stored).toMatch(/"sealed":"ey/);
    expectNoSecret(stored);
  });

  test('are encrypted in the record of a create that was interrupted, and a repeat completes it', async () => {
    const log = await withFaults({ insert: true }, async (post) => {
      expectRefusal(await post(CARD, 'interrupted'), 'internal_error');
    });
    expect(log).toContain('unexpected');
    expectNoSecret(log);
    const findRecord = () =>
      service
        .collection('idempotency')
        .findOne({ account_id: shop.account_id, key: 'interrupted' });
    const record = await findRecord();
    expect(Object.keys(record?.['request'])).toEqual(['recipient']);
    expect(Object.keys(record?.['request'].recipient).sort()).toEqual([
      ...['card_expires', 'has', 'iban_in_sepa', 'kid', 'last4', 'scheme', 'sealed', 'type'],
    ]);
    expectNoSecret(await readStored());
    const again = await create(CARD, 'interrupted');
    expect([again.status, again.body.id]).toEqual([201, record?.['resource_id']]);
    expect(await findRecord()).toMatchObject({ request: null });
    expect(await decrypt(again.body.id)).toMatchObject({ last_name: 'Quillfeather' });
  });

  test('are not stored when they cannot be encrypted, or the record cannot be written', async () => {
    const encrypt = () => Promise.reject(new Error('no key'));
    const before = await countStored();
    const log = await withFaults({ encrypt }, async (post) => {
      const answer = await post(CARD);
      expectRefusal(answer, 'temporarily_unavailable');
      expectNoSecret(answer.text);
    });
    expect(log).toContain('no key');
    expectNoSecret(log);
    const other = await withFaults({ reserveKey: true }, async (post) => {
      expectRefusal(await post(SEPA), 'internal_error');
    });
    expect(other).toContain('unexpected');
    expectNoSecret(other);
    expect(await countStored()).toEqual(before);
  });

  test('are decrypted by the connector alone, in one form', async () => {
    const sent = { ...SEPA, iban: 'de89 3704 0044 0532 0130 00', last4: '3000' };
    const { id } = (await create(sent)).body;
    expect(await decrypt(id)).toEqual({
      ...SEPA,
      ...{ card_number: null, expiry_month: null, expiry_year: null },
      ...{ sort_code: null, account_number: null },
    });
    await expect(decrypt(randomUUID())).rejects.toThrow('no such recipient');
    const { keys, keysDir } = service;
    for (const decrypter of [
      createEncrypter(keys.seal),
      createEncrypter(followPairs(keysDir, 'sandbox', 'public')),
      createDetailsDecrypter(keysDir, 'live'),
    ]) {
      await expect(decrypt(id, decrypter)).rejects.toThrow(DecryptionError);
    }
  });

  test('cannot be decrypted once they are moved to another recipient', async () => {
    const ids = [(await create(CARD)).body.id, (await create(UK)).body.id];
    const recipients = service.collection<{ _id: string }>('recipients');
    const [first, second] = await Promise.all(ids.map((_id) => recipients.findOne({ _id })));
    for (const [_id, { sealed }] of [
      [ids[0], Object(second)],
      [ids[1], Object(first)],
    ]) {
      await recipients.updateOne({ _id }, { $set: { sealed } });
      await expect(decrypt(_id)).rejects.toThrow(DecryptionError);
    }
  });

  test('are not quoted when they are not as expected', async () => {
    const { id } = (await create(CARD)).body;
    for (const text of ['not JSON: Quillfeather', '{"last_name": "Quillfeather"}']) {
      const error: unknown = await decrypt(id, { decrypt: async () => text }).catch(
        (cause: unknown) => cause,
      );
      expect(error).toBeInstanceOf(Error);
      expect(Object(error).message).not.toContain('Quill');
      expect(error).not.toHaveProperty('cause');
    }
  });
});
