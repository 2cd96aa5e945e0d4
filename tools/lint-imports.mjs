/**
 * Holds the imports of the folder it is called in against .dependency-cruiser.js.
 *
 * Calls dependency-cruiser's API, since its command line refuses Node 20, which the service supports.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cruise } from 'dependency-cruiser';

const require = createRequire(import.meta.url);
const { forbidden, options } = require('../.dependency-cruiser.js');
const folders = require('../tsconfig.json').include.filter((folder) => existsSync(folder));

const { output } = await cruise(folders, { ...options, ruleSet: { forbidden }, validate: true });
const { violations, totalCruised, totalDependenciesCruised } = output.summary;

const comments = new Map(forbidden.map(({ name, comment }) => [name, comment]));
for (const { rule, from, to, cycle } of violations) {
  const path = cycle === undefined ? [to] : cycle.map(({ name }) => name);
  console.error(`${rule.name}: ${[from, ...path].join(' → ')}`);
}
for (const name of new Set(violations.map(({ rule }) => rule.name))) {
  console.error(`  ${name}: ${comments.get(name)}`);
}
console.log(`Checked ${totalDependenciesCruised} imports of ${totalCruised} files.`);
process.exitCode = violations.length === 0 ? 0 : 1;
