import fc from 'fast-check';
import { idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { credit, insertRecipient } from './payout-setting';
import { expectErrorShape } from './refusal';

const service = useService();
const merchant = useAccount(service);

const post = (raw: string, path = '/v1/payments') => merchant.postRaw(path, raw);
const count = (collection: string) => service.collection(collection).countDocuments({});

/**
 * A value and whether the rules of docs/api.md#create-a-payment allow it, said here a second time.
 */
interface Judged {
  value: unknown;
  ok: boolean;
}

const json = fc.jsonValue({ maxDepth: 3 });
const judged = (arbitrary: fc.Arbitrary<unknown>, rule: (value: unknown) => boolean) =>
  arbitrary.map((value): Judged => ({ value, ok: rule(value) }));
const oneOf = (good: unknown[], bad: unknown[]) =>
  fc.oneof(
    { weight: 6, arbitrary: judged(fc.constantFrom(...good), () => true) },
    { weight: 1, arbitrary: judged(fc.constantFrom(...bad), () => false) },
    { weight: 1, arbitrary: judged(json, (value) => good.includes(value)) },
  );
const isText = (max: number) => (value: unknown) =>
  value === null ||
  (typeof value === 'string' &&
    [...value].length <= max &&
    !/\p{Surrogate}/u.test(value) &&
    !value.includes('\0'));
const texts = (max: number) =>
  judged(fc.oneof({ weight: 5, arbitrary: fc.string({ unit: 'binary' }) }, json), isText(max));
const LATIN = "abcxyzABCXYZéÖ0189/?:().,'+- ";
const isMetadata = (value: unknown) =>
  value === null ||
  (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length <= 50);

const url = oneOf(
  ['https://shop.example/', 'https://a.b:8443/x?y=z#f', 'https://xn--bcher-kva.example'],
  ['http://shop.example/', '/x', 'https://u@a.b/', 'javascript:1', 'https://', ''],
);
const currency = oneOf(['EUR'], ['eur', 'USD', 'XXX', null]);
const metadata = judged(
  fc.oneof(json, fc.dictionary(fc.string(), json, { maxKeys: 5 })),
  isMetadata,
);
const fields: Record<string, fc.Arbitrary<Judged>> = {
  amount: fc.oneof(
    { weight: 5, arbitrary: judged(fc.integer({ min: 1, max: 99_999_999_999 }), () => true) },
    judged(json, (v) => Number.isInteger(v) && Number(v) >= 1 && Number(v) <= 99_999_999_999),
    judged(fc.constantFrom(0, -1, 1.5, 100_000_000_000, '1', null), () => false),
  ),
  method: oneOf(['ideal'], ['Ideal', 'cash', '', null]),
  currency,
  country: oneOf(['NL', null], ['nl', 'BE', 'XX', '']),
  success_url: url,
  error_url: url,
  reference: texts(255),
  customer: oneOf(
    [null, {}, { email: 'a@b.nl' }, { first_name: 'Zoë', last_name: null, reference: '1' }],
    [[], 'x', { email: 'x' }, { phone: '1' }, { first_name: 'x'.repeat(101) }, { reference: 1 }],
  ).filter(({ value, ok }) => ok || JSON.stringify(value) !== '{}'),
  metadata,
};
const REQUIRED = ['amount', 'method', 'currency', 'success_url', 'error_url'];

/** A refusal names the fields that were sent: a word that must not leak may come from there. */
const holdsWordOfOurs = (raw: string) => /mongo|temporal|zod|stack|at \/|node_modules/i.test(raw);

/** A body of these fields, one perhaps left out, one perhaps too many; and whether it is valid. */
function bodies(of: Record<string, fc.Arbitrary<Judged>>, required: readonly string[]) {
  return fc
    .record({
      all: fc.record(of),
      extra: rarely(fc.string().filter((name) => !(name in of))),
      leftOut: rarely(fc.constantFrom(...Object.keys(of))),
    })
    .map(({ all, extra, leftOut }) => {
      const kept = Object.entries(all).filter(([name]) => name !== leftOut);
      const members = kept.map(
        ([name, { value }]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
      );
      if (extra !== undefined) members.push(`${JSON.stringify(extra)}:1`);
      const complete = extra === undefined && !required.includes(leftOut ?? '');
      return { raw: `{${members.join()}}`, ok: complete && kept.every(([, { ok }]) => ok) };
    });
}

function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

/** Bodies that are sent at once. */
const CROWD = 5;

/** Sends each body; it is taken exactly when it is valid, and then leaves one document more. */
async function expectJudged(
  { path, collection, runs }: { path: string; collection: string; runs: number },
  requests: fc.Arbitrary<{ raw: string; ok: boolean }>,
): Promise<void> {
  const leakFree = requests.filter(({ raw }) => !holdsWordOfOurs(raw));
  const crowds = fc.array(leakFree, { minLength: CROWD, maxLength: CROWD });
  await fc.assert(
    fc.asyncProperty(crowds, async (crowd) => {
      const before = await count(collection);
      const answers = await Promise.all(crowd.map(({ raw }) => post(raw, path)));
      answers.forEach((answer, i) => {
        const { status, text } = answer;
        const ok = crowd[i]?.ok === true;
        const judged = { ok: status === 201, refused: [400, 404, 422].includes(status) };
        expect({ ...judged, text }).toEqual({ ok, refused: !ok, text });
        if (!ok) expectErrorShape(answer);
      });
      const valid = crowd.filter(({ ok }) => ok).length;
      expect(await count(collection)).toBe(before + valid);
    }),
    { numRuns: runs / CROWD },
  );
}

test('a payment is created exactly when every field satisfies the rules, and never a 5xx', async () => {
  const payments = { path: '/v1/payments', collection: 'payments', runs: 200 };
  await expectJudged(payments, bodies(fields, REQUIRED));
});

test('a refund is created exactly when every field satisfies the rules, and never a 5xx', async () => {
  const { id } = await merchant.settledPayment({ amount: 99_999_999_999 });
  const amount = fc.oneof(
    { weight: 5, arbitrary: judged(fc.integer({ min: 1, max: 500_000_000 }), () => true) },
    judged(
      // Left out or null is all that remains: the next ones would have nothing.
      json.filter((value) => value !== null),
      (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 500_000_000,
    ),
    judged(fc.constantFrom(0, -1, 1.5, 100_000_000_000, 99_999_999_999_999, '1'), () => false),
  );
  const refund = { payment_id: oneOf([id], ['some-id', '', id.toUpperCase(), [id], null]), amount };
  const always = bodies({ ...refund, reason: texts(500) }, ['payment_id']);
  const refunds = { path: '/v1/refunds', collection: 'refunds', runs: 100 };
  await expectJudged(
    refunds,
    always.filter(({ raw }) => raw.includes('"amount":')),
  );
});

test('a payout is created exactly when every field satisfies the rules, and never a 5xx', async () => {
  const owner = { account_id: merchant.account_id };
  const id = await insertRecipient(service, owner, 'sepa_instant');
  const card = await insertRecipient(service, owner, 'card_payout');
  await credit(service, owner, { amount: 1_000_000_000_000 });
  const amount = fc.oneof(
    { weight: 5, arbitrary: judged(fc.integer({ min: 1, max: 500_000_000 }), () => true) },
    judged(json, (v) => Number.isInteger(v) && Number(v) >= 1 && Number(v) <= 500_000_000),
    judged(fc.constantFrom(0, -1, 1.5, 100_000_000_000, '1', null), () => false),
  );
  const named = (ok: boolean, ...names: unknown[]) =>
    judged(fc.constantFrom(...names.map((name) => ({ balance_account: name }))), () => ok);
  const bad = named(false, 'sales', '', '$x', 'a.b', 1, [], {}, false);
  const payout = {
    recipient_id: oneOf([id], [card, 'some-id', '', id.toUpperCase(), [id], null]),
    method: oneOf(['sepa_instant'], ['faster_payments', 'ideal', '', null]),
    amount,
    currency,
    reference: texts(255),
    metadata: fc.oneof({ weight: 6, arbitrary: metadata }, named(true, 'main', null), bad),
  };
  const required = ['recipient_id', 'method', 'amount', 'currency'];
  const payouts = { path: '/v1/payouts', collection: 'payouts', runs: 150 };
  // A file carries the reference of a transfer, in the Latin set of the European Payments Council.
  const latin = fc.string({ unit: fc.constantFrom(...LATIN), maxLength: 140 });
  const reference = fc.oneof(
    { weight: 5, arbitrary: judged(latin, () => true) },
    judged(fc.constantFrom('a_b', 'ж', 'a & b', '#1', 'x'.repeat(141)), () => false),
  );
  const transfer = { ...payout, method: oneOf(['sepa_credit_transfer'], ['']), reference };
  await expectJudged(payouts, fc.oneof(bodies(payout, required), bodies(transfer, required)));
});

test('any other JSON, and any text, is refused as a whole', async () => {
  const before = await count('payments');
  const texts = fc.oneof(fc.json(), fc.string({ unit: 'binary' }), mangled());
  const leakFree = texts.filter((text) => !holdsWordOfOurs(text));
  await fc.assert(
    fc.asyncProperty(fc.array(leakFree, { minLength: CROWD, maxLength: CROWD }), async (crowd) => {
      for (const answer of await Promise.all(crowd.map((text) => post(text)))) {
        expect([400, 415, 422]).toContain(answer.status);
        expectErrorShape(answer);
      }
    }),
    { numRuns: 300 / CROWD },
  );
  expect(await count('payments')).toBe(before);
});

/** A good body with one character of its syntax lost. */
function mangled(): fc.Arbitrary<string> {
  const good = JSON.stringify(idealPayment());
  const places = [...good].flatMap((char, at) => ('{}:'.includes(char) ? [at] : []));
  const structural = places.filter((at) => good[at] !== ':' || good[at - 1] === '"');
  return fc.constantFrom(...structural).map((at) => `${good.slice(0, at)}${good.slice(at + 1)}`);
}
