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
    sums.set(account, before === undefined ? amount : Number(before) + Number(amount));
  }
  return [...sums].map(([account, amount]) => ({ account, amount }));
}
