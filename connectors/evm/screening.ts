import { readFile } from 'node:fs/promises';
import { type Address, isAddress } from 'viem';

/**
 * Reads the file at each call, so that a new list takes effect at once: one address per line, `#`
 * starts a comment.
 * @returns function that returns the first listed address, and throws Error for an unreadable or
 *   invalid file, so that nobody passes then
 */
export function createScreening(path: string) {
  return async (sources: readonly Address[]): Promise<Address | undefined> => {
    const listed = readList(await readFile(path, 'utf8'));
    return sources.find((source) => listed.has(source.toLowerCase()));
  };
}

export type Screening = ReturnType<typeof createScreening>;

function readList(text: string): Set<string> {
  const listed = new Set<string>();
  for (const [row, line] of text.split(/\r?\n/).entries()) {
    const address = line.replace(/#.*/, '').trim();
    if (address === '') continue;
    if (!isAddress(address, { strict: false })) {
      throw new Error(`The screening list has no address in line ${row + 1}.`);
    }
    listed.add(address.toLowerCase());
  }
  return listed;
}
