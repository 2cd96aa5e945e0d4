import { z } from 'zod';
import { ACTIVITIES, Refusal } from '../../connectors/contract/schemas';
import { CONTRACT_VERSION } from '../../src/domain/banks/capabilities';
import type { ContractSchema, JsonSchema } from './additions';

/** Formats whose pattern says nothing more. */
const NAMED = new Set(['uuid', 'date-time']);

/** File of the current contract. The last published one lies next to it. */
export const CONTRACT_FILE = `connectors/contract/schema/v${CONTRACT_VERSION}.json`;
export const PUBLISHED_FILE = 'connectors/contract/schema/published.json';

/**
 * Builds the JSON Schema of every instruction and answer over HTTP.
 * @see docs/connectors.md#instructions-over-http
 */
export function buildContractSchema(): ContractSchema {
  const schemas = Object.entries(ACTIVITIES).flatMap(
    ([name, { instruction, answer, isRefusable }]): [string, z.ZodType][] => [
      [name, instruction],
      [`${name}.answer`, answer],
      ...(isRefusable ? [[`${name}.refusal`, Refusal] satisfies [string, z.ZodType]] : []),
    ],
  );
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Instructions over HTTP',
    version: CONTRACT_VERSION,
    $defs: Object.fromEntries(schemas.map(([name, schema]) => [name, convert(schema)])),
  };
}

export function contractSchemaText(): string {
  return `${JSON.stringify(buildContractSchema(), null, 2)}\n`;
}

function convert(schema: z.ZodType): JsonSchema {
  const { $schema, ...converted } = z.toJSONSchema(schema, {
    // Without `additionalProperties: false`: both sides ignore what they do not know.
    io: 'input',
    override: ({ jsonSchema }) => {
      if (NAMED.has(jsonSchema.format ?? '')) delete jsonSchema.pattern;
    },
  });
  return converted as JsonSchema;
}
