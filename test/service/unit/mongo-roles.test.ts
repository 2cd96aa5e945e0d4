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

test('the API cannot write the ledger, no process changes an entry or the audit log', () => {
  const { api, worker, command_line } = serviceRoles('shop');
  const reads = ['find', 'listIndexes', 'listCollections'];
  for (const name of Object.keys(WRITES).filter((each) => /^(?:ledger|journal)_/.test(each))) {
    expect(listActions(api, 'shop', name)).toEqual(reads);
  }
  expect(listActions(worker, 'shop', 'journal_entries')).toEqual([...reads, 'insert']);
  for (const name of ['journal_entries', 'ledger_checkpoints', 'audit_log']) {
    const actions = [...reads, 'createIndex', 'insert'];
    expect(listActions(command_line, 'shop', name)).toEqual(actions);
  }
  for (const role of [api, worker]) {
    expect(listActions(role, 'shop', 'audit_log')).toEqual([...reads, 'insert']);
    expect(listActions(role, 'shop', 'connector_keys')).toEqual(reads);
    expect(JSON.stringify(role.privileges)).not.toContain('shop_');
  }
  // It disables an endpoint that keeps failing.
  expect(listActions(worker, 'shop', 'webhook_endpoints')).toEqual([...reads, 'update']);
  for (const name of ['api_keys', 'users', 'wallets']) {
    expect(listActions(worker, 'shop', name)).toEqual(reads);
  }
});

test('a connector writes callbacks and its own database, and reads no secrets except recipients', () => {
  const role = connectorRole('shop', 'evm');
  expect(role.role).toBe('shop_connector_evm');
  const open = Object.keys(WRITES)
    .toSorted()
    .filter((name) => listActions(role, 'shop', name).length > 0);
  expect(open).toEqual([
    'accounts',
    'bank_accounts',
    'bank_callbacks',
    'bank_movements',
    'connector_capabilities',
    'connector_releases',
    'crypto_payments',
    'crypto_settlements',
    'disputes',
    'payments',
    'payouts',
    'recipients',
    'refunds',
    'service_epoch',
  ]);
  const written = ['bank_callbacks', 'connector_capabilities'];
  for (const name of open) {
    const actions = written.includes(name) ? ['find', 'insert', 'update'] : ['find'];
    expect(listActions(role, 'shop', name)).toEqual(actions);
  }
  expect(listActions(role, 'shop_evm', 'nonces')).toContain('update');
});

describe('the command roles', () => {
  async function print(...args: string[]): Promise<string> {
    const written = { out: '', err: '' };
    const io = {
      env: { MONGODB_URI: 'mongodb://localhost', MONGODB_DB: 'shop' },
      stdout: (text: string) => {
        written.out += text;
      },
      stderr: (text: string) => {
        written.err += text;
      },
    };
    const refuse = () => Promise.reject(new Error('Nothing is rebuilt or checked here.'));
    const loads = { openRebuilder: refuse, checkConnector: refuse };
    const exit = await runCli(['roles', ...args], io, loads);
    return exit === 0 ? written.out : written.err;
  }

  test('prints the roles of the service and of each connector', async () => {
    expect(JSON.parse(await print('--connectors', 'evm, wise', '--json'))).toEqual({
      ...serviceRoles('shop', ['evm', 'wise']),
      connectors: {
        sandbox_bank: connectorRole('shop', 'sandbox_bank'),
        evm: connectorRole('shop', 'evm'),
        wise: connectorRole('shop', 'wise'),
      },
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
    const bank = connectorRole('shop', 'sandbox_bank');
    expect(made).toEqual([worker.role, command_line.role, bank.role]);
    for (const { role, privileges } of [api, worker, command_line, bank]) {
      expect(JSON.stringify(known.get(role))).toBe(JSON.stringify({ privileges, roles: [] }));
    }
  });
});

test('the table of growth has each collection once', () => {
  const named = GROWTH.flatMap(({ collections }) => collections);
  expect(named.toSorted()).toEqual(Object.keys(WRITES).toSorted());
});
