import type { z } from 'zod';
import type { Scope } from '../account/api-key';
import type { ErrorCode } from '../errors';

/** Its schemas validate requests and document them. */
export interface Endpoint {
  method: 'get' | 'post' | 'patch' | 'delete';
  path: string;
  /** Operation of idempotency keys, too. */
  operation: string;
  summary: string;
  description: string;
  /** Null: any valid key suffices. */
  scope: Scope | null;
  crypto?: boolean;
  /** Refused with a live key, whatever its body. */
  sandboxOnly?: boolean;
  /** Needs an Idempotency-Key. */
  creates?: boolean;
  /** Kind of work of which an account has a share. Absent: a read, or a change of settings. */
  work?: 'create' | 'simulation' | 'delivery';
  /** Stored byte for byte. */
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
  /** Codes in addition to those of every endpoint. */
  codes: readonly ErrorCode[];
}

export function endpoint<const E extends Endpoint>(definition: E): E {
  return definition;
}
