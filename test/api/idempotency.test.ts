import type { IdempotencyRecord } from '../../src/store/idempotency';
import { call } from '../support/http';
import { useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';

const service = useService();

describe.each(CREATES)('a key of $name', (creating) => {
  const { path, operation, collection, crowd, others, refused } = creating;
  let creator: Creator;
  beforeEach(async () => {
    creator = await creating.open(service);
  });

  const create = (idempotencyKey: string, change: object = {}) => {
    const { key, body } = creator;
    return call(service.url, 'POST', path, { key, idempotencyKey, body: { ...body, ...change } });
  };
  const database = () => service.db;
  const made = () =>
    database().collection(collection).countDocuments({ account_id: creator.account_id });
  const claimOf = (key: string) =>
    database()
      .collection<IdempotencyRecord>('idempotency')
      .findOne({ account_id: creator.account_id, operation, key });

  test('gives the first answer again, also after a move, and makes nothing more', async () => {
    const first = await create('same');
    const again = await create('same');
    expect(first.headers.get('Idempotent-Replayed')).toBeNull();
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
    await creator.move(first.body.id);
    const moved = await creator.get(`${path}/${first.body.id}`);
    expect(moved.text).not.toBe(first.text);
    expect((await create('same')).text).toBe(first.text);
    expect(await made()).toBe(1);
  });

  test.each(others)('is refused with %s, naming the first one', async (_, change) => {
    const first = await create('other');
    const other = await create('other', change);
    expectRefusal(other, 'idempotency_key_reused');
    expect(other.body.error.message).toContain(first.body.id);
    expect((await create('other')).text).toBe(first.text);
    expect(await made()).toBe(1);
  });

  test('is another key than that of another operation', async () => {
    const recipient = { key: creator.key, idempotencyKey: 'shared', body: bankRecipient() };
    const { status } = await call(service.url, 'POST', '/v1/payout-recipients', recipient);
    expect(status).toBe(201);
    const answer = await create('shared');
    expect([answer.status, answer.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
  });

  test(`makes one for ${crowd} calls at once, and one answer`, async () => {
    const answers = await Promise.all(Array.from({ length: crowd }, () => create('crowd')));
    expect(answers.map(({ status }) => status)).toEqual(Array(crowd).fill(201));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    const replayed = answers.filter(({ headers }) => headers.has('Idempotent-Replayed'));
    // All but the first call, which on a busy machine is a repeat itself.
    expect([crowd - 1, crowd]).toContain(replayed.length);
    expect(await made()).toBe(1);
    await creator.expectTakenOnce();
  });

  test.each(refused)('is not burnt by a refusal for %s', async (_, change, code) => {
    expectRefusal(await create('again', change), code);
    expectRefusal(await create('again', change), code);
    expect(await claimOf('again')).toBeNull();
    const good = await create('again');
    expect([good.status, good.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
  });
});
