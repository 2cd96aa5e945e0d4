import type { z } from 'zod';
import type { AuditFacts } from '../../domain/account/audit-log';
import { validate } from '../../domain/wire/validate';
import { withAuditLine } from '../../service/audited';
import type { CreateRequest } from '../../service/create-once';
import type { Call } from './route';

interface MoneyAct {
  act: 'refund.created' | 'payment.cancelled' | 'settlement.created';
  target: string | null;
  facts?: AuditFacts;
}

interface ActResult {
  id?: string;
  isReplayed?: boolean;
}

/** Builds a request that creates once under the form key. */
export function buildCreateRequest<S extends z.ZodType>(
  { scope: caller, requestId }: Call,
  idempotencyKey: string,
  schema: S,
  fields: object,
): CreateRequest<z.output<S>> {
  const canonical = JSON.stringify(fields);
  return {
    caller,
    idempotencyKey,
    canonical,
    requestId,
    parseBody: () => validate(schema, fields),
  };
}

/**
 * Acts and writes the audit line with its outcome: `done`, `replayed`, the code of the refusal, or
 * `unknown`.
 */
export function auditOutcome<Result extends ActResult>(
  { scope, audit }: Call,
  { act, target, facts = {} }: MoneyAct,
  run: () => Promise<Result>,
): Promise<Result> {
  const change = { act, ...scope, target, after: facts };
  return withAuditLine(audit, change, run, ({ id, isReplayed }) => ({
    id,
    ...(isReplayed === true && { outcome: 'replayed' }),
  }));
}
