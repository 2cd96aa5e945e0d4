import type { ContractPromise } from '../promise';
import type { Received } from '../proxy';
import { assertSeen, need } from '../verdict';
import { listSignals, needWebhooks, type World, waitForSignals } from '../world';
import { bringAny, reportOne } from './callbacks';

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
