import { z } from 'zod';
import { EvmSettings } from '../../connectors/evm/config';
import { httpSettings } from '../../connectors/http/settings';
import { fill } from '../../docs/generate/blocks';
import { blocksByPage } from '../../docs/generate/pages';
import { KINDS, RESOURCES } from '../../src/domain/resources';
import { WRITES } from '../../src/service/mongo-roles';
import { LIBRARIES, LIBRARY_VARIABLES } from '../../src/variables';
import { listFields, listVariables, USAGE } from '../../stack/usage';
import { readText } from './pages';

describe('generated blocks of a page', () => {
  const PAGE = 'a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n';

  test.each(Object.entries(blocksByPage()))(
    'in %s have the text that the code generates: else run `npm run docs`',
    (page, blocks) => {
      expect(readText(page)).toBe(fill(readText(page), blocks));
      for (const block of Object.values(blocks)) expect(block.length).toBeGreaterThan(40);
    },
  );

  test('are replaced between their markers, and the rest of the page stays', () => {
    const filled = 'a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb\n';
    expect(fill(PAGE, { x: 'new' })).toBe(filled);
    expect(fill(filled, { x: 'new' })).toBe(filled);
  });

  test('need a place on the page, and each place needs a block', () => {
    expect(() => fill(PAGE, { x: 'new', y: 'new' })).toThrow('no place for y');
    expect(() => fill(PAGE, {})).toThrow('Nothing makes the block "x"');
  });
});

describe('the variables of the environment', () => {
  const variables = listVariables();

  test('are at most 47 without those of libraries, and each has a description', () => {
    const own = variables.filter(({ name }) => !(name in LIBRARIES));
    expect(own.length).toBeLessThanOrEqual(47);
    const settings = [...listFields(EvmSettings), ...listFields(z.object(httpSettings))];
    const all = [...variables, ...settings];
    expect(all.filter(({ description }) => description === '')).toEqual([]);
  });

  test('of a library are described with the others of their library', () => {
    const prefixes = Object.keys(LIBRARIES).map((name) => name.replace('*', ''));
    const names = Object.keys(LIBRARY_VARIABLES.shape);
    expect(names.filter((name) => !prefixes.some((each) => name.startsWith(each)))).toEqual([]);
  });

  test('have the default of the schema, unless npm start has another', () => {
    expect(variables).toContainEqual(
      expect.objectContaining({ name: 'MONGODB_URI', usual: 'none', alone: 'required' }),
    );
    expect(variables).toContainEqual(
      expect.objectContaining({ name: 'RATE_LIMIT_PER_SECOND', usual: '500', alone: '500' }),
    );
  });

  test('are listed by --help where the launcher applies them, and no others are', () => {
    const listed = [...USAGE.matchAll(/^ {2}([A-Z_*]+) +\S/gm)].map(([, name]) => name);
    const applied = variables.filter(({ isLauncher }) => !isLauncher);
    expect(listed).toEqual(applied.map(({ name }) => name));
  });
});

/** Collections without personal data. */
const IMPERSONAL = [
  ...['api_keys', 'approval_limits', 'audit_heads', 'bank_accounts', 'brand_logos'],
  ...['connector_capabilities', 'connector_keys', 'event_orders', 'ledger_books'],
  ...['ledger_checkpoints', 'ledger_checks', 'ledger_postings', 'ledger_verified'],
  ...['mail_settings', 'payout_days', 'sandbox_reports', 'schedule_runs', 'service_epoch'],
  ...['statements', 'webhook_endpoints', 'worker_heartbeats'],
];

test('the table of personal data names every collection that has some, and no other', () => {
  const [, section = ''] =
    /\n## Personal data\n([\s\S]*?)\n## /.exec(readText('docs/operations.md')) ?? [];
  const cells = [...section.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, cell = '']) => cell);
  const names = cells.flatMap((cell) => [
    ...[...cell.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name),
    ...(cell.includes('with the resource') ? KINDS.map((kind) => RESOURCES[kind].collection) : []),
  ]);
  expect(names.length).toBeGreaterThan(0);
  const all = [...new Set(names), ...IMPERSONAL];
  expect(all.toSorted()).toEqual(Object.keys(WRITES).toSorted());
});
