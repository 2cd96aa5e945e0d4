import { readFileSync } from 'node:fs';
import os from 'node:os';
import { runInNewContext } from 'node:vm';
import { MongoClient } from 'mongodb';
import { runCli } from '../../../src/cli/program';
import { LIFECYCLES } from '../../../src/lifecycles';
import {
  connectorRole,
  GROWTH,
  type MongoRole,
  serviceRoles,
  WRITES,
} from '../../../src/service/installation/database';
import { createStores } from '../../../src/store';
import { filesEndingIn } from '../../docs/pages';

/** Lists the collections that the stores open. */
async function listCollectionsOfStores(): Promise<string[]> {
  const client = new MongoClient('mongodb://localhost', { runtimeAdapters: { os } });
  const db = client.db('shop');
  const collection = jest.spyOn(db, 'collection');
  createStores(db);
  await client.close();
  return collection.mock.calls.map(([name]) => name);
}

/** Lists the collections that the sources of the service name. */
function listCollectionsInSources(): string[] {
  const texts = filesEndingIn('.ts', '.tsx')
    .filter((path) => path.startsWith('src/'))
    .map((path) => readFileSync(path, 'utf8'));
  const written = /\bcollection(?:<[^()]*>)?\(\s*'([a-z_]+)'/g;
  return texts.flatMap((text) => [...text.matchAll(written)].map(([, name]) => name ?? ''));
}

test('the table of roles has every collection, so that no process lacks a right', async () => {
  const ofStores = await listCollectionsOfStores();
  const resources = Object.values(LIFECYCLES).map(({ collection }) => collection);
  expect(ofStores.length).toBeGreaterThan(20);
  const used = new Set([...ofStores, ...listCollectionsInSources(), ...resources]);
  expect(Object.keys(WRITES).toSorted()).toEqual([...used].toSorted());
});

/** Lists the actions of a role on a collection, with those on the whole database. */
function listActions({ privileges }: MongoRole, db: string, collection: string): string[] {
  return privileges.flatMap(({ resource, actions }) =>
    'db' in resource && resource.db === db && ['', collection].includes(resource.collection)
      ? actions
      : [],
  );
}

const READS = ['find', 'listIndexes', 'listCollections'];
const named = (pattern: RegExp) => Object.keys(WRITES).filter((name) => pattern.test(name));

test.each<['api' | 'worker' | 'command_line', names: string[], writes: string[]]>([
  ['api', named(/^(?:ledger|journal)_/), []],
  ['worker', ['journal_entries'], ['insert']],
  [
    'command_line',
    ['journal_entries', 'ledger_checkpoints', 'audit_log'],
    ['createIndex', 'insert'],
  ],
  ['api', ['audit_log'], ['insert']],
  ['worker', ['audit_log'], ['insert']],
  ['api', ['connector_keys'], []],
  // It disables an endpoint that keeps failing.
  ['worker', ['webhook_endpoints'], ['update']],
  ['worker', ['api_keys', 'users', 'wallets', 'connector_keys'], []],
])(
  'the role of %s writes %j only by %j, and no database of a connector',
  (process, names, writes) => {
    const role = serviceRoles('shop')[process];
    for (const name of names)
      expect(listActions(role, 'shop', name)).toEqual([...READS, ...writes]);
    if (process !== 'command_line') expect(JSON.stringify(role.privileges)).not.toContain('shop_');
  },
);

test('a connector writes callbacks and its own database, and reads no secrets except recipients', () => {
  const role = connectorRole('shop', 'evm');
  expect(role.role).toBe('shop_connector_evm');
  const open = named(/./).filter((name) => listActions(role, 'shop', name).length > 0);
  const written = ['bank_callbacks', 'connector_capabilities'];
  expect(open.toSorted()).toEqual(
    [
      ...[...written, 'accounts', 'bank_accounts', 'bank_movements', 'connector_releases'],
      ...['crypto_payments', 'crypto_settlements', 'disputes', 'payments', 'payouts'],
      ...['recipients', 'refunds', 'service_epoch'],
    ].toSorted(),
  );
  for (const name of open) {
    const actions = written.includes(name) ? ['find', 'insert', 'update'] : ['find'];
    expect(listActions(role, 'shop', name)).toEqual(actions);
  }
  expect(listActions(role, 'shop_evm', 'nonces')).toContain('update');
});

describe('the command roles', () => {
  async function print(...args: string[]): Promise<string> {
    let written = '';
    const write = (text: string) => {
      written += text;
    };
    const env = { MONGODB_URI: 'mongodb://localhost', MONGODB_DB: 'shop' };
    const refuse = () => Promise.reject(new Error('Nothing is rebuilt or checked here.'));
    const loads = { openRebuilder: refuse, checkConnector: refuse };
    await runCli(['roles', ...args], { env, stdout: write, stderr: write }, loads);
    return written;
  }

  test('prints the roles of the service and of each connector', async () => {
    const connectors = ['sandbox_bank', 'evm', 'wise'];
    const roles = connectors.map((name) => [name, connectorRole('shop', name)]);
    expect(JSON.parse(await print('--connectors', 'evm, wise', '--json'))).toEqual({
      ...serviceRoles('shop', ['evm', 'wise']),
      connectors: Object.fromEntries(roles),
    });
    expect(await print('--connectors', 'a.b')).toMatch(/cannot be the name of a connector/);
  });

  test('prints a script that creates or updates each role', async () => {
    const known = new Map<string, unknown>([['shop_api', {}]]);
    const made: string[] = [];
    const admin = {
      getRole: (name: string) => known.get(name) ?? null,
      createRole: ({ role, ...needed }: MongoRole) => {
        made.push(role);
        known.set(role, needed);
      },
      updateRole: (name: string, needed: unknown) => void known.set(name, needed),
    };
    runInNewContext(await print(), { db: { getSiblingDB: () => admin } });
    const { api, worker, command_line } = serviceRoles('shop');
    const created = [worker, command_line, connectorRole('shop', 'sandbox_bank')];
    expect(made).toEqual(created.map(({ role }) => role));
    for (const { role, privileges } of [api, ...created]) {
      expect(JSON.stringify(known.get(role))).toBe(JSON.stringify({ privileges, roles: [] }));
    }
  });
});

test('the table of growth has each collection once', () => {
  const named = GROWTH.flatMap(({ collections }) => collections);
  expect(named.toSorted()).toEqual(Object.keys(WRITES).toSorted());
});
