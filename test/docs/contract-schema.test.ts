import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { type ContractSchema, type JsonSchema, listBreaks } from '../../docs/generate/additions';
import {
  buildContractSchema,
  CONTRACT_FILE,
  contractSchemaText,
  PUBLISHED_FILE,
} from '../../docs/generate/contract-schema';
import { readText } from './pages';

/** Contract over HTTP, as it has been published. */
const published: ContractSchema = JSON.parse(readText(PUBLISHED_FILE));

test(`${CONTRACT_FILE} is what the code generates: else run \`npm run docs\``, () => {
  expect(readText(CONTRACT_FILE)).toBe(contractSchemaText());
});

test('the contract has only been added to since it was published', () => {
  expect(listBreaks(published, buildContractSchema())).toEqual([]);
});

test('a bank team can check each body by its schema', () => {
  const ajv = new Ajv2020({ allErrors: true });
  ajv.addKeyword('version');
  addFormats(ajv);
  ajv.addSchema(published, 'contract');
  const fits = (name: string, body: object) => ajv.validate(`contract#/$defs/${name}`, body);
  const payout_id = '5c1e8a52-93c5-4c0e-9d35-0f0b6f1d7a10';
  for (const name of Object.keys(published.$defs)) expect(fits(name, {})).toBe(false);
  expect(fits('lookUpPayout', { activity: 'lookUpPayout', payout_id, more: 1 })).toBe(true);
  expect(fits('lookUpPayout', { activity: 'cancelPayout', payout_id })).toBe(false);
  expect(fits('lookUpPayout.answer', { outcome: 'not_found' })).toBe(true);
  expect(fits('sendPayout.answer', { outcome: 'sent', bank_reference: 'B-1' })).toBe(true);
  expect(fits('sendPayout.answer', { outcome: 'not_found' })).toBe(false);
  expect(fits('sendPayout.refusal', { code: 'AC04', message: 'Closed.' })).toBe(true);
  expect(fits('sendPayout.refusal', { code: 'A code' })).toBe(false);
});

/** Changes a field's schema, or that of its parent. */
type Edit = (schema: JsonSchema, parent: JsonSchema, field: string) => unknown;

/** Changes one place in a copy of the contract, such as `sendPayout.answer.outcome`. */
function change(path: string, edit: Edit): ContractSchema {
  const copy = structuredClone(published);
  const names = Object.keys(copy.$defs).filter((name) => `${path}.`.startsWith(`${name}.`));
  const name = names.toSorted().at(-1) ?? '';
  let parent = copy.$defs[name] ?? {};
  const fields = path.slice(name.length + 1).split('.');
  const field = fields.pop() ?? '';
  for (const each of fields) parent = parent.properties?.[each] ?? {};
  edit(field === '' ? parent : (parent.properties?.[field] ?? {}), parent, field);
  return copy;
}

const set =
  (keywords: JsonSchema): Edit =>
  (schema) =>
    Object.assign(schema, keywords);
const drop =
  (keyword: keyof JsonSchema): Edit =>
  (schema) =>
    delete schema[keyword];
const add: Edit = (_, parent, field) => {
  parent.properties = { ...parent.properties, [field]: { type: 'string' } };
};
const makeRequired: Edit = (_, parent, field) => parent.required?.push(field);
const addRequired: Edit = (...place) => [add(...place), makeRequired(...place)];
const makeOptional: Edit = (_, parent, field) => {
  parent.required = parent.required?.filter((each) => each !== field) ?? [];
};
const remove: Edit = (...place) => [makeOptional(...place), delete place[1].properties?.[place[2]]];
const allow =
  (value: string): Edit =>
  (schema) =>
    schema.enum?.push(value);

test.each<[path: string, why: string, edit: Edit]>([
  ['sendPayout.purpose', 'is an optional field of an instruction', add],
  ['sendPayout.purpose', 'is a field of an instruction', addRequired],
  ['sendPayout.amount', 'is narrower in an instruction', set({ maximum: 9_000 })],
  ['sendPayout.answer.value_date', 'is an optional field of an answer', add],
  ['lookUpPayout.answer', 'has a new alternative', (schema) => schema.oneOf?.push({})],
  ['sendPayout.answer.bank_reference', 'is optional in an answer', makeOptional],
])('a contract is only added to when %s %s', (path, _, edit) => {
  expect(listBreaks(published, change(path, edit))).toEqual([]);
});

test.each<[path: string, fault: string, edit: Edit]>([
  ['sendPayout.amount', ' was removed', remove],
  ['sendPayout.amount', ' may be missing now', makeOptional],
  ['sendPayout.amount', ': type was "integer", and is "number"', set({ type: 'number' })],
  ['sendPayout.amount', ': maximum was 9007199254740991, and is none', drop('maximum')],
  ['sendPayout.amount', ': minimum was 1, and is 0', set({ minimum: 0 })],
  ['sendPayout.recipient.type', ': "wallet" is new', allow('wallet')],
  ['sendPayout.payout_id', ': format was "uuid", and is none', drop('format')],
  ['sendPayout.answer.value_date', ' is required now', addRequired],
  ['sendPayout.answer.bank_reference', ': maxLength was 200, and is 35', set({ maxLength: 35 })],
  ['sendPayout.answer.bank_reference', ': pattern was none, and is "^B-"', set({ pattern: '^B-' })],
  ['sendPayout.answer.outcome', ': "submitted" is not allowed', set({ enum: ['sent'] })],
  ['lookUpPayout.answer', '.outcome: "not_found" is not allowed', (schema) => schema.oneOf?.pop()],
  [
    'voidPayment.answer',
    '.amount is required now',
    (schema) => schema.oneOf?.at(-1)?.required?.push('amount'),
  ],
])('a contract is broken when %s%s', (path, fault, edit) => {
  expect(listBreaks(published, change(path, edit))).toContain(path + fault);
});

test('a contract is only added to when it has a new activity, and broken when one, an answer or a refusal is removed', () => {
  const {
    cancelPayout,
    'sendRefund.answer': _,
    'openSession.refusal': __,
    ...rest
  } = published.$defs;
  expect(cancelPayout).toBeDefined();
  const $defs = { ...rest, sendMail: { type: 'object' } };
  expect(listBreaks(published, { ...published, $defs })).toEqual([
    ...['openSession.refusal was removed', 'sendRefund.answer was removed'],
    'cancelPayout was removed',
  ]);
});

test('a keyword that nothing compares is a fault', () => {
  const copy = change('sendPayout', set(Object({ additionalProperties: false })));
  expect(() => listBreaks(published, copy)).toThrow('nothing compares additionalProperties');
});
