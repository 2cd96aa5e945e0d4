import { randomUUID } from 'node:crypto';
import { createEncrypter, Encrypted } from '../../src/encryption/encrypter';
import { readPairs } from '../../src/encryption/recipient-key-files';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { followKeyFile, readKeys } from '../../src/encryption/service-keys';
import { endpointOwner } from '../../src/store/endpoints';
import { cardRecipient } from '../api/recipient-bodies';
import { recipientDecrypter } from '../support/recipient-decrypter';
import { mongodbUri } from '../support/servers';
import { useAccount, useService } from '../support/service';
import { commandsIn, type Outcome } from './cli';

// Of its own: the rotations replace the keys of the product.
const service = useService({ worker: false });
const merchant = useAccount(service);

const create = async (): Promise<string> => {
  const body = cardRecipient({ reference: randomUUID() });
  const answer = await merchant.post('/v1/payout-recipients', body);
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body.id;
};
const cli = (...args: string[]) =>
  commandsIn({
    DATA_DIR: 'none',
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: service.database,
    KEYS_FILE: service.keysFile,
    KEYS_DIR: service.keysDir,
  }).cli(...args);

const LINES = 3;

/** Recipients, one after the other on each line, until `work` is done. */
async function creatingWhile(work: Promise<Outcome>): Promise<{ outcome: Outcome; ids: string[] }> {
  const ids: string[] = [];
  let isDone = false;
  const line = async () => {
    while (!isDone) ids.push(await create());
  };
  const done = work.finally(() => {
    isDone = true;
  });
  const [outcome] = await Promise.all([done, ...Array.from({ length: LINES }, line)]);
  return { outcome, ids };
}

test('rotations next to a running service encrypt every value again and lose none', async () => {
  // As a worker and a bank that have only decrypted since before the rotations.
  const worker = createEncrypter(followKeyFile(service.keysFile).seal);
  const bank = createDetailsDecrypter(service.keysDir, 'sandbox');
  const before = [await create(), await create()];
  const owner = endpointOwner('acct_1', false);
  const sealed = await createEncrypter(service.keys.seal).encrypt('whsec_old', owner);
  const place = { account_id: 'acct_1', livemode: false, url: 'https://shop.example/' };
  await service.stores.endpoints.set({ ...place, sealed, now: new Date() });
  const { recipients, endpoints } = service.stores;
  const first = (await recipients.get(before[0] ?? ''))?.kid ?? '';

  const ring = ['--ring', 'recipients.sandbox'];
  const { outcome, ids } = await creatingWhile(cli('keys', 'rotate', ...ring));
  expect(outcome).toMatchObject({ exit: 0, stdout: expect.stringMatching(/Remaining: +0\n$/) });
  // A busy machine may have waited for long enough before.
  expect(outcome.stderr).toMatch(
    /is the current key\n(waiting \d+ s: .*\n)?recipients re-encrypted: /,
  );
  const { current, keys } = readPairs(service.keysDir, 'sandbox');
  expect(Object.keys(keys)).toEqual([first, current]);

  const open = recipientDecrypter(recipients, bank);
  expect(ids.length).toBeGreaterThanOrEqual(LINES);
  for (const id of [...before, ...ids]) {
    const recipient = await recipients.get(id);
    expect(recipient?.kid).toBe(current);
    expect(worker.getKid(Encrypted.parse(recipient?.sealed))).toBe(current);
    expect(await open(id)).toMatchObject({ card_number: '4111111111111111' });
  }

  const retired = await cli('keys', 'retire', first, '--json');
  expect({ ...retired, stdout: JSON.parse(retired.stdout) }).toEqual({
    exit: 0,
    stderr: '',
    stdout: { retired: first, keys: [current] },
  });
  expect(await open(before[0] ?? '')).toMatchObject({ first_name: 'Ada' });
  expect((await recipients.get(await create()))?.kid).toBe(current);

  expect(await cli('keys', 'rotate')).toMatchObject({ exit: 0 });
  const secret = (await endpoints.get('acct_1', false))?.secrets[0]?.sealed;
  expect(worker.getKid(Encrypted.parse(secret))).toBe(readKeys(service.keysFile).seal.current);
  expect(await worker.decrypt(Encrypted.parse(secret), owner)).toBe('whsec_old');
});
