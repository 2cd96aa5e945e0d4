import { renameSync, writeFileSync } from 'node:fs';
import { startProduct } from './product';

/** Runs one product for all test files; writes where it is to the file that it is called with. */
async function main([, , file = '']: readonly string[]): Promise<void> {
  const { parts, stop } = await startProduct({ environments: ['sandbox', 'live'] });
  const { name, url, folder } = parts;
  writeFileSync(`${file}.new`, JSON.stringify({ name, url, folder }));
  renameSync(`${file}.new`, file);
  process.once('SIGTERM', () => stop().then(() => process.exit(0)));
}

void main(process.argv);
