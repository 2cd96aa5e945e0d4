import type { z } from 'zod';
import type { Scope } from '../api-key';
import type { ErrorCode } from '../errors';

/** One endpoint of the API: what validates a request is also what documents it. */
export interface Endpoint {
  method: 'get' | 'post';
  /** With `{name}` for parameters. */
  path: string;
  /** `operationId` of the OpenAPI document, and the operation of idempotency keys. */
  operation: string;
  summary: string;
  description?: string;
  /** What the key must allow; null where any valid key will do. */
  scope: Scope | null;
  /** Creates a resource: needs an Idempotency-Key. */
  creates?: boolean;
  /** Fields of the body that are kept as they were written. */
  raw?: readonly string[];
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodObject;
  success: { status: 200 | 201; description: string; schema: z.ZodType };
  /** Beyond what every endpoint can answer. */
  codes: readonly ErrorCode[];
}

/** Keeps the schemas' own types. */
export function endpoint<const E extends Endpoint>(definition: E): E {
  return definition;
}

/** `{object: list, data}`. @see spec §1 */
export const LIST = 'list';
