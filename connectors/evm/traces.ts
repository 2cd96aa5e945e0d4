import { type Address, type Hash, isAddress, isHash, isHex } from 'viem';
import { z } from 'zod';

export interface Movement {
  hash: Hash;
  from: Address;
  to: Address;
  /** Wei. */
  value: bigint;
}

const address = z.string().refine((text) => isAddress(text, { strict: false }));
const hash = z.string().refine((text) => isHash(text));
const wei = z
  .string()
  .refine((text) => isHex(text))
  .transform((text) => BigInt(text));

const Trace = z.object({
  blockHash: hash,
  /** Absent without a transaction, such as from a reward. */
  transactionHash: hash.nullish(),
  traceAddress: z.array(z.number()),
  error: z.string().nullish(),
});

const Call = Trace.extend({
  type: z.literal('call'),
  action: z.object({ callType: z.literal('call'), from: address, to: address, value: wei }),
});

/** End of a contract, which passes its ether on. */
const Suicide = Trace.extend({
  type: z.literal('suicide'),
  action: z.object({ address, refundAddress: address, balance: wei }),
});

/**
 * A failed call undoes all calls below it.
 * @throws Error for another shape, and for traces of another block
 */
export function readMovements(raw: unknown, blockHash: Hash): Movement[] {
  const traces = z.array(Trace.loose()).parse(raw);
  if (traces.some((trace) => trace.blockHash !== blockHash)) {
    throw new Error('The traces are of another block.');
  }
  const failed = new Set(traces.filter(({ error }) => error != null).map(toPath));
  return traces
    .filter(({ transactionHash, traceAddress }) => {
      const depths = [...traceAddress.keys(), traceAddress.length];
      const ancestors = depths.map((depth) => traceAddress.slice(0, depth));
      return !ancestors.some((each) => failed.has(toPath({ transactionHash, traceAddress: each })));
    })
    .flatMap((trace): Movement[] => {
      const call = Call.safeParse(trace).data;
      if (call?.transactionHash != null) {
        const { from, to, value } = call.action;
        return [{ hash: call.transactionHash, from, to, value }];
      }
      const end = Suicide.safeParse(trace).data;
      if (end?.transactionHash == null) return [];
      const { address: from, refundAddress: to, balance: value } = end.action;
      return [{ hash: end.transactionHash, from, to, value }];
    });
}

type TracePosition = Pick<z.infer<typeof Trace>, 'transactionHash' | 'traceAddress'>;

function toPath({ transactionHash, traceAddress }: TracePosition): string {
  return [transactionHash, ...traceAddress].join('/');
}
