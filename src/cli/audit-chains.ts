import {
  type AuditLogStore,
  type ChainedLine,
  type ChainHead,
  chainOf,
  hashOf,
} from '../store/audit-log';

/** End of a chain, as an earlier verification told it. */
export interface KeptHead {
  chain: string;
  seq: number;
  hash: string;
}

/** Faults of a chain, in words. */
export const CHAIN_FAULTS = {
  changed: 'the line is not what was written',
  not_linked: 'the line before it is not the one that it was written after',
  missing: 'the line is gone',
  no_head: 'the end of the chain is gone',
  not_as_kept: 'the line is another than the one that was kept',
} as const;

/** First broken line of a chain. */
interface Broken {
  chain: string;
  seq: number;
  /** Null where the line is gone. */
  line_id: string | null;
  fault: keyof typeof CHAIN_FAULTS;
}

export interface ChainsCheck {
  lines: number;
  chains: number;
  /** Lines from before there were chains. */
  unchained: number;
  /** First broken line of each chain that has one. */
  broken: Broken[];
  heads: KeptHead[];
}

interface Walked {
  chain: string;
  seq: number;
  hash: string | null;
  broken?: Broken;
}

type Expected = Pick<ChainHead, 'seq' | 'hash'>;

/**
 * Follows each chain of the audit log from its first line to its end. Lines may be added meanwhile.
 * @param kept ends of an earlier verification: their lines must still be there
 */
export async function verifyChains(
  log: Pick<AuditLogStore, 'heads' | 'head' | 'chained' | 'unchained'>,
  kept: readonly KeptHead[] = [],
): Promise<ChainsCheck> {
  // Read before the lines, so that each of these ends must be found in them.
  const heads = new Map((await log.heads()).map((head) => [head._id, head]));
  const keptOf = new Map(kept.map((head) => [head.chain, head]));
  const check: ChainsCheck = { lines: 0, chains: 0, unchained: 0, broken: [], heads: [] };
  const unseen = new Set([...heads.keys(), ...keptOf.keys()]);

  const end = async ({ chain, seq, hash, broken }: Walked): Promise<void> => {
    unseen.delete(chain);
    const known = heads.get(chain);
    const longest = Math.max(known?.seq ?? 0, keptOf.get(chain)?.seq ?? 0);
    if (seq > 0) check.chains += 1;
    if (broken !== undefined) check.broken.push(broken);
    else if (seq < longest) {
      check.broken.push({ chain, seq: seq + 1, line_id: null, fault: 'missing' });
    } else if (known === undefined && (await log.head(chain)) === null) {
      check.broken.push({ chain, seq, line_id: null, fault: 'no_head' });
    } else if (hash !== null) check.heads.push({ chain, seq, hash });
  };

  let walked: Walked | undefined;
  for await (const line of log.chained()) {
    const chain = chainOf(line);
    if (walked !== undefined && walked.chain !== chain) await end(walked);
    if (walked?.chain !== chain) walked = { chain, seq: 0, hash: null };
    check.lines += 1;
    step(walked, line, [
      [heads.get(chain), 'not_linked'],
      [keptOf.get(chain), 'not_as_kept'],
    ]);
  }
  if (walked !== undefined) await end(walked);
  for (const chain of [...unseen]) await end({ chain, seq: 0, hash: null });
  check.unchained = await log.unchained();
  return check;
}

/** Holds one line against what the chain says so far. */
function step(
  walked: Walked,
  { hash, ...line }: ChainedLine,
  expected: readonly (readonly [Expected | undefined, Broken['fault']])[],
): void {
  if (walked.broken !== undefined) return;
  const { chain } = walked;
  const seq = walked.seq + 1;
  const at = { chain, seq, line_id: line._id };
  const wrong = expected.find(([of]) => of?.seq === seq && of.hash !== hash);
  if (line.seq !== seq) walked.broken = { chain, seq, line_id: null, fault: 'missing' };
  else if (hashOf(line) !== hash) walked.broken = { ...at, fault: 'changed' };
  else if (line.prev !== walked.hash) walked.broken = { ...at, fault: 'not_linked' };
  else if (wrong !== undefined) walked.broken = { ...at, fault: wrong[1] };
  walked.seq = seq;
  walked.hash = hash;
}
