import { setTimeout as sleep } from 'node:timers/promises';
import { names, passOn, type Received, startProxy } from './proxy';

/** Time in which a bank posts a webhook, unless it posts none. */
const COLLECT_MS = 10_000;
const POLL_MS = 50;

/** Webhook of the bank that was passed on, with the connector's answer. */
interface PassedWebhook extends Received {
  status: number;
}

export interface WebhookProxy {
  url: string;
  /** Lists the webhooks that name an ID, and reached the connector. */
  list: (id: string) => readonly PassedWebhook[];
  /** Waits some seconds for so many of them, and lists those that came. */
  collect: (id: string, count: number) => Promise<readonly PassedWebhook[]>;
  /** Loses every webhook that names an ID. Returns how many, so far, when it is called again. */
  lose: (id: string) => () => number;
  /** Posts a webhook to the connector again. Returns the status. */
  post: (webhook: Received) => Promise<number>;
  stop: () => Promise<void>;
}

/** Starts a proxy in front of a connector's own port, to which the bank posts its webhooks. */
export async function startWebhookProxy(target: string, port = 0): Promise<WebhookProxy> {
  const connector = target.replace(/\/+$/, '');
  const passed: PassedWebhook[] = [];
  const lost = new Map<string, number>();
  const proxy = await startProxy(port, async (request) => {
    const losing = [...lost.keys()].find((id) => names(request, [id]));
    if (losing !== undefined) {
      lost.set(losing, (lost.get(losing) ?? 0) + 1);
      return undefined;
    }
    const answer = await passOn(connector, request);
    passed.push({ ...request, status: answer.status });
    return answer;
  });
  const list = (id: string) => passed.filter((webhook) => names(webhook, [id]));
  return {
    ...proxy,
    list,
    collect: async (id, count) => {
      const end = Date.now() + COLLECT_MS;
      while (list(id).length < count && Date.now() < end) await sleep(POLL_MS);
      return list(id);
    },
    lose: (id) => {
      lost.set(id, 0);
      return () => lost.get(id) ?? 0;
    },
    post: async (webhook) => (await passOn(connector, webhook)).status,
  };
}
