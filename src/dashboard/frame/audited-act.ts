import type { z } from 'zod';
import type { AuditFacts } from '../../domain/account/audit-log';
import { Refusal } from '../../domain/errors';
import { validate } from '../../domain/wire/validate';
import { withAuditLine } from '../../service/audited';
import type { CreateRequest } from '../../service/create-once';
import { redirect } from './form';
import type { Answer, Call } from './route';

/** Codes of refusals after which the act may still be done. */
const OUTCOME_UNKNOWN = ['temporarily_unavailable', 'idempotency_request_in_progress'];

interface MoneyAct<Result> {
  act: 'refund.created' | 'payment.cancelled' | 'settlement.created';
  target: string | null;
  facts?: AuditFacts;
  run: () => Promise<Result>;
  /** Path and text for each outcome. */
  success: (result: Result) => [path: string, text: string];
  unknown: [path: string, text: string];
  refusedPath: string;
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
 * Acts, writes the audit line with its outcome (`done`, `replayed`, the code of the refusal, or
 * `unknown`), and redirects to the page that reports it.
 */
export async function actOnMoney<Result extends { id?: string; isReplayed?: boolean }>(
  call: Call,
  { act, target, facts = {}, run, success, unknown, refusedPath }: MoneyAct<Result>,
): Promise<Answer> {
  const change = { act, ...call.scope, target, after: facts };
  try {
    const result = await withAuditLine(call.audit, change, run, ({ id, isReplayed }) => ({
      id,
      ...(isReplayed === true && { outcome: 'replayed' }),
    }));
    const [path, text] = success(result);
    return redirect(call, path, 'good', text);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const isUnknown = OUTCOME_UNKNOWN.includes(error.code);
    const [path, text] = isUnknown ? unknown : [refusedPath, error.message];
    return redirect(call, path, 'bad', text);
  }
}
