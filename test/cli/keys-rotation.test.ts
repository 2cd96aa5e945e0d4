import { randomUUID } from 'node:crypto';
import { readKeys } from '../../src/config';
import { followKeys } from '../../src/keys/ring';
import { createSealer, Sealed } from '../../src/keys/seal';
import { endpointOwner } from '../../src/store/endpoints';
import { cardRecipient } from '../api/recipient-bodies';
import { call } from '../support/http';
import { recipientOpener } from '../support/recipient-opener';
import { mongodbUri } from '../support/servers';
import { type Service, startService } from '../support/service';
import { type Outcome, run } from './cli';

let service: Service;
let key: string;

beforeAll(async () => {
  service = await startService({ worker: false });
  ({ key } = await service.account());
});
afterAll(async () => service?.stop());

const create = async (): Promise<string> => {
  const body = cardRecipient({ reference: randomUUID() });
  const answer = await call(service.url, 'POST', '/v1/payout-recipients', { key, body });
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body.id;
};
const cli = (...args: string[]) =>
  run(
    {
      DATA_DIR: 'none',
      MONGODB_URI: mongodbUri(),
      MONGODB_DB: service.database,
      KEYS_FILE: service.keysFile,
    },
    ...args,
  );

/** Recipients, one after the other on three lines, until `work` is done. */
async function creatingWhile(work: Promise<Outcome>): Promise<{ outcome: Outcome; ids: string[] }> {
  const ids: string[] = [];
  let isDone = false;
  const line = async () => {
    while (!isDone) ids.push(await create());
  };
  const done = work.finally(() => {
    isDone = true;
  });
  const [outcome] = await Promise.all([done, line(), line(), line()]);
  return { outcome, ids };
}

test('a rotation beside a service at work leaves nothing behind, and loses nothing', async () => {
  // As a worker that has only ever opened, since before the rotation.
  const worker = createSealer(followKeys(service.keysFile));
  const before = [await create(), await create()];
  const owner = endpointOwner('acct_1', false);
  const sealed = await createSealer(service.keys.seal).seal('whsec_old', owner);
  const place = { account_id: 'acct_1', livemode: false, url: 'https://shop.example/' };
  await service.stores.endpoints.set({ ...place, sealed, now: new Date() });

  const { outcome, ids } = await creatingWhile(cli('keys', 'rotate'));
  expect(outcome).toMatchObject({ exit: 0, stdout: expect.stringMatching(/Remaining: +0\n$/) });
  expect(outcome.stderr).toMatch(/is the current key\nwaiting 1\d s: .*\nrecipients sealed anew: /);
  const { current, keys } = readKeys(service.keysFile).seal;
  expect(Object.keys(keys)).toEqual(['k1', current]);

  const { recipients, endpoints } = service.stores;
  const open = recipientOpener(recipients, worker);
  expect(ids.length).toBeGreaterThan(20);
  for (const id of [...before, ...ids]) {
    const recipient = await recipients.get(id);
    expect(recipient?.kid).toBe(current);
    expect(worker.kidOf(Sealed.parse(recipient?.sealed))).toBe(current);
    expect(await open(id)).toMatchObject({ card_number: '4111111111111111' });
  }
  const secret = (await endpoints.get('acct_1', false))?.secrets[0]?.sealed;
  expect(worker.kidOf(Sealed.parse(secret))).toBe(current);
  expect(await worker.open(Sealed.parse(secret), owner)).toBe('whsec_old');

  const retired = await cli('keys', 'retire', 'k1', '--json');
  expect({ ...retired, stdout: JSON.parse(retired.stdout) }).toEqual({
    exit: 0,
    stderr: '',
    stdout: { retired: 'k1', keys: [current] },
  });
  expect(await open(before[0] ?? '')).toMatchObject({ first_name: 'Ada' });
  expect((await recipients.get(await create()))?.kid).toBe(current);
});
