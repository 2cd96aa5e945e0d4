import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { runCli } from '../measure/cli';
import { startReceiver } from '../measure/receiver';
import type { Options } from '../options';
import { createApi, openAccount } from '../product/api';
import { runAudit, runOverduePart } from '../product/audit-run';
import { PAYMENT } from '../product/requests';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';
import { insertWaiting, startWaiting } from './waiting-payments';

/** Part of the checks after which the worker is killed. */
const KILLED_AT = 0.8;
const CREATE_EVERY_MS = 500;

const Reconciled = z.object({
  data: z.object({
    ...{ workflows: z.number(), histories: z.number(), documents: z.number() },
    findings: z.array(z.object({ kind: z.string(), id: z.string() })),
  }),
});

/**
 * Measures the audit and `reconcile` over N payments in progress and their workflows, and over a
 * tenth before. The worker of the second audit is killed once.
 */
export async function runAuditScenario(options: Options, setting: Setting): Promise<Report> {
  const receiver = await startReceiver();
  try {
    return await withStack(setting, { parts: 'product', restarts: true }, async (stack) => {
      const { apiKey } = await openAccount(stack.env, receiver, setting);
      return await measure(stack, apiKey, options, setting);
    });
  } finally {
    receiver.close();
  }
}

async function measure(
  stack: Stack,
  apiKey: string,
  { payments: total }: Options,
  setting: Setting,
): Promise<Report> {
  const { progress, signal } = setting;
  const few = Math.ceil(total / 10);
  const start = (from: number, until: number) =>
    progress.during('Starting workflows', (task) =>
      startWaiting({ ...stack, signal }, { from, total: until }, task.say),
    );
  const audit = (name: string, killAfter?: number) =>
    progress.during(`Audit of ${name}`, () => runAudit(stack, signal, killAfter));
  const compare = (name: string) =>
    progress.during(`reconcile of ${name}`, () => reconcileNextToCreates(stack, apiKey, setting));
  await start(0, few);
  const tenth = { audit: await audit('a tenth'), stores: await compare('a tenth') };
  await start(few, total);
  const all = { audit: await audit('all', total * KILLED_AT), stores: await compare('all') };
  const audits = ['checked', 'found', 'perSecond', 'seconds', 'again', 'peak_mib'] as const;
  const stores = [
    ...(['workflows', 'histories', 'documents', 'findings', 'creates'] as const),
    ...(['perSecond', 'seconds', 'peak_mib'] as const),
  ];
  return {
    columns: ['a tenth', 'all'],
    rows: [
      ...audits.map((name) => buildRow(`audit, ${name}`, tenth.audit[name], all.audit[name])),
      ...stores.map((name) => buildRow(`reconcile, ${name}`, tenth.stores[name], all.stores[name])),
    ],
    notes: [
      'The worker of the second audit was killed once. perSecond is while Temporal is asked.',
      `creates: payments that were created at ${1_000 / CREATE_EVERY_MS} a second meanwhile`,
    ],
  };
}

async function reconcileNextToCreates({ env, url }: Stack, apiKey: string, setting: Setting) {
  const api = createApi(url, apiKey);
  const created = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    created.add(api.create('/v1/payments', PAYMENT));
  }, CREATE_EVERY_MS);
  try {
    await sleep(CREATE_EVERY_MS * 2, undefined, { signal: setting.signal });
    const { output, seconds, peak_mib } = await runCli(['reconcile'], Reconciled, env, setting);
    clearInterval(timer);
    await Promise.all(created);
    const { workflows, histories, documents, findings } = output.data;
    return {
      ...{ workflows, histories, documents, findings: findings.length, creates: created.size },
      ...{ perSecond: workflows / seconds, seconds, peak_mib },
    };
  } finally {
    clearInterval(timer);
    await api.close();
  }
}

/**
 * Measures the part of the audit that each run does, over N payments of which none is overdue, and
 * over a tenth. It needs no workflow of theirs.
 */
export async function runAuditRows(
  { payments: total }: Options,
  setting: Setting,
): Promise<Report> {
  const { progress, signal } = setting;
  return await withStack(setting, { parts: 'product', restarts: true }, async (stack) => {
    const measureRows = async (from: number, until: number) => {
      await progress.during('Storing payments', async (task) => {
        for await (const batch of insertWaiting(stack.db, { from, total: until })) {
          task.say(`${batch.from + batch.payments.length} stored`);
          signal.throwIfAborted();
        }
      });
      const run = () => runOverduePart(stack, signal);
      const result = await progress.during(`Overdue among ${until}`, run);
      return { ...result, rows: until, perSecond: until / result.seconds };
    };
    const few = Math.ceil(total / 10);
    const tenth = await measureRows(0, few);
    const all = await measureRows(few, total);
    const names = ['rows', 'seconds', 'perSecond', 'peak_mib'] as const;
    return {
      columns: ['a tenth', 'all'],
      rows: names.map((name) => buildRow(name, tenth[name], all[name])),
      notes: ['seconds from the start of the audit until it asks Temporal for the first time'],
    };
  });
}
