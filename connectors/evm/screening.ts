import { readFile } from 'node:fs/promises';
import { type Address, isAddress } from 'viem';

/**
 * Screens addresses against a file with one address a line; `#` begins a comment. The file is read at
 * each question, so that a new list counts at once.
 * @returns a function that tells the first address on the list, and throws Error when the file can't
 *   be read or has a line that is no address: nobody passes then
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
