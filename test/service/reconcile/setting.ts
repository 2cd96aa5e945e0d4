import { randomUUID } from 'node:crypto';
import type { Document } from 'mongodb';
import { deliverCallback } from '../../../src/callbacks/deliver';
import type { CallbackName, CallbackResource } from '../../../src/domain/banks/callback';
import { ServiceError } from '../../../src/domain/errors';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { isInFlight, KINDS, type Resource } from '../../../src/lifecycles';
import { sandboxBankDatabase } from '../../../src/service/banks/sandbox-bank/movements';
import { type Act, actOn } from '../../../src/service/operators/act';
import {
  type Finding,
  isUnresolved,
  type ReconcileDeps,
  reconcile,
} from '../../../src/service/operators/reconcile/reconcile';
import type { Stores } from '../../../src/store';
import { openResourceSetting, type ResourceSetting } from '../../cli/resource-setting';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { openRebuilder } from '../../support/rebuilder';
import type { ServiceOptions } from '../../support/service';

type Backup = Map<string, Document[]>;

/** The whole product with a merchant, whose database can be put back to an earlier moment. */
async function openRestoreSetting(options: ServiceOptions = {}) {
  const began = new Date();
  const setting = await openResourceSetting(options);
  const { service } = setting;
  const { mongo, stores, temporal, queues, keys } = service;
  const { lifecycle: lifecycleQueue, webhooks: webhookQueue } = queues;
  const db = mongo.db(service.database);
  const rebuilderOn = (its: Stores) =>
    openRebuilder({ mongo, stores: its, temporal, payTokenKey: keys.pay_token, webhookQueue });
  const deps: ReconcileDeps = {
    ...{ db, stores, temporal, lifecycleQueue, webhookQueue },
    now: () => new Date(),
    progress: () => {},
    settleMs: 200,
    rebuilder: () => rebuilderOn(stores),
  };
  const look = (
    apply = false,
    other: Partial<ReconcileDeps> = {},
    options: { full?: boolean } = {},
  ) => reconcile({ ...deps, ...other }, { since: began, apply, ...options });
  return {
    ...setting,
    deps,
    stores,
    look,
    rebuilderOn,
    /** Findings that keep the stores apart, once as many as expected are listed as ended. */
    left: async (count: number) =>
      await eventually(`${count} differences`, async () => {
        const found = (await look()).findings.filter(isUnresolved);
        if (found.length !== count) return false;
        const current = await Promise.all(found.map((each) => isCurrent(setting, each)));
        return current.every(Boolean) && found;
      }),
    /** Acts as an operator, once the workflow knows what the document shows. */
    act: async (kind: CallbackResource, id: string, what: string, more: Partial<Act> = {}) =>
      await eventually(`${what} of ${kind} ${id}`, async () => {
        const act = { what, operator: 'mia', reason: 'their statement', ...more };
        return await actOn(deps, kind, id, act).catch((error: unknown) => {
          if (error instanceof ServiceError && error.code === 'wrong_state') return false;
          throw error;
        });
      }),
    /** Delivers what a bank reports. */
    report: (resource: CallbackResource, resource_id: string, name: CallbackName, facts = {}) =>
      deliverCallback(deps, {
        ...{ connector: service.connector, resource, resource_id, name },
        callback: { callback_id: randomUUID(), occurred_at: new Date().toISOString(), ...facts },
      }),
    /** Lists the differences that a verification of the ledger finds. */
    verified: async () => (await verifyLedger(mongo, service.database, {})).differences,
    backUp: async (): Promise<Backup> => {
      await untilQuiet(setting);
      const names = (await db.listCollections().toArray()).map(({ name }) => name);
      const read = async (name: string) =>
        [name, await db.collection(name).find({}, { promoteLongs: false }).toArray()] as const;
      return new Map(await Promise.all(names.map(read)));
    },
    /** Puts a backup back, so that what came since is gone. */
    restore: async (backup: Backup) => {
      await untilQuiet(setting);
      for (const { name } of await db.listCollections().toArray()) {
        await db.collection(name).deleteMany();
        const rows = backup.get(name) ?? [];
        if (rows.length > 0) await db.collection(name).insertMany(rows);
      }
    },
    /** Reads what must be the same afterwards: balances, and documents, events, entries and movements of resources. */
    read: async (
      ...resources: (readonly [kind: CallbackResource, id: string, texts?: object])[]
    ) => ({
      balances: await stores.ledger.balances(setting.shop.account_id, false),
      documents: await Promise.all(
        resources.map(([kind, id]) =>
          db.collection<{ _id: string }>(`${kind}s`).findOne({ _id: id }),
        ),
      ),
      recorded: await Promise.all(resources.map(([, id]) => readRecorded(setting, id))),
    }),
  };
}

async function readRecorded({ service: { stores }, shop }: ResourceSetting, resource_id: string) {
  const filter = { account_id: shop.account_id, livemode: false, resource_id, limit: 50 };
  const events = await stores.events.list(filter);
  return {
    // The time of the insert is not what happened.
    entries: (await stores.ledger.forResource(resource_id))
      .toSorted(byId)
      .map(({ written_at, position, ...entry }) => entry),
    movements: await stores.movements.forResource(resource_id),
    events: events
      .map(({ _id, type, created, body }) => ({ _id, type, created, body }))
      .toSorted(byId),
  };
}

const byId = (a: { _id: string }, b: { _id: string }) => a._id.localeCompare(b._id);

/** The product and its copies for one file's tests. */
export function useRestoreSetting(options?: () => ServiceOptions) {
  return useFixture(
    () => openRestoreSetting(options?.()),
    (setting) => setting.close(),
  );
}

/** Whether the list of workflows, which lags, has the run of a finding as it is. */
async function isCurrent({ handle }: ResourceSetting, { resource, id, workflow }: Finding) {
  const listed = /, (closed|running)$/.exec(workflow ?? '')?.[1];
  if (listed === undefined || resource === 'event') return true;
  const { status } = await handle(resource, id).describe();
  return (status.name === 'RUNNING') === (listed === 'running');
}

/** Waits until neither the bank, which repeats what was simulated, nor a workflow writes any more. */
async function untilQuiet({ service, handle }: ResourceSetting): Promise<void> {
  const { mongo, stores, database } = service;
  const outbox = mongo.db(sandboxBankDatabase(database)).collection('outbox');
  await eventually('the bank to have reported everything', async () => {
    if (await stores.sandboxReports.hasDue()) return false;
    const waiting = { state: 'pending' };
    const now = new Date();
    await outbox.updateMany({ ...waiting, due_at: { $gt: now } }, { $set: { due_at: now } });
    return (await outbox.countDocuments(waiting)) === 0;
  });
  for (const kind of KINDS) {
    // An operator's chargeback has no workflow of its own.
    const own = { kind: { $ne: 'clawed_back' } };
    const resources = await service.collection<Resource>(`${kind}s`).find(own).toArray();
    const ended = resources.filter(({ status }) => !isInFlight(kind, status));
    await Promise.all(ended.map(({ _id }) => handle(kind, _id).result()));
  }
}
