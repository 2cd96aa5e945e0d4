import type { z } from 'zod';
import type { AuditFacts } from '../../domain/account/audit-log';
import { validate } from '../../domain/wire/validate';
import { withAuditLine } from '../../service/audited';
import type { CreateRequest } from '../../service/create-once';
import type { Call } from './route';

/** Act on money, as its line in the audit log names it. */
interface MoneyAct {
  act: 'refund.created' | 'payment.cancelled' | 'settlement.created';
  target: string | null;
  facts?: AuditFacts;
}

/** Result of an act; that of one that creates names the resource. */
interface ActResult {
  id?: string;
  isReplayed?: boolean;
}

/** Request of a form, which creates once under the form's key. */
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
 * Does an act and writes its line in the audit log, with the outcome: `done`, `replayed` where an
 * earlier submission of the form did it, the code of the refusal, or `unknown`.
 * @throws what the act throws
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
