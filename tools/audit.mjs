/**
 * Finds known vulnerabilities of high or critical severity in the packages of the service.
 *
 * Ends with 1 if there are any. Without an answer of the registry, it says so and ends with 0, or with
 * 2 under --strict.
 */
import { spawnSync } from 'node:child_process';

const GRAVE = ['high', 'critical'];

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' });
const vulnerabilities = parseAudit(stdout);
if (vulnerabilities === undefined) {
  console.error('The registry could not be reached.');
  process.exitCode = process.argv.includes('--strict') ? 2 : 0;
} else {
  const grave = vulnerabilities.filter(({ severity }) => GRAVE.includes(severity));
  for (const { name, severity, range } of grave) console.error(`${severity}: ${name} ${range}`);
  console.log(
    `Vulnerabilities: ${vulnerabilities.length}, of them high or critical: ${grave.length}.`,
  );
  process.exitCode = grave.length === 0 ? 0 : 1;
}

/** Packages with vulnerabilities; undefined if npm has no answer of the registry. */
function parseAudit(text) {
  try {
    const answer = JSON.parse(text);
    return answer.vulnerabilities && Object.values(answer.vulnerabilities);
  } catch {
    return undefined;
  }
}
