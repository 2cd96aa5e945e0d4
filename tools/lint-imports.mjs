/** Checks the imports of the folder it is called in against .dependency-cruiser.js. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import swc from '@swc/core';
import { cruise } from 'dependency-cruiser';

const require = createRequire(import.meta.url);
const { forbidden, options } = require('../.dependency-cruiser.js');
const folders = require('../tsconfig.json').include.filter((folder) => existsSync(folder));
const isAboutValues = ({ to }) => to.dependencyTypesNot?.includes('type-only') === true;

const all = await check(
  forbidden.filter((rule) => !isAboutValues(rule)),
  () => true,
);
const values = await check(forbidden.filter(isAboutValues), (statement) => !isTypeOnly(statement));

const violations = [...all.violations, ...values.violations];
const comments = new Map(forbidden.map(({ name, comment }) => [name, comment]));
for (const { rule, from, to, cycle } of violations) {
  const path = cycle === undefined ? [to] : cycle.map(({ name }) => name);
  console.error(`${rule.name}: ${[from, ...path].join(' → ')}`);
}
for (const name of new Set(violations.map(({ rule }) => rule.name))) {
  console.error(`  ${name}: ${comments.get(name)}`);
}
console.log(`Checked ${all.totalDependenciesCruised} imports of ${all.totalCruised} files.`);
process.exitCode = violations.length === 0 ? 0 : 1;

/**
 * Checks the statements that pass the filter. The newest dependency-cruiser for Node 20 neither parses
 * .tsx nor distinguishes type-only imports from others, so its parser is wrapped.
 */
async function check(rules, filter) {
  const { parseFileSync } = swc;
  swc.parseFileSync = (path, parsing) => {
    const module = parseFileSync.call(swc, path, { ...parsing, tsx: path.endsWith('.tsx') });
    return { ...module, body: module.body.filter(filter) };
  };
  try {
    const ruleSet = { forbidden: rules };
    return (await cruise(folders, { ...options, ruleSet, validate: true })).output.summary;
  } finally {
    swc.parseFileSync = parseFileSync;
  }
}

function isTypeOnly({ typeOnly, specifiers = [] }) {
  if (typeOnly) return true;
  return specifiers.length > 0 && specifiers.every((specifier) => specifier.isTypeOnly);
}
