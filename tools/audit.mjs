/**
 * Fails where a package that the service runs on has a known hole of high or critical severity.
 *
 * Ends with 1 where there are any. A registry that can't be asked, as without a network, is no finding:
 * it is said, and ends with 2 under --strict, for where the gate must hold, else with 0.
 */
import { spawnSync } from 'node:child_process';

const GRAVE = ['high', 'critical'];

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' });
const vulnerabilities = found(stdout);
if (vulnerabilities === undefined) {
  console.error('The registry could not be asked for known holes.');
  process.exitCode = process.argv.includes('--strict') ? 2 : 0;
} else {
  const grave = vulnerabilities.filter(({ severity }) => GRAVE.includes(severity));
  for (const { name, severity, range } of grave) console.error(`${severity}: ${name} ${range}`);
  console.log(`Known holes: ${vulnerabilities.length}, of them high or critical: ${grave.length}.`);
  process.exitCode = grave.length === 0 ? 0 : 1;
}

/** Packages with known holes; undefined where npm has no answer of the registry. */
function found(text) {
  try {
    const answer = JSON.parse(text);
    return answer.vulnerabilities && Object.values(answer.vulnerabilities);
  } catch {
    return undefined;
  }
}
