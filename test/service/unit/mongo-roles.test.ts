import { readFileSync } from 'node:fs';
import os from 'node:os';
import { runInNewContext } from 'node:vm';
import { MongoClient } from 'mongodb';
import { runCli } from '../../../src/cli/program';
import { LIFECYCLES } from '../../../src/lifecycles';
import {
  connectorRole,
  type MongoRole,
  serviceRoles,
  WRITES,
} from '../../../src/service/mongo-roles';
import { createStores } from '../../../src/store';
import { filesEndingIn } from '../../docs/pages';

/** Collections that the stores open. */
async function collectionsOfStores(): Promise<string[]> {
  const client = new MongoClient('mongodb://localhost', { runtimeAdapters: { os } });
  const db = client.db('shop');
  const asked = jest.spyOn(db, 'collection');
  createStores(db);
  await client.close();
  return asked.mock.calls.map(([name]) => name);
}

/** Names of collections as the sources of the service write them. */
function collectionsInSources(): string[] {
  const texts = filesEndingIn('.ts', '.tsx')
    .filter((path) => path.startsWith('src/'))
    .map((path) => readFileSync(path, 'utf8'));
  const written = /\bcollection(?:<[^()]*>)?\(\s*'([a-z_]+)'/g;
  return texts.flatMap((text) => [...text.matchAll(written)].map(([, name]) => name ?? ''));
}

test('every collection stands in the table, so that no process is without a right it needs', async () => {
  const ofStores = await collectionsOfStores();
  const resources = Object.values(LIFECYCLES).map(({ collection }) => collection);
  expect(ofStores.length).toBeGreaterThan(20);
  const used = new Set([...ofStores, ...collectionsInSources(), ...resources]);
  expect(Object.keys(WRITES).toSorted()).toEqual([...used].toSorted());
});

/** Actions of a role on a collection, those on the whole database included. */
function actionsOn({ privileges }: MongoRole, db: string, collection: string): string[] {
  return privileges.flatMap(({ resource, actions }) =>
    'db' in resource && resource.db === db && ['', collection].includes(resource.collection)
      ? actions
      : [],
  );
}

test('the API writes no ledger, and neither it nor a worker changes what was audited', () => {
  const { api, worker } = serviceRoles('shop');
  const reads = ['find', 'listIndexes'];
  for (const name of Object.keys(WRITES).filter((each) => each.startsWith('ledger_'))) {
    expect(actionsOn(api, 'shop', name)).toEqual(reads);
  }
  for (const role of [api, worker]) {
    expect(actionsOn(role, 'shop', 'audit_log')).toEqual([...reads, 'insert']);
    expect(actionsOn(role, 'shop', 'connector_keys')).toEqual(reads);
    expect(JSON.stringify(role.privileges)).not.toContain('shop_');
  }
  // It disables an endpoint that keeps failing.
  expect(actionsOn(worker, 'shop', 'webhook_endpoints')).toEqual([...reads, 'update']);
  for (const name of ['api_keys', 'users', 'wallets']) {
    expect(actionsOn(worker, 'shop', name)).toEqual(reads);
  }
});

test('a connector writes callbacks and its own database, and reads no secret but of whom it pays', () => {
  const role = connectorRole('shop', 'evm');
  expect(role.role).toBe('shop_connector_evm');
  const open = Object.keys(WRITES)
    .toSorted()
    .filter((name) => actionsOn(role, 'shop', name).length > 0);
  expect(open).toEqual([
    'accounts',
    'bank_callbacks',
    'connector_capabilities',
    'crypto_payments',
    'crypto_settlements',
    'payments',
    'payouts',
    'recipients',
    'refunds',
  ]);
  const written = ['bank_callbacks', 'connector_capabilities'];
  for (const name of open) {
    const actions = written.includes(name) ? ['find', 'insert', 'update'] : ['find'];
    expect(actionsOn(role, 'shop', name)).toEqual(actions);
  }
  expect(actionsOn(role, 'shop_evm', 'nonces')).toContain('update');
});

describe('the command roles', () => {
  async function printed(...args: string[]): Promise<string> {
    const told = { out: '', err: '' };
    const io = {
      env: { MONGODB_URI: 'mongodb://localhost', MONGODB_DB: 'shop' },
      stdout: (text: string) => {
        told.out += text;
      },
      stderr: (text: string) => {
        told.err += text;
      },
    };
    const refuse = () => Promise.reject(new Error('Nothing is rebuilt or checked here.'));
    const loads = { openRebuilder: refuse, checkConnector: refuse };
    const exit = await runCli(['roles', ...args], io, loads);
    return exit === 0 ? told.out : told.err;
  }

  test('prints the roles of the service and of each connector', async () => {
    expect(JSON.parse(await printed('--connectors', 'evm, wise', '--json'))).toEqual({
      ...serviceRoles('shop'),
      connectors: {
        sandbox_bank: connectorRole('shop', 'sandbox_bank'),
        evm: connectorRole('shop', 'evm'),
        wise: connectorRole('shop', 'wise'),
      },
    });
    expect(await printed('--connectors', 'a.b')).toMatch(/cannot be the name of a connector/);
  });

  test('prints lines that make a role, or bring it to this version', async () => {
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
    runInNewContext(await printed(), { db: { getSiblingDB: () => admin } });
    const { api, worker } = serviceRoles('shop');
    const bank = connectorRole('shop', 'sandbox_bank');
    expect(made).toEqual([worker.role, bank.role]);
    for (const { role, privileges } of [api, worker, bank]) {
      expect(JSON.stringify(known.get(role))).toBe(JSON.stringify({ privileges, roles: [] }));
    }
  });
});
