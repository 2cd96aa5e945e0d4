import { z } from 'zod';
import { ACT_WRITERS, AUDIT_WRITERS, type AuditWriter } from '../../../domain/operators/audit-log';
import { isSameOperator } from '../../../domain/operators/operator-act';
import { type AuditPublicKeys, isSignedBy } from '../../../encryption/audit-keys';
import {
  type Actor,
  type AuditLogStore,
  type ChainedLine,
  type ChainHead,
  getChainName,
  hashLine,
} from '../../../store/audit';
import type { OperatorDocument } from '../../../store/keys';

/** Reported by an earlier verification. */
export const StoredHeads = z.array(
  z.object({ chain: z.string(), seq: z.int().positive(), hash: z.string() }),
);
type StoredHead = z.infer<typeof StoredHeads>[number];

export const CHAIN_FAULTS = {
  changed: 'the line was changed after it was written',
  not_linked: 'the line does not follow the line before it',
  missing: 'the line is missing',
  no_head: 'the end of the chain is missing',
  not_as_kept: 'the line differs from the stored end of the chain',
  unchained: 'the line has no place in the chain',
  not_signed: 'the line is not signed by who may write it',
} as const;

/** Lines that are not signed; a chain has one other fault at most. */
const BROKEN_MAX = 1_000;

interface BrokenLine {
  chain: string;
  seq: number;
  line_id: string | null;
  fault: keyof typeof CHAIN_FAULTS;
}

export interface ChainsCheck {
  lines: number;
  chains: number;
  /** Lines without a number, which the service did not write. */
  unchained: number;
  broken: BrokenLine[];
  heads: StoredHead[];
}

interface ChainProgress {
  chain: string;
  seq: number;
  hash: string | null;
  broken?: BrokenLine;
  unchained?: string;
}

/**
 * Verifies while lines are added.
 * @param storedHeads ends of an earlier verification: their lines must still be there
 */
export async function verifyChains(
  log: Pick<AuditLogStore, 'heads' | 'head' | 'listChained'>,
  isSigned: IsSigned,
  storedHeads: readonly StoredHead[] = [],
): Promise<ChainsCheck> {
  // First, so that the lines that follow must include each of them.
  const heads = new Map((await log.heads()).map((head) => [head._id, head]));
  const storedByChain = new Map(storedHeads.map((head) => [head.chain, head]));
  const check: ChainsCheck = { lines: 0, chains: 0, unchained: 0, broken: [], heads: [] };
  const unseen = new Set([...heads.keys(), ...storedByChain.keys()]);

  const finishChain = async (progress: ChainProgress): Promise<void> => {
    const { chain, seq, hash, broken, unchained: line_id } = progress;
    unseen.delete(chain);
    if (line_id !== undefined) check.broken.push({ chain, seq: 0, line_id, fault: 'unchained' });
    const head = heads.get(chain);
    const expectedSeq = Math.max(head?.seq ?? 0, storedByChain.get(chain)?.seq ?? 0);
    if (seq > 0) check.chains += 1;
    if (broken !== undefined) check.broken.push(broken);
    else if (seq < expectedSeq) {
      check.broken.push({ chain, seq: seq + 1, line_id: null, fault: 'missing' });
    } else if (seq > 0 && head === undefined && (await log.head(chain)) === null) {
      check.broken.push({ chain, seq, line_id: null, fault: 'no_head' });
    } else if (hash !== null) check.heads.push({ chain, seq, hash });
  };

  let progress: ChainProgress | undefined;
  for await (const line of log.listChained()) {
    const chain = getChainName(line);
    if (progress !== undefined && progress.chain !== chain) await finishChain(progress);
    if (progress?.chain !== chain) progress = { chain, seq: 0, hash: null };
    check.lines += 1;
    if (typeof line.seq !== 'number') {
      check.unchained += 1;
      progress.unchained ??= line._id;
      continue;
    }
    checkLine(progress, line, [
      [heads.get(chain), 'not_linked'],
      [storedByChain.get(chain), 'not_as_kept'],
    ]);
    if (progress.broken !== undefined || (await isSigned(line))) continue;
    // The chain goes on, so that one such line hides no later one.
    const { seq, _id: line_id } = line;
    if (check.broken.length < BROKEN_MAX)
      check.broken.push({ chain, seq, line_id, fault: 'not_signed' });
  }
  if (progress !== undefined) await finishChain(progress);
  for (const chain of [...unseen]) await finishChain({ chain, seq: 0, hash: null });
  return check;
}

function checkLine(
  progress: ChainProgress,
  { hash, signature: _, ...line }: ChainedLine,
  expected: readonly (readonly [
    Pick<ChainHead, 'seq' | 'hash'> | undefined,
    BrokenLine['fault'],
  ])[],
): void {
  if (progress.broken !== undefined) return;
  const { chain } = progress;
  const seq = progress.seq + 1;
  const position = { chain, seq, line_id: line._id };
  const mismatch = expected.find(([head]) => head?.seq === seq && head.hash !== hash);
  if (line.seq !== seq) progress.broken = { chain, seq, line_id: null, fault: 'missing' };
  else if (hashLine(line) !== hash) progress.broken = { ...position, fault: 'changed' };
  else if (line.prev !== progress.hash) progress.broken = { ...position, fault: 'not_linked' };
  else if (mismatch !== undefined) progress.broken = { ...position, fault: mismatch[1] };
  progress.seq = seq;
  progress.hash = hash;
}

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
        isInUse(at, revoked_at, REVOKED_MS) &&
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
          isInUse(at, keys[index + 1]?.created_at ?? null, REPLACED_MS) &&
          isSignedBy(public_key, hash, signature),
      ),
  );
}

/** @param end time of the key's revocation, or of the next key */
function isInUse(at: string, end: string | null, graceMs: number): boolean {
  return end === null || Date.parse(at) <= Date.parse(end) + graceMs;
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
