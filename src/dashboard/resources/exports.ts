import type { Readable } from 'node:stream';

/** Counts the exports that each account has under way in this process, so that none takes them all. */
export function createExports(max: number) {
  const underWay = new Map<string, number>();
  return {
    /**
     * Begins an export; it counts until its stream is closed, read to its end or not.
     * @returns null when the account has as many under way as it may
     */
    begin: (account_id: string, open: () => Readable): Readable | null => {
      const others = underWay.get(account_id) ?? 0;
      if (others >= max) return null;
      const download = open();
      underWay.set(account_id, others + 1);
      download.once('close', () => {
        const left = (underWay.get(account_id) ?? 1) - 1;
        if (left === 0) underWay.delete(account_id);
        else underWay.set(account_id, left);
      });
      return download;
    },
  };
}
