import type { z } from 'zod';
import type { Scope } from '../account/api-key';
import type { ErrorCode } from '../errors';

/** An endpoint of the API; its schemas validate requests and document them. */
export interface Endpoint {
  method: 'get' | 'post' | 'patch' | 'delete';
  path: string;
  /** Also the operation of idempotency keys. */
  operation: string;
  summary: string;
  description: string;
  /** Null if any valid key suffices. */
  scope: Scope | null;
  crypto?: boolean;
  /** Whether it needs an Idempotency-Key. */
  creates?: boolean;
  /** Whether it costs as much as a create. */
  simulates?: boolean;
  /** Fields of the body that are stored byte for byte. */
  raw?: readonly string[];
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodObject;
  success: {
    status: 200 | 201 | 202;
    description: string;
    schema: z.ZodType;
    example?: Record<string, unknown>;
  };
  /** Errors in addition to those of every endpoint. */
  codes: readonly ErrorCode[];
}

export function endpoint<const E extends Endpoint>(definition: E): E {
  return definition;
}
