import fc from 'fast-check';
import { idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectErrorShape } from './refusal';

const service = useService();
const merchant = useAccount(service);

const post = (raw: string) => merchant.postRaw('/v1/payments', raw);

/** A value, and whether docs/api.md#create-a-payment allows it: the rules are written here again. */
interface Judged {
  value: unknown;
  ok: boolean;
}

const json = fc.jsonValue({ maxDepth: 3 });
const judge = (arbitrary: fc.Arbitrary<unknown>, rule: (value: unknown) => boolean) =>
  arbitrary.map((value): Judged => ({ value, ok: rule(value) }));
const pickFrom = (good: unknown[], bad: unknown[]) =>
  fc.oneof(
    { weight: 6, arbitrary: judge(fc.constantFrom(...good), () => true) },
    { weight: 1, arbitrary: judge(fc.constantFrom(...bad), () => false) },
    { weight: 1, arbitrary: judge(json, (value) => good.includes(value)) },
  );
const isText = (value: unknown) =>
  value === null ||
  (typeof value === 'string' &&
    [...value].length <= 255 &&
    !/\p{Surrogate}/u.test(value) &&
    !value.includes('\0'));
const isMetadata = (value: unknown) =>
  value === null ||
  (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length <= 50);
const isAmount = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 99_999_999_999;

const url = pickFrom(
  ['https://shop.example/', 'https://a.b:8443/x?y=z#f', 'https://xn--bcher-kva.example'],
  ['http://shop.example/', '/x', 'https://u@a.b/', 'javascript:1', 'https://', ''],
);
const FIELDS: Record<string, fc.Arbitrary<Judged>> = {
  amount: fc.oneof(
    { weight: 5, arbitrary: judge(fc.integer({ min: 1, max: 99_999_999_999 }), isAmount) },
    judge(json, isAmount),
    judge(fc.constantFrom(0, -1, 1.5, 100_000_000_000, '1', null), isAmount),
  ),
  method: pickFrom(['ideal'], ['Ideal', 'cash', '', null]),
  currency: pickFrom(['EUR'], ['eur', 'USD', 'XXX', null]),
  country: pickFrom(['NL', null], ['nl', 'BE', 'XX', '']),
  success_url: url,
  error_url: url,
  reference: judge(fc.oneof({ weight: 5, arbitrary: fc.string({ unit: 'binary' }) }, json), isText),
  customer: pickFrom(
    [null, {}, { email: 'a@b.nl' }, { first_name: 'Zoë', last_name: null, reference: '1' }],
    [[], 'x', { email: 'x' }, { phone: '1' }, { first_name: 'x'.repeat(101) }, { reference: 1 }],
  ).filter(({ value, ok }) => ok || JSON.stringify(value) !== '{}'),
  metadata: judge(fc.oneof(json, fc.dictionary(fc.string(), json, { maxKeys: 5 })), isMetadata),
};
const REQUIRED = ['amount', 'method', 'currency', 'success_url', 'error_url'];

/** Bodies that are sent at once. */
const CROWD = 5;
const buildCrowds = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.array(arbitrary, { minLength: CROWD, maxLength: CROWD });
const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
/** A refusal names the fields that were sent: a word that must not leak may come from there. */
const mayLeak = (raw: string) => /mongo|temporal|zod|stack|at \/|node_modules/i.test(raw);

/** A body of these fields, one perhaps left out, one perhaps too many; and whether it is valid. */
const bodies = fc
  .record({
    all: fc.record(FIELDS),
    extra: rarely(fc.string().filter((name) => !(name in FIELDS))),
    leftOut: rarely(fc.constantFrom(...Object.keys(FIELDS))),
  })
  .map(({ all, extra, leftOut }) => {
    const fields = Object.entries(all).filter(([name]) => name !== leftOut);
    const members = fields.map(
      ([name, { value }]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
    );
    if (extra !== undefined) members.push(`${JSON.stringify(extra)}:1`);
    const isComplete = extra === undefined && !REQUIRED.includes(leftOut ?? '');
    return { raw: `{${members.join()}}`, ok: isComplete && fields.every(([, { ok }]) => ok) };
  })
  .filter(({ raw }) => !mayLeak(raw));

test('a payment is created exactly when every field satisfies the rules, and never fails', async () => {
  await fc.assert(
    fc.asyncProperty(buildCrowds(bodies), async (crowd) => {
      const before = await merchant.count('payments');
      const answers = await Promise.all(crowd.map(({ raw }) => post(raw)));
      answers.forEach((answer, i) => {
        const { status, text } = answer;
        const ok = crowd[i]?.ok === true;
        const outcome = { ok: status === 201, refused: [400, 404, 422].includes(status) };
        expect({ ...outcome, text }).toEqual({ ok, refused: !ok, text });
        if (!ok) expectErrorShape(answer);
      });
      const valid = crowd.filter(({ ok }) => ok).length;
      expect(await merchant.count('payments')).toBe(before + valid);
    }),
    { numRuns: 200 / CROWD },
  );
});

test('any other JSON, and any text, is refused as a whole', async () => {
  // A good body without one character of its syntax.
  const good = JSON.stringify(idealPayment());
  const places = [...good].flatMap((char, at) => ('{}:'.includes(char) ? [at] : []));
  const structural = places.filter((at) => good[at] !== ':' || good[at - 1] === '"');
  const broken = fc
    .constantFrom(...structural)
    .map((at) => `${good.slice(0, at)}${good.slice(at + 1)}`);
  const texts = fc
    .oneof(fc.json(), fc.string({ unit: 'binary' }), broken)
    .filter((text) => !mayLeak(text));
  const before = await merchant.count('payments');
  await fc.assert(
    fc.asyncProperty(buildCrowds(texts), async (crowd) => {
      for (const answer of await Promise.all(crowd.map((text) => post(text)))) {
        expect([400, 415, 422]).toContain(answer.status);
        expectErrorShape(answer);
      }
    }),
    { numRuns: 300 / CROWD },
  );
  expect(await merchant.count('payments')).toBe(before);
});
