import fc from 'fast-check';
import { z } from 'zod';
import { HIDDEN, hide, hidePath } from '../../../connectors/kit/page/hide';

const ID = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const knowledge = { known: new Set([ID, '1000', 'EUR', 'ada-1']), personal: ['lovelace', 'ada'] };

test('values of the contract are shown, and all others hidden', () => {
  const body = {
    ...{ reference: ID, amount: 1_000, currency: 'EUR', instant: true, text: null },
    ...{ to: { name: 'Ada Lovelace', iban: 'DE89370400440532013000' }, born: 1815 },
    notes: ['EUR', 'EUR of Ada Lovelace'],
  };
  expect(hide(body, knowledge)).toEqual({
    ...{ reference: ID, amount: 1_000, currency: 'EUR', instant: true, text: null },
    ...{ to: { name: HIDDEN, iban: HIDDEN }, born: HIDDEN, notes: ['EUR', HIDDEN] },
  });
});

test('what the schema of an answer lists is shown: states, UUIDs and times', () => {
  const schema = z.object({
    ...{ state: z.enum(['queued', 'sent']), kind: z.literal('transfer'), id: z.uuid() },
    ...{
      at: z.iso.datetime(),
      born: z.iso.date(),
      name: z.string(),
      reason: z.string().nullable(),
    },
    lines: z.array(z.object({ state: z.enum(['queued']) })),
    either: z.union([z.object({ a: z.enum(['yes']) }), z.object({ b: z.string() })]),
  });
  const body = {
    ...{ state: 'queued', kind: 'transfer', id: '00000000-6a41-4c65-9a0b-2f64d50cf0aa' },
    ...{ at: '2026-11-26T10:00:00Z', born: '1815-12-10', name: 'Grace', reason: 'Grace' },
    ...{ lines: [{ state: 'queued' }, { state: 'other' }], either: { a: 'yes', b: 'Grace' } },
  };
  expect(hide(body, knowledge, schema)).toEqual({
    ...body,
    ...{ born: HIDDEN, name: HIDDEN, reason: HIDDEN },
    ...{ lines: [{ state: 'queued' }, { state: HIDDEN }], either: { a: 'yes', b: HIDDEN } },
  });
});

test('a schema that JSON cannot describe lists nothing', () => {
  const schema = z.string().transform((text) => text.length);
  expect(hide('Grace', knowledge, schema)).toBe(HIDDEN);
});

test('a known value that has the recipient’s data in it is hidden', () => {
  const leaky = { known: new Set(['REF-LOVELACE', 'ada', 'EUR']), personal: ['lovelace', 'ada'] };
  expect(hide(['REF-LOVELACE', 'ada', 'EUR'], leaky)).toEqual([HIDDEN, HIDDEN, 'EUR']);
});

test.each([
  [`https://bank.example/v1/transfers/by-reference/${ID}?key=secret`, '/v1/transfers/by-reference'],
  ['https://key:secret@bank.example/accounts/DE89370400440532013000', '/accounts'],
  ['https://bank.example/people/lovelace', '/people'],
  ['https://bank.example/%E0%A4%A/x', ''],
])('of the address %s the path is shown, without values', (url, start) => {
  const shown = hidePath(url, knowledge);
  const end = url.includes(ID) ? ID : HIDDEN;
  expect(shown).toBe(start === '' ? `/${HIDDEN}/x` : `${start}/${end}`);
});

test('no text that is not known is shown, wherever it is', () => {
  const secret = fc.string({ minLength: 3 }).map((text) => `§${text}`);
  const key = fc.oneof(fc.constantFrom('name', 'iban', 'lines'), secret);
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5 },
      secret,
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(tree, (value) => {
      expect(JSON.stringify(hide(value, knowledge))).not.toContain('§');
    }),
  );
});
