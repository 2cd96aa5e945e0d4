import type { IdempotencyRecord } from '../../src/store/idempotency';
import { idealPayment, readReplayed } from '../support/http';
import { useService } from '../support/service';
import { KEYED, type KeyedCreator } from './create-setting';
import { exchange } from './exchange';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';

const service = useService();

describe.each(KEYED)('a key of $name', (creating) => {
  const { path, operation, collection, crowd, forbidden, others, refused } = creating;
  let creator: KeyedCreator;
  const open = async () => {
    creator = await creating.open(service);
  };

  const create = (idempotencyKey: string, change: object = {}) =>
    creator.post(path, { ...creator.body, ...change }, { idempotencyKey });
  const made = () => creator.count(collection);
  const claimOf = (key: string) => {
    const claims = service.collection<IdempotencyRecord>('idempotency');
    return claims.findOne({ account_id: creator.account_id, operation, key });
  };

  describe('of a merchant who has made nothing', () => {
    beforeEach(open);

    test('gives the first answer again, also after a move, and makes nothing more', async () => {
      const first = await create('same');
      const again = await create('same');
      expect(readReplayed(first)).toBeNull();
      expect([again.status, again.text]).toEqual([201, first.text]);
      expect(again.headers.get('Idempotent-Replayed')).toBe('true');
      expect(await made()).toBe(1);
      if (creator.move === undefined) return;
      await creator.move(first.body.id);
      const moved = await creator.get(`${path}/${first.body.id}`);
      expect(moved.text).not.toBe(first.text);
      expect((await create('same')).text).toBe(first.text);
      expect(await made()).toBe(1);
    });

    if (forbidden !== undefined) {
      test('gives it again also where a new one would be refused by now', async () => {
        const first = await create('all');
        await creator.forbid?.();
        expectRefusal(await create('more'), forbidden);
        expect((await create('all')).text).toBe(first.text);
      });
    }

    test.each(others)('is refused with %s, naming the first one', async (_, change) => {
      const first = await create('other');
      const other = await create('other', change);
      expectRefusal(other, 'idempotency_key_reused');
      expect(other.body.error.message).toContain(first.body.id);
      expect((await create('other')).text).toBe(first.text);
      expect(await made()).toBe(1);
    });

    test('is another key than that of another operation', async () => {
      const isRecipient = operation === 'createRecipient';
      const [to, body] = isRecipient
        ? (['/v1/payments', idealPayment()] as const)
        : (['/v1/payout-recipients', bankRecipient()] as const);
      const other = await creator.post(to, body, { idempotencyKey: 'shared' });
      expect(other.status).toBe(201);
      const answer = await create('shared');
      expect([answer.status, readReplayed(answer)]).toEqual([201, null]);
    });

    test(`makes one for ${crowd} calls at once, and one answer`, async () => {
      const answers = await Promise.all(Array.from({ length: crowd }, () => create('crowd')));
      expect(answers.map(({ status }) => status)).toEqual(Array(crowd).fill(201));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      const replayed = answers.filter(({ headers }) => headers.has('Idempotent-Replayed'));
      // All but the first call, which on a busy machine is a repeat itself.
      expect([crowd - 1, crowd]).toContain(replayed.length);
      expect(await made()).toBe(1);
      await creator.expectTakenOnce?.();
    });
  });

  describe('of one merchant', () => {
    beforeAll(open);

    test.each(refused)('is not burnt by a refusal for %s', async (what, change, code) => {
      const key = `again: ${what}`;
      expectRefusal(await create(key, change), code);
      expectRefusal(await create(key, change), code);
      expect(await claimOf(key)).toBeNull();
      const good = await create(key);
      expect([good.status, readReplayed(good)]).toEqual([201, null]);
    });

    const send = (...values: string[]) =>
      exchange(service.url, {
        path,
        headers: [
          ['Authorization', `Bearer ${creator.key}`],
          ['Content-Type', 'application/json'],
          ...values.map((value): [string, string] => ['Idempotency-Key', value]),
        ],
        body: JSON.stringify(creator.body),
      });

    test.each([
      ['not sent', 'idempotency_key_required', []],
      ['empty', 'idempotency_key_required', ['']],
      ['only white space', 'idempotency_key_required', ['   ']],
      ['of 256 characters', 'idempotency_key_invalid', ['k'.repeat(256)]],
      ['with a character that is not ASCII', 'idempotency_key_invalid', ['caf\xe9']],
      ['with a tab inside', 'idempotency_key_invalid', ['a\tb']],
      ['sent twice', 'idempotency_key_invalid', ['a', 'b']],
      ['sent twice with one value', 'idempotency_key_invalid', ['a', 'a']],
      ['sent twice, empty', 'idempotency_key_invalid', ['', '']],
    ] as const)('%s is %s', async (_, code, values) => {
      const before = await made();
      expectRefusal(await send(...values), code);
      expect(await made()).toBe(before);
    });

    test.each([
      ['of 255 characters', 'k'.repeat(255)],
      ['of one character', 'k'],
      ['of every printable ASCII character', '!"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|} ~'],
    ])('%s is a key', async (_, value) => {
      const first = await create(value);
      expect(first.status).toBe(201);
      expect((await create(value)).text).toBe(first.text);
    });
  });
});
