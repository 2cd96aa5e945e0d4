import { ACT_WRITERS, AUDIT_WRITERS, type AuditWriter } from '../../../domain/account/audit-log';
import { isSameOperator } from '../../../domain/account/operator';
import type { AuditPublicKeys } from '../../../encryption/audit-keys';
import { isSignedBy } from '../../../encryption/audit-signature';
import type { Actor, ChainedLine } from '../../../store/audit';
import type { OperatorDocument } from '../../../store/operators';

export interface Signers {
  operators: readonly Pick<OperatorDocument, 'name' | 'public_key' | 'revoked_at'>[];
  processes: AuditPublicKeys;
}

/** Whether a line has the signature of who may write it. */
export type IsSigned = (line: ChainedLine) => Promise<boolean>;

/** @param listSigners is called again for a line whose key may be newer */
export async function createSignatureCheck(listSigners: () => Promise<Signers>): Promise<IsSigned> {
  let signers = await listSigners();
  return async (line) => {
    if (isSigned(line, signers)) return true;
    signers = await listSigners();
    return isSigned(line, signers);
  };
}

/** Actors whose lines a process writes; the command line also those of acts that it rebuilds. */
const ACTORS: Readonly<Record<AuditWriter, readonly Actor['via'][]>> = {
  api: ['api', 'dashboard'],
  worker: ['service', 'workflow', 'command_line'],
  command_line: ['command_line', 'workflow'],
};

/** A command that began before its key was revoked may end later, and clocks differ. */
const REVOKED_MS = 10 * 60_000;
/** Until a new key is in place on every machine. */
const REPLACED_MS = 24 * 60 * 60_000;

/** A planted line may have anything. */
function isSigned(line: ChainedLine, { operators, processes }: Signers): boolean {
  const { act, at, hash } = line;
  const signature = String(line.signature);
  const operator = findOperator(line);
  if (operator !== undefined) {
    return operators.some(
      ({ name, public_key, revoked_at }) =>
        isSameOperator(name, operator) &&
        (revoked_at === null || Date.parse(at) <= Date.parse(revoked_at) + REVOKED_MS) &&
        isSignedBy(public_key, hash, signature),
    );
  }
  const other = ACT_WRITERS[act];
  if (other === 'operator') return false;
  const { via } = Object(line.actor);
  return AUDIT_WRITERS.some(
    (writer) =>
      (writer === 'command_line' || writer === other) &&
      ACTORS[writer].includes(via) &&
      processes[writer]?.some(
        ({ public_key }, index, keys) =>
          !isReplaced(keys[index + 1], at) && isSignedBy(public_key, hash, signature),
      ),
  );
}

function isReplaced(next: { created_at: string } | undefined, at: string): boolean {
  return next !== undefined && !(Date.parse(at) <= Date.parse(next.created_at) + REPLACED_MS);
}

/**
 * Operator whose key signs the line: of a command, except for an act on a resource, which the worker
 * writes.
 */
export function findOperator({
  actor,
  act,
}: Pick<ChainedLine, 'actor' | 'act'>): string | undefined {
  const { via, operator } = Object(actor);
  if (via !== 'command_line' || operator === undefined || String(act).endsWith('.act')) return;
  return String(operator);
}
