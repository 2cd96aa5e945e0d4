/** Publishes the contract over HTTP as it is now, if it has only been added to. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ContractSchema, listBreaks } from './additions';
import { buildContractSchema, contractSchemaText, PUBLISHED_FILE } from './contract-schema';

/** The compiled file is `dist/docs/generate/publish-contract.js`. */
const PATH = join(__dirname, '../../..', PUBLISHED_FILE);

const published = JSON.parse(readFileSync(PATH, 'utf8')) as ContractSchema;
const breaks = listBreaks(published, buildContractSchema());
if (breaks.length > 0) {
  console.error(`The contract breaks what was published:\n  ${breaks.join('\n  ')}`);
  process.exitCode = 1;
} else {
  writeFileSync(PATH, contractSchemaText());
  console.log(`${PUBLISHED_FILE} is current.`);
}
