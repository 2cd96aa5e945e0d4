import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRIC_NAMES } from '../../../../src/base/metrics';
import { expressions, metricsIn } from '../../../support/monitoring';

const ROOT = join(__dirname, '../../../..');
const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('the docs have a row for each metric, and for no other', () => {
  const rows = readText('docs/operations.md').match(/^\| `payments_.*$/gm) ?? [];
  const names = rows.flatMap((row) => row.split('|')[1]?.match(/payments_\w+/g) ?? []);
  expect(names.sort()).toEqual([...METRIC_NAMES].sort());
});

test('alerts and panels use only metrics of the table', () => {
  const names = expressions()
    .flatMap(({ expr }) => metricsIn(expr))
    .filter((name) => name.startsWith('payments_'))
    .map((name) => name.replace(/_(bucket|sum|count)$/, ''));
  expect(names.length).toBeGreaterThan(METRIC_NAMES.length / 2);
  expect(names.filter((name) => !METRIC_NAMES.includes(name))).toEqual([]);
});

test.each([
  ['SignInsFail', 'payments_sign_in_attempts_total'],
  ['KeysRefused', 'payments_api_keys_refused_total'],
  ['WatchedAct', 'payments_watched_acts'],
  // A test team that has the key of the sandbox must not page the operators.
  ['CallbacksWait', 'payments_callbacks_waiting{connector!="sandbox"}'],
])('the alert %s reads %s', (alert, series) => {
  expect(expressions().find(({ of }) => of === alert)?.expr).toContain(series);
});

test('each meter takes its name from the table', () => {
  const folders = ['src', 'activities', 'workflows', 'worker', 'connectors', 'stack'];
  const texts = folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.ts'))
        .map((path) => readText(join(folder, path))),
    )
    .filter((text) => /new (Counter|Gauge|Histogram)\(/.test(text));
  expect(texts.length).toBeGreaterThan(5);
  expect(texts.filter((text) => !text.includes('describeMetric('))).toEqual([]);
  expect(texts.filter((text) => /name: 'payments_/.test(text))).toEqual([]);
});
