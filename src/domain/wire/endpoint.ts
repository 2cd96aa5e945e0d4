import type { z } from 'zod';
import type { ErrorCode } from '../errors';
import type { Scope } from '../merchants/api-key';
import { ById } from './fields';

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
  /** Codes in addition to those of every endpoint, of one for crypto, and of one of the sandbox. */
  codes?: readonly ErrorCode[];
}

export function endpoint<const E extends Endpoint>(definition: E): E {
  return definition;
}

type Noun = 'payment' | 'refund' | 'dispute' | 'payout' | 'crypto_payment' | 'crypto_settlement';

interface Read {
  /** Path of the list. */
  path: string;
  scope: Scope;
  schema: z.ZodType;
  /** Words for it. */
  name?: string;
  crypto?: boolean;
  /** Changes that webhooks report. */
  changes?: string;
}

/** Reads a resource with a workflow by its id. */
export function readEndpoint(noun: Noun, definition: Read) {
  const { path, scope, schema, crypto = false, changes = 'every change' } = definition;
  const { name = noun.replace('_', ' ') } = definition;
  const words = noun.split('_').map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`);
  return endpoint({
    method: 'get',
    path: `${path}/{id}`,
    operation: `get${words.join('')}`,
    summary: `Read a ${name}`,
    description: `For reconciliation, not for polling: webhooks report ${changes}.`,
    scope,
    crypto,
    params: ById,
    success: { status: 200, description: `The ${name}.`, schema },
    codes: [`${noun}_not_found`],
  });
}
