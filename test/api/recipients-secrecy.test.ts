import { randomUUID } from 'node:crypto';
import { createEncrypter, DecryptionError, type Encrypter } from '../../src/encryption/encrypter';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { followPairs } from '../../src/encryption/recipient-pairs';
import { everythingStored } from '../cli/cli';
import { call } from '../support/http';
import { recipientDecrypter } from '../support/recipient-decrypter';
import { useAccount, useService } from '../support/service';
import { bankRecipient, cardRecipient, ukRecipient } from './recipient-bodies';
import { expectNotQuoted, expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

afterEach(() => jest.restoreAllMocks());

const PATH = '/v1/payout-recipients';
const create = (
  body: object,
  idempotencyKey: string = randomUUID(),
  url = service.url,
  once = false,
) => call(url, 'POST', PATH, { key: shop.key, body, idempotencyKey, once });
const stored = () => everythingStored(service.db);
const counts = () =>
  Promise.all(
    ['recipients', 'idempotency'].map((name) => service.collection(name).countDocuments()),
  );
const open = (id: string, decrypter: Pick<Encrypter, 'decrypt'> = service.recipientDecrypter) =>
  recipientDecrypter(service.stores.recipients, decrypter)(id);

const OWN = {
  first_name: 'Zebedee',
  last_name: 'Quillfeather',
  date_of_birth: '1971-03-19',
  address_line1: '77 Hidden Lane',
  city: 'Nowhereville',
  postal_code: 'QX9 9ZZ',
  email: 'zebedee@quill.example',
  reference: 'own-ref-7781',
  country: 'GB',
  parent_payment_reference: 'parent-ref-9912',
};
const CARD = cardRecipient({ ...OWN, card_number: '5555555555554444', expiry_year: '2087' });
const SEPA = bankRecipient({ ...OWN, iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' });
const UK = ukRecipient({ ...OWN, sort_code: '601613', account_number: '31926819' });

/** All but what may stand in clear: type, network, last four, a card's month, a country code. */
const SECRETS = [CARD, SEPA, UK].flatMap((body) =>
  Object.entries(body).flatMap(([field, value]) =>
    ['type', 'expiry_month', 'expiry_year', 'country'].includes(field) ? [] : [String(value)],
  ),
);

function expectNoSecret(text: string): void {
  for (const secret of SECRETS) {
    expectNotQuoted(text, secret);
    expect(text).not.toContain(Buffer.from(secret).toString('base64url'));
    expect(text).not.toContain(Buffer.from(secret).toString('base64'));
  }
}

test('nothing that was sent stands in the database in clear, claims included', async () => {
  for (const body of [CARD, SEPA, UK]) {
    const idempotencyKey = randomUUID();
    expect((await create(body, idempotencyKey)).status).toBe(201);
    expectRefusal(await create({ ...body, extra: 1 }, idempotencyKey), 'idempotency_key_reused');
  }
  const text = await stored();
  expect(text).toContain('"sealed":"ey');
  expectNoSecret(text);
});

test('a creation that was cut off keeps it sealed in its claim, and goes on with it', async () => {
  const insert = jest.spyOn(service.stores.recipients, 'insert');
  insert.mockRejectedValueOnce(new Error('cut off'));
  expectRefusal(await create(CARD, 'cut'), 'internal_error');
  const claims = service.collection('idempotency');
  const record = await claims.findOne({ key: 'cut' });
  expect(Object.keys(record?.['request'])).toEqual(['recipient']);
  expect(Object.keys(record?.['request'].recipient).sort()).toEqual([
    'card_expires',
    'has',
    'iban_in_sepa',
    'kid',
    'last4',
    'scheme',
    'sealed',
    'type',
  ]);
  expectNoSecret(await stored());
  const again = await create(CARD, 'cut');
  expect(again.status).toBe(201);
  expect(again.body.id).toBe(record?.['resource_id']);
  expect(await claims.findOne({ key: 'cut' })).toMatchObject({ request: null });
  expect(await open(again.body.id)).toMatchObject({ last_name: 'Quillfeather' });
});

test('a connector opens what was sent, normalised', async () => {
  const sent = { ...SEPA, iban: 'de89 3704 0044 0532 0130 00', last4: '3000' };
  const { id } = (await create(sent)).body;
  expect(await open(id)).toEqual({
    ...SEPA,
    card_number: null,
    expiry_month: null,
    expiry_year: null,
    sort_code: null,
    account_number: null,
  });
  await expect(open(randomUUID())).rejects.toThrow('no such recipient');
});

test('the keys of the API decrypt no recipient', async () => {
  const { id } = (await create(SEPA)).body;
  const { keys, keysDir } = service;
  await expect(open(id, createEncrypter(keys.seal))).rejects.toThrow(DecryptionError);
  const publicKeys = createEncrypter(followPairs(keysDir, 'sandbox', 'public'));
  await expect(open(id, publicKeys)).rejects.toThrow(DecryptionError);
  const live = createDetailsDecrypter(keysDir, 'live');
  await expect(open(id, live)).rejects.toThrow(DecryptionError);
});

test('ciphertexts that were swapped open for neither', async () => {
  const first = (await create(CARD)).body.id;
  const second = (await create(UK)).body.id;
  const recipients = service.collection<{ _id: string }>('recipients');
  const [a, b] = [
    await recipients.findOne({ _id: first }),
    await recipients.findOne({ _id: second }),
  ];
  await recipients.updateOne({ _id: first }, { $set: { sealed: Object(b).sealed } });
  await recipients.updateOne({ _id: second }, { $set: { sealed: Object(a).sealed } });
  await expect(open(first)).rejects.toThrow(DecryptionError);
  await expect(open(second)).rejects.toThrow(DecryptionError);
});

test('details that are not what was expected are not quoted', async () => {
  const { id } = (await create(CARD)).body;
  for (const text of ['not JSON: Quillfeather', '{"last_name": "Quillfeather"}']) {
    const error: unknown = await open(id, { decrypt: async () => text }).catch(
      (cause: unknown) => cause,
    );
    expect(error).toBeInstanceOf(Error);
    expect(Object(error).message).not.toContain('Quill');
    expect(error).not.toHaveProperty('cause');
  }
});

describe('with every log line and every field of an error on show', () => {
  const watched = (run: (url: string) => Promise<void>, encrypt?: Encrypter['encrypt']) => {
    const { sandbox, live } = service.recipientEncrypters;
    const watchedSandbox = { ...sandbox, encrypt: encrypt ?? sandbox.encrypt };
    return service.withApp({ recipientEncrypters: { live, sandbox: watchedSandbox } }, run);
  };

  test('refusals and successes log nothing of the body', async () => {
    const log = await watched(async (url) => {
      expect((await create(CARD, randomUUID(), url)).status).toBe(201);
      const refused = await create({ ...CARD, iban: 'DE89370400440532013000' }, randomUUID(), url);
      expectRefusal(refused, 'invalid_request', ['iban']);
      expectNoSecret(refused.text);
    });
    expect(log).toContain('answered');
    expectNoSecret(log);
  });

  test('without a key to seal with, nothing is created and nothing leaks', async () => {
    const seal = async () => {
      throw new Error('no key');
    };
    const log = await watched(async (url) => {
      const before = await counts();
      const answer = await create(CARD, 'no key', url, true);
      expectRefusal(answer, 'temporarily_unavailable');
      expectNoSecret(answer.text);
      expect(await counts()).toEqual(before);
    }, seal);
    expect(log).toContain('no key');
    expectNoSecret(log);
  });

  test('an error that nobody expected carries nothing of it', async () => {
    const log = await watched(async (url) => {
      const { recipients, idempotency } = service.stores;
      jest.spyOn(recipients, 'insert').mockRejectedValueOnce(new Error('unexpected'));
      expectRefusal(await create(CARD, randomUUID(), url), 'internal_error');
      jest.spyOn(idempotency, 'reserveKey').mockRejectedValueOnce(new Error('unexpected'));
      expectRefusal(await create(SEPA, randomUUID(), url), 'internal_error');
    });
    expect(log).toContain('unexpected');
    expectNoSecret(log);
  });
});
