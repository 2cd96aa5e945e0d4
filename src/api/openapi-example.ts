import { z } from 'zod';
import type { Json } from './openapi-parts';

const Schema = z.looseObject({
  examples: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.looseObject({ type: z.unknown().optional() })).default([]),
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  properties: z.record(z.string(), z.looseObject({})).optional(),
  required: z.array(z.string()).default([]),
  items: z.looseObject({}).optional(),
});

/**
 * Builds the example of a JSON Schema from the examples of its fields. A field without one is null
 * if allowed, its first value, false, or a list of one item.
 * @param values fields that differ from the examples of the schema
 * @throws RangeError for a text or a number without an example
 */
export function buildExample(json: Json, components: Json, values: Json = {}): unknown {
  const schema = Schema.parse(json);
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const types = [schema.type, ...schema.anyOf.map(({ type }) => type)].flat();
  if (types.includes('null')) return null;
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/components/schemas/', '');
    return buildExample(Schema.parse(components[name]), components, values);
  }
  if (schema.type === 'boolean') return false;
  if (schema.items !== undefined) return [buildExample(schema.items, components)];
  if (schema.type !== 'object') throw new RangeError(`No example in ${JSON.stringify(json)}`);
  const fields = Object.entries(schema.properties ?? {}).filter(
    ([name]) => schema.required.includes(name) || name in values,
  );
  return Object.fromEntries(
    fields.map(([name, field]) => [name, values[name] ?? buildExample(field, components)]),
  );
}
