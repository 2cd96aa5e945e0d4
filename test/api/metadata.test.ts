import { readPayloads } from '../support/histories';
import { useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { expectRefusal } from './refusal';

const service = useService();

// A refund has no metadata.
const WITH_METADATA = CREATES.filter(({ resource }) => resource !== 'refund');

describe.each(WITH_METADATA)('the metadata of a $resource', ({ resource, path, open }) => {
  let creator: Creator;
  beforeAll(async () => {
    creator = await open(service);
  });

  const bodyWith = (metadata: string) =>
    JSON.stringify(creator.body).replace(/\}$/, `,"metadata":${metadata}}`);
  const create = (metadata: string, idempotencyKey: string) =>
    creator.postRaw(path, bodyWith(metadata), { idempotencyKey });

  test.each([
    [
      'numbers of any size',
      '{"a":12345678901234567890,"b":1.10,"c":1e400,"d":-0,"e":1E+2,"f":0.0}',
    ],
    ['the order of keys', '{"10":1,"2":2,"1":3,"b":4,"a":5}'],
    ['unicode', '{"€":"日本語 😀 \u202e é é","":" "}'],
    ['escapes as they were written', '{"\\u0061":"\\u00e9\\/\\n\\ud83d\\ude00\\u0000\\ud800"}'],
    ['names that JS and MongoDB know', '{"__proto__":{"x":1},"constructor":{},"toJSON":1,"_id":2}'],
    ['names of database operators', '{"$where":"1","$gt":{"$ne":null},"a.b":1,"$":"$amount"}'],
    ['white space', '{ "a" : [ 1 ,\r\n\t2 ] }'],
    ['nesting', `{"a":${'['.repeat(150)}${']'.repeat(150)}}`],
    ['every kind of value', '{"a":null,"b":true,"c":[],"d":{},"e":"","f":"null"}'],
    ['nothing', '{}'],
  ])('comes back byte for byte from create, read, list and replay: %s', async (name, metadata) => {
    const wanted = `"metadata":${metadata},"`;
    const created = await create(metadata, name);
    const { id } = created.body;
    expect(created.status).toBe(201);
    const again = [await creator.get(`${path}/${id}`), await creator.get(`${path}?limit=1`)];
    for (const { text } of [created, ...again]) expect(text).toContain(wanted);
    expect((await create(metadata, name)).text).toBe(created.text);
    await creator.advance(id);
    expect((await creator.get(`${path}/${id}`)).text).toContain(wanted);
  });

  test.each([undefined, 'null'])('that is %s comes back as an empty object', async (none) => {
    const raw = none === undefined ? JSON.stringify(creator.body) : bodyWith(none);
    const { status, text } = await creator.postRaw(path, raw);
    expect(status).toBe(201);
    expect(text).toContain('"metadata":{},');
  });

  test('may have 50 keys or 8 KiB', async () => {
    const keys = Array.from({ length: 50 }, (_, i) => `"k${i}":${i}`);
    expect((await create(`{${keys.join()}}`, 'fifty')).status).toBe(201);
    const full = `{"a":"${'x'.repeat(8 * 1_024 - 8)}"}`;
    expect(Buffer.byteLength(full)).toBe(8 * 1_024);
    expect((await create(full, 'full')).status).toBe(201);
  });

  test.each([
    ['a list', '[]', 'invalid_request'],
    ['a string', '"{}"', 'invalid_request'],
    ['a number', '1.5', 'invalid_request'],
    ['a boolean', 'true', 'invalid_request'],
    ['51 keys', `{${Array.from({ length: 51 }, (_, i) => `"k${i}":${i}`)}}`, 'invalid_request'],
    ['one byte over 8 KiB', `{"a":"${'x'.repeat(8 * 1_024 - 7)}"}`, 'invalid_request'],
    ['more than 8 KiB in UTF-8', `{"a":"${'é'.repeat(4 * 1_024)}"}`, 'invalid_request'],
    ['nested past 200 levels', `{"a":${'['.repeat(300)}${']'.repeat(300)}}`, 'invalid_json'],
    ['one key with two values', '{"a":1,"a":2}', 'invalid_json'],
  ] as const)('is refused when it is %s', async (name, metadata, code) => {
    const fields = code === 'invalid_request' ? ['metadata'] : undefined;
    expectRefusal(await create(metadata, `bad ${name}`), code, fields);
  });

  test('never reaches Temporal', async () => {
    const { body } = await create('{"secret":"metadata-marker-7f3a"}', 'temporal');
    const { text } = await readPayloads(service.temporal, `${resource}:${body.id}`);
    expect(text).toContain(body.method);
    expect(text).not.toContain('metadata-marker-7f3a');
  });
});
