import type { z } from 'zod';
import type { Scope } from '../api-key';
import type { ErrorCode } from '../errors';

/** An endpoint of the API; its schemas validate a request and document it. */
export interface Endpoint {
  method: 'get' | 'post' | 'delete';
  /** Path with `{name}` for parameters. */
  path: string;
  /** `operationId` of the OpenAPI document, and the operation of idempotency keys. */
  operation: string;
  summary: string;
  description: string;
  /** Permission that the key must have; null where any valid key will do. */
  scope: Scope | null;
  /** Whether crypto must be enabled on the account. */
  crypto?: boolean;
  /** Whether it creates a resource and so needs an Idempotency-Key. */
  creates?: boolean;
  /** Fields of the body that are kept as they were written. */
  raw?: readonly string[];
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodObject;
  success: { status: 200 | 201; description: string; schema: z.ZodType };
  /** Codes beyond those that every endpoint can answer. */
  codes: readonly ErrorCode[];
}

/** Defines an endpoint and keeps the schemas' own types. */
export function endpoint<const E extends Endpoint>(definition: E): E {
  return definition;
}
