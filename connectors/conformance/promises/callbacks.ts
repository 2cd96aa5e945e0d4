import { setTimeout as sleep } from 'node:timers/promises';
import type { BankResource } from '../../../src/domain/banks/callback';
import type { Received } from '../proxy';
import { assertSeen, NotApplicable, need } from '../verdict';
import {
  type ContractPromise,
  listSignals,
  needBank,
  needWebhooks,
  openSession,
  type World,
  waitForSignals,
} from '../world';
import { makeTaken, nameRows, PAYOUT, REFUND } from './outgoing';

const DESK = 'It needs the bank’s desk.';

export interface Subject {
  resource: BankResource;
  id: string;
}

/** Files have no event between order and booking. */
const USUAL: Record<BankResource, readonly string[]> = {
  payment: ['authorized', 'settled'],
  refund: ['settled'],
  payout: ['sent', 'completed'],
};

const IN_FILES = { ...USUAL, payout: ['completed', 'returned'] };

function listUsual({ files }: World, resource: BankResource): readonly string[] {
  return (files === undefined ? USUAL : IN_FILES)[resource];
}

/** Contradicts the usual ones, of every resource. */
const CONTRARY = 'failed';

/** @throws NotApplicable if the connector has no such resource */
export async function bringToBank(world: World, resource: BankResource): Promise<Subject> {
  need(world.desk, DESK);
  const amount = world.quietAmounts?.[resource];
  if (resource !== 'payment') {
    const outgoing = resource === 'payout' ? PAYOUT : REFUND;
    const { id } = await makeTaken(outgoing, world, amount);
    await world.files?.carry();
    return { resource, id };
  }
  const { input } = await openSession(world, amount);
  return { resource, id: input.payment_id };
}

/**
 * @returns events that the desk has
 * @throws NotApplicable if there are none
 */
export async function reportEach(
  { desk }: World,
  { resource, id: resource_id }: Subject,
  names: readonly string[],
): Promise<string[]> {
  const had: string[] = [];
  for (const name of names) {
    if (await need(desk, DESK).report({ resource, resource_id, name })) had.push(name);
  }
  if (had.length > 0) return had;
  throw new NotApplicable(`The bank’s desk has no event ${names.join(', ')} of a ${resource}.`);
}

/** @throws NotApplicable */
async function reportOne(
  world: World,
  subject: Subject,
  names: readonly string[] = [...listUsual(world, subject.resource), CONTRARY],
): Promise<string> {
  const [name = '', ...others] = names;
  try {
    await reportEach(world, subject, [name]);
    return name;
  } catch (error) {
    if (!(error instanceof NotApplicable) || others.length === 0) throw error;
    return await reportOne(world, subject, others);
  }
}

function formatEvents(names: readonly string[], usual: readonly string[]): string {
  const missing = usual.filter((name) => !names.includes(name));
  const others = missing.length === 0 ? '' : `; the bank has no event ${missing.join(', ')}`;
  return `${names.join(', ')}${others}`;
}

async function bringAny(world: World): Promise<Subject> {
  for (const resource of ['payout', 'payment', 'refund'] as const) {
    try {
      return await bringToBank(world, resource);
    } catch (error) {
      if (!(error instanceof NotApplicable)) throw error;
    }
  }
  throw new NotApplicable(
    world.desk === undefined ? DESK : 'The bank has nothing to report about.',
  );
}

/** @throws Broken unless each event has one callback */
async function assertOnce(world: World, subject: Subject, names: readonly string[]) {
  const signals = await waitForSignals(world, subject.resource, subject.id, names);
  for (const name of names) {
    const ids = signals.filter((signal) => signal.name === name).map((each) => each.callback_id);
    assertSeen(
      ids.length === 1,
      `${name} came under ${ids.length} callback_ids: ${ids.join(', ')}`,
    );
  }
  return signals;
}

function listFacts(resource: BankResource): ContractPromise[] {
  const facts = async (world: World) => {
    const usual = listUsual(world, resource);
    const subject = await bringToBank(world, resource);
    const names = await reportEach(world, subject, usual);
    const signals = await waitForSignals(world, resource, subject.id, names);
    return formatEvents(
      signals.map(({ name }) => name),
      usual,
    );
  };
  const anyOrder = async (world: World) => {
    const usual = listUsual(world, resource);
    const subject = await bringToBank(world, resource);
    const reversed = [...usual.toReversed(), CONTRARY];
    const names = await reportEach(world, subject, reversed);
    if (names.length < 2) throw new NotApplicable(`The bank has no event but ${names.join()}.`);
    const signals = await waitForSignals(world, resource, subject.id, names);
    return formatEvents(
      signals.map(({ name }) => name),
      reversed,
    );
  };
  const late = async (world: World) => {
    const subject = await bringToBank(world, resource);
    await world.documents.change(resource, subject.id, { status: 'failed', transition: 5 });
    const name = await reportOne(world, subject, listUsual(world, resource).toReversed());
    await waitForSignals(world, resource, subject.id, [name]);
    return `${name} arrived after the end`;
  };
  const row = nameRows(resource);
  return [
    row('callbacks', `Each fact about a ${resource} is reported under an ID of its own.`, facts),
    row('any_order', 'Facts in another order, and contradicting ones, are all reported.', anyOrder),
    row('late', 'Facts that come after the end are reported.', late),
  ];
}

/** @param report brings a resource to the bank, and lets it report facts about it */
export function listOnce(
  id: string,
  fact: string,
  report: (world: World) => Promise<{ subject: Subject; names: string[] }>,
): ContractPromise {
  const check = async (world: World) => {
    const { subject, names } = await report(world);
    await waitForSignals(world, subject.resource, subject.id, names);
    const webhooks = (await world.webhooks?.collect(subject.id, names.length)) ?? [];
    for (const webhook of [...webhooks, ...webhooks]) await world.webhooks?.post(webhook);
    const inFiles = await world.files?.repeat(subject.id);
    const isPolled =
      world.webhooks !== undefined &&
      (await waitForMarkers(world).then(
        () => true,
        () => false,
      ));
    if (inFiles !== undefined) await waitForMarkers(world);
    const signals = await assertOnce(world, subject, names);
    const sources = [
      ...(webhooks.length > 0 ? [`${webhooks.length} webhooks, each three times`] : []),
      ...(inFiles === undefined ? [] : [inFiles]),
      ...(isPolled ? ['the list of changes'] : []),
    ];
    return `${signals.length} callbacks of ${sources.join(' and ') || 'one report each'}`;
  };
  const promise = `${fact} has one callback_id: in webhooks, their repeats and the list of changes.`;
  return { id, promise, alone: true, check };
}

/**
 * Waits until everything reported so far, without webhooks, is delivered.
 * @throws Broken if the connector reads no reports
 */
export async function waitForMarkers(world: World): Promise<void> {
  // The first one may be delivered with earlier ones, and the second one only after them.
  for (const _round of [1, 2]) {
    const marker = await bringAny(world);
    world.webhooks?.lose(marker.id);
    const name = await reportOne(world, marker);
    await waitForSignals(world, marker.resource, marker.id, [name]);
  }
}

const FOREIGN: ContractPromise = {
  id: 'callbacks.foreign',
  promise: 'A report about an unknown resource does not keep back those behind it.',
  check: async (world) => {
    const subject = await bringAny(world);
    const { resource } = subject;
    const unknown = { resource, id: `${subject.id.slice(0, -12)}${'f'.repeat(12)}` };
    await reportOne(world, unknown);
    const name = await reportOne(world, subject);
    await waitForSignals(world, resource, subject.id, [name]);
    const rows = await world.stores.callbacks.forResource(unknown.id);
    const refused = world.webhooks?.list(unknown.id).find(({ status }) => status >= 300);
    assertSeen(refused === undefined, `its webhook was answered ${refused?.status}`);
    const signals = await listSignals(world, resource, unknown.id);
    assertSeen(signals.length === 0, 'it started a workflow');
    return rows.length > 0
      ? 'parked, and the next one arrived'
      : 'ignored, and the next one arrived';
  },
};

export const CALLBACK_PROMISES: readonly ContractPromise[] = [
  ...listFacts('payout'),
  ...listFacts('refund'),
  ...listFacts('payment'),
  FOREIGN,
  listOnce('callbacks.once', 'A fact', async (world) => {
    const subject = await bringAny(world);
    return { subject, names: await reportEach(world, subject, listUsual(world, subject.resource)) };
  }),
];

export const WEBHOOK_PROMISES: readonly ContractPromise[] = [
  {
    id: 'webhooks.lost',
    promise: 'A fact whose webhook got lost is reported nevertheless.',
    check: async (world) => {
      const webhooks = needWebhooks(world);
      const subject = await bringAny(world);
      const countLost = webhooks.lose(subject.id);
      const name = await reportOne(world, subject);
      await waitForSignals(world, subject.resource, subject.id, [name]);
      return `${name} arrived, ${countLost()} webhooks were lost`;
    },
  },
  {
    id: 'webhooks.verified',
    promise: 'Webhooks that the bank did not sign, or that are malformed, are refused.',
    check: async (world) => {
      needWebhooks(world);
      const subject = await bringAny(world);
      const name = await reportOne(world, subject);
      await waitForSignals(world, subject.resource, subject.id, [name]);
      const webhook = await waitForWebhook(world, subject.id);
      const other = `${subject.id.slice(0, -12)}${'e'.repeat(12)}`;
      const text = webhook.body.toString('utf8');
      const type = webhook.headers['content-type'] ?? 'application/json';
      const forged: Record<string, Received> = {
        'cut off': { ...webhook, body: webhook.body.subarray(0, webhook.body.length >> 1) },
        'about another resource': {
          ...webhook,
          body: Buffer.from(text.replaceAll(subject.id, other)),
        },
        'without the bank’s headers': { ...webhook, headers: { 'content-type': type } },
        'that is not JSON': { ...webhook, body: Buffer.from('not JSON') },
        'of 2 MiB': { ...webhook, body: Buffer.alloc(2_097_152, 'x') },
      };
      for (const [what, request] of Object.entries(forged)) {
        const status = await needWebhooks(world).post(request);
        assertSeen(status >= 400, `a webhook ${what} was answered ${status}`);
      }
      const rows = await world.stores.callbacks.forResource(other);
      assertSeen(rows.length === 0, 'a forged webhook was delivered');
      return `refused: ${Object.keys(forged).join(', ')}`;
    },
  },
  {
    id: 'webhooks.acknowledged',
    promise: 'A webhook is acknowledged only after deliverCallback has answered.',
    alone: true,
    check: async (world) => {
      const webhooks = needWebhooks(world);
      const subject = await bringAny(world);
      const { resource, id } = subject;
      const { name, early, signals } = await world.withoutCallbacks(async () => ({
        name: await reportOne(world, subject),
        early: await waitForWebhook(world, id),
        // A poll delivers as soon as it can.
        signals: await listSignals(world, resource, id),
      }));
      const isEarly = early.status < 300 && signals.length === 0;
      assertSeen(!isEarly, `answered ${early.status} while nothing could be delivered`);
      const status = await webhooks.post(early);
      assertSeen(status < 300, `answered ${status} to its repeat`);
      await waitForSignals(world, resource, id, [name]);
      return `${early.status} while nothing could be delivered, then ${status}`;
    },
  },
];

/** @throws NotApplicable if the bank posts none */
async function waitForWebhook(world: World, id: string) {
  const [webhook] = await needWebhooks(world).collect(id, 1);
  return need(webhook, 'The bank posted no webhook.');
}

const NO_LIST = 'No list of the bank was read: none of its answers to a GET had the fact.';
const POLL_MS = 100;

export const POLL_PROMISES: readonly ContractPromise[] = [
  {
    id: 'poll.repeated',
    promise: 'A page of the bank’s list that is read twice reports its facts once.',
    // Later pages are read twice, too.
    alone: true,
    check: async (world) => {
      const bank = needBank(world);
      const subject = await bringAny(world);
      const { resource, id } = subject;
      // Without its webhook, the fact comes from the list.
      world.webhooks?.lose(id);
      const page = bank.repeatPage(id);
      try {
        const name = await reportOne(world, subject);
        await waitForSignals(world, resource, id, [name]).catch(() => {
          throw new NotApplicable(NO_LIST);
        });
        if (!page.isRead()) throw new NotApplicable(NO_LIST);
        const end = Date.now() + world.waitMs;
        while (!page.isRepeated()) {
          if (Date.now() > end) throw new NotApplicable('The list of the bank was read only once.');
          await sleep(POLL_MS);
        }
        await waitForMarkers(world);
        await assertOnce(world, subject, [name]);
        return `${name} once, of a page that was read twice`;
      } finally {
        page.clear();
      }
    },
  },
];
