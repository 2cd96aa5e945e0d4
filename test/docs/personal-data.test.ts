import { KINDS, RESOURCES } from '../../src/domain/resources';
import { WRITES } from '../../src/service/mongo-roles';
import { textOf } from './pages';

/** Collections that say nothing about a person. */
const IMPERSONAL = [
  'api_keys',
  'approval_limits',
  'audit_heads',
  'bank_accounts',
  'brand_logos',
  'connector_capabilities',
  'connector_keys',
  'event_orders',
  'ledger_books',
  'ledger_checkpoints',
  'ledger_checks',
  'ledger_postings',
  'ledger_verified',
  'mail_settings',
  'payout_days',
  'sandbox_reports',
  'schedule_runs',
  'service_epoch',
  'statements',
  'webhook_endpoints',
  'worker_heartbeats',
];

/** Collections in the second column of the table. */
function readTable(): string[] {
  const page = textOf('docs/operations.md');
  const [, section = ''] = /\n## Personal data\n([\s\S]*?)\n## /.exec(page) ?? [];
  const places = [...section.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, place = '']) => place);
  const resources = KINDS.map((kind) => RESOURCES[kind].collection);
  return places.flatMap((place) => [
    ...[...place.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name),
    ...(place.includes('with the resource') ? resources : []),
  ]);
}

test('the table of personal data names every collection that says something about a person', () => {
  const named = new Set(readTable());
  expect(IMPERSONAL.filter((name) => named.has(name))).toEqual([]);
  expect([...named, ...IMPERSONAL].toSorted()).toEqual(Object.keys(WRITES).toSorted());
});
