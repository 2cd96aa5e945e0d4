import type { EntryLine } from './entries';

export function transfer(from: string, to: string, amount: number | bigint): EntryLine[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

export function dropZeroLines(lines: EntryLine[]): EntryLine[] {
  return lines.filter(({ amount }) => amount !== 0 && amount !== 0n);
}

export function mergeLines(lines: readonly EntryLine[]): EntryLine[] {
  const sums = new Map<string, number | bigint>();
  for (const { account, amount } of lines) {
    const before = sums.get(account);
    sums.set(account, before === undefined ? amount : add(before, amount));
  }
  return [...sums].map(([account, amount]) => ({ account, amount }));
}

/** An asset's amounts exceed what a number holds. */
function add(a: number | bigint, b: number | bigint): number | bigint {
  return typeof a === 'number' && typeof b === 'number' ? a + b : BigInt(a) + BigInt(b);
}
