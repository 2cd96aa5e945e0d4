import fc from 'fast-check';
import { z } from 'zod';
import { HIDDEN, hide, hidePath } from '../../../connectors/kit/page/hide';

const ID = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const knowledge = { known: new Set([ID, '1000', 'EUR', 'ada-1']), personal: ['lovelace', 'ada'] };

test('values of the contract are shown, and all others are hidden', () => {
  const shown = { reference: ID, amount: 1_000, currency: 'EUR', instant: true, text: null };
  const to = { name: 'Ada Lovelace', iban: 'DE89370400440532013000' };
  const body = { ...shown, to, born: 1815, notes: ['EUR', 'EUR of Ada Lovelace'] };
  expect(hide(body, knowledge)).toEqual({
    ...shown,
    to: { name: HIDDEN, iban: HIDDEN },
    born: HIDDEN,
    notes: ['EUR', HIDDEN],
  });
});

test('states, literals, UUIDs and times are shown as the schema of an answer lists them', () => {
  const schema = z.object({
    state: z.enum(['queued', 'sent']),
    kind: z.literal('transfer'),
    id: z.uuid(),
    at: z.iso.datetime(),
    born: z.iso.date(),
    name: z.string(),
    reason: z.string().nullable(),
    lines: z.array(z.object({ state: z.enum(['queued']) })),
    either: z.union([z.object({ a: z.enum(['yes']) }), z.object({ b: z.string() })]),
  });
  const id = '00000000-6a41-4c65-9a0b-2f64d50cf0aa';
  const shown = { state: 'queued', kind: 'transfer', id, at: '2026-11-26T10:00:00Z' };
  const lines = [{ state: 'queued' }, { state: 'other' }];
  const texts = { born: '1815-12-10', name: 'Grace', reason: 'Grace' };
  const body = { ...shown, ...texts, lines, either: { a: 'yes', b: 'Grace' } };
  expect(hide(body, knowledge, schema)).toEqual({
    ...shown,
    ...{ born: HIDDEN, name: HIDDEN, reason: HIDDEN },
    lines: [{ state: 'queued' }, { state: HIDDEN }],
    either: { a: 'yes', b: HIDDEN },
  });
});

test('nothing is shown by a schema that JSON cannot describe', () => {
  const schema = z.string().transform((text) => text.length);
  expect(hide('Grace', knowledge, schema)).toBe(HIDDEN);
});

test('a known value is hidden if it contains data of the recipient', () => {
  const leaky = { known: new Set(['REF-LOVELACE', 'ada', 'EUR']), personal: ['lovelace', 'ada'] };
  expect(hide(['REF-LOVELACE', 'ada', 'EUR'], leaky)).toEqual([HIDDEN, HIDDEN, 'EUR']);
});

test.each([
  [`https://b.example/v1/by-reference/${ID}?key=secret`, `/v1/by-reference/${ID}`],
  ['https://key:secret@b.example/accounts/DE89370400440532013000', `/accounts/${HIDDEN}`],
  ['https://b.example/names/lovelace', `/names/${HIDDEN}`],
  ['https://b.example/%E0%A4%A/x', `/${HIDDEN}/x`],
])('of the address %s only the path is shown, without values', (url, path) => {
  expect(hidePath(url, knowledge)).toBe(path);
});

test('no unknown text is shown, wherever it is', () => {
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
