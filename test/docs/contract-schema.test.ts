import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { type ContractSchema, type JsonSchema, listBreaks } from '../../docs/generate/additions';
import {
  buildContractSchema,
  CONTRACT_FILE,
  contractSchemaText,
  PUBLISHED_FILE,
} from '../../docs/generate/contract-schema';
import { textOf } from './pages';

/** Contract over HTTP, and what has been published of it. */
const published: ContractSchema = JSON.parse(textOf(PUBLISHED_FILE));
const ID = '5c1e8a52-93c5-4c0e-9d35-0f0b6f1d7a10';

test(`${CONTRACT_FILE} is what the code says: else run \`npm run docs\``, () => {
  expect(textOf(CONTRACT_FILE)).toBe(contractSchemaText());
});

test('the contract has only been added to since it was published', () => {
  expect(listBreaks(published, buildContractSchema())).toEqual([]);
});

describe('a bank team', () => {
  const ajv = new Ajv2020({ allErrors: true });
  ajv.addKeyword('version');
  addFormats(ajv);
  ajv.addSchema(published, 'contract');
  const fits = (name: string, body: object) => ajv.validate(`contract#/$defs/${name}`, body);

  test('can check each body by its schema', () => {
    for (const name of Object.keys(published.$defs)) expect(fits(name, {})).toBe(false);
    expect(fits('lookUpPayout', { activity: 'lookUpPayout', payout_id: ID, more: 1 })).toBe(true);
    expect(fits('lookUpPayout', { activity: 'cancelPayout', payout_id: ID })).toBe(false);
    expect(fits('lookUpPayout.answer', { outcome: 'not_found' })).toBe(true);
    expect(fits('sendPayout.answer', { outcome: 'sent', bank_reference: 'B-1' })).toBe(true);
    expect(fits('sendPayout.answer', { outcome: 'not_found' })).toBe(false);
    expect(fits('sendPayout.refusal', { code: 'AC04', message: 'Closed.' })).toBe(true);
    expect(fits('sendPayout.refusal', { code: 'A code' })).toBe(false);
  });

  test('sees where a refusal is an answer', () => {
    const refusable = Object.keys(published.$defs).filter((name) => name.endsWith('.refusal'));
    expect(refusable.map((name) => name.split('.')[0])).toEqual([
      ...['openSession', 'reversePayment', 'sendRefund', 'lookUpRefund'],
      ...['sendPayout', 'lookUpPayout'],
    ]);
  });
});

/** Changes one schema of a copy of the contract. */
function change(name: string, edit: (schema: JsonSchema) => void): ContractSchema {
  const copy = structuredClone(published);
  const schema = copy.$defs[name];
  if (schema === undefined) throw new Error(`The contract has no ${name}.`);
  edit(schema);
  return copy;
}

/** Gives the schema of a field. */
function getField(schema: JsonSchema, ...path: string[]): JsonSchema {
  const [first, ...rest] = path;
  if (first === undefined) return schema;
  const field = schema.properties?.[first];
  if (field === undefined) throw new Error(`There is no field ${first}.`);
  return getField(field, ...rest);
}

const addField = (schema: JsonSchema, name: string, isRequired = false) => {
  schema.properties = { ...schema.properties, [name]: { type: 'string' } };
  if (isRequired) schema.required = [...(schema.required ?? []), name];
};
const dropField = (schema: JsonSchema, name: string) => {
  delete schema.properties?.[name];
  schema.required = schema.required?.filter((each) => each !== name) ?? [];
};
const makeOptional = (schema: JsonSchema, name: string) => {
  schema.required = schema.required?.filter((each) => each !== name) ?? [];
};

test.each<[string, string, (schema: JsonSchema) => void]>([
  ['an instruction gets an optional field', 'sendPayout', (s) => addField(s, 'purpose')],
  ['an instruction gets a field', 'sendPayout', (s) => addField(s, 'purpose', true)],
  ['a recipient gets a field', 'sendPayout', (s) => addField(getField(s, 'recipient'), 'phone')],
  [
    'a field of an instruction is always there',
    'sendPayout',
    (s) => Object.assign(getField(s, 'reference'), { type: 'string' }),
  ],
  [
    'an instruction has a narrower amount',
    'sendPayout',
    (s) => Object.assign(getField(s, 'amount'), { maximum: 9_000 }),
  ],
  ['an answer gets an optional field', 'sendPayout.answer', (s) => addField(s, 'value_date')],
  [
    'an answer gets an outcome',
    'cancelPayout.answer',
    (s) => getField(s, 'outcome').enum?.push('pending'),
  ],
  [
    'an answer gets an alternative',
    'lookUpPayout.answer',
    (s) => s.oneOf?.push({ type: 'object', properties: {}, required: [] }),
  ],
  [
    'a field of an answer is optional',
    'sendPayout.answer',
    (s) => makeOptional(s, 'bank_reference'),
  ],
  [
    'a longer reference is allowed',
    'sendPayout.answer',
    (s) => Object.assign(getField(s, 'bank_reference'), { maxLength: 500 }),
  ],
])('it is an addition when %s', (_case, name, edit) => {
  expect(listBreaks(published, change(name, edit))).toEqual([]);
});

test('a new activity is an addition', () => {
  const copy = structuredClone(published);
  copy.$defs['sendMail'] = { type: 'object' };
  expect(listBreaks(published, copy)).toEqual([]);
});

test.each<[string, string, (schema: JsonSchema) => void]>([
  ['sendPayout.amount was removed', 'sendPayout', (s) => dropField(s, 'amount')],
  [
    'sendPayout.recipient.iban was removed',
    'sendPayout',
    (s) => dropField(getField(s, 'recipient'), 'iban'),
  ],
  ['sendPayout.amount may be missing now', 'sendPayout', (s) => makeOptional(s, 'amount')],
  [
    'sendPayout.amount: type was "integer", and is "number"',
    'sendPayout',
    (s) => Object.assign(getField(s, 'amount'), { type: 'number' }),
  ],
  [
    'sendPayout.amount: maximum was 9007199254740991, and is none',
    'sendPayout',
    (s) => delete getField(s, 'amount').maximum,
  ],
  [
    'sendPayout.amount: minimum was 1, and is 0',
    'sendPayout',
    (s) => Object.assign(getField(s, 'amount'), { minimum: 0 }),
  ],
  [
    'sendPayout.recipient.type: "wallet" is new',
    'sendPayout',
    (s) => getField(s, 'recipient', 'type').enum?.push('wallet'),
  ],
  [
    'sendPayout.currency: type was "string", and is ["string","null"]',
    'sendPayout',
    (s) => Object.assign(getField(s, 'currency'), { type: ['string', 'null'] }),
  ],
  [
    'sendPayout.reference: type was ["string","null"], and is ["string","null","number"]',
    'sendPayout',
    (s) => Object.assign(getField(s, 'reference'), { type: ['string', 'null', 'number'] }),
  ],
  [
    'sendPayout.method: type was "string", and is "null"',
    'sendPayout',
    (s) => {
      const properties = s.properties ?? {};
      properties['method'] = { anyOf: [{ type: 'string' }, { type: 'null' }] };
    },
  ],
  [
    'sendPayout.payout_id: format was "uuid", and is none',
    'sendPayout',
    (s) => delete getField(s, 'payout_id').format,
  ],
  [
    'sendPayout.answer.bank_reference was removed',
    'sendPayout.answer',
    (s) => dropField(s, 'bank_reference'),
  ],
  [
    'sendPayout.answer.value_date is required now',
    'sendPayout.answer',
    (s) => addField(s, 'value_date', true),
  ],
  [
    'sendPayout.answer.bank_reference: maxLength was 200, and is 35',
    'sendPayout.answer',
    (s) => Object.assign(getField(s, 'bank_reference'), { maxLength: 35 }),
  ],
  [
    'sendPayout.answer.bank_reference: pattern was none, and is "^B-"',
    'sendPayout.answer',
    (s) => Object.assign(getField(s, 'bank_reference'), { pattern: '^B-' }),
  ],
  [
    'sendPayout.answer.outcome: "submitted" is not allowed',
    'sendPayout.answer',
    (s) => Object.assign(getField(s, 'outcome'), { enum: ['sent'] }),
  ],
  [
    'lookUpPayout.answer.outcome: "not_found" is not allowed',
    'lookUpPayout.answer',
    (s) => s.oneOf?.pop(),
  ],
  [
    'voidPayment.answer.amount is required now',
    'voidPayment.answer',
    (s) => s.oneOf?.at(-1)?.required?.push('amount'),
  ],
  [
    'sendPayout.refusal.message: maxLength was 500, and is 100',
    'sendPayout.refusal',
    (s) => Object.assign(getField(s, 'message'), { maxLength: 100 }),
  ],
])('it is named when %s', (words, name, edit) => {
  expect(listBreaks(published, change(name, edit))).toContain(words);
});

test('a removed activity, answer or refusal is named', () => {
  const copy = structuredClone(published);
  for (const name of ['cancelPayout', 'sendRefund.answer', 'openSession.refusal']) {
    delete copy.$defs[name];
  }
  expect(listBreaks(published, copy)).toEqual([
    ...['openSession.refusal was removed', 'sendRefund.answer was removed'],
    'cancelPayout was removed',
  ]);
});

test('a keyword that nothing compares is a fault', () => {
  const copy = change('sendPayout', (s) => Object.assign(s, { additionalProperties: false }));
  expect(() => listBreaks(published, copy)).toThrow('nothing compares additionalProperties');
});
