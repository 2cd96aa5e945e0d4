import { setTimeout as sleep } from 'node:timers/promises';
import { names, passOn, type Received, startProxy } from './proxy';

const COLLECT_MS = 10_000;
const POLL_MS = 50;

interface PassedWebhook extends Received {
  status: number;
}

export type WebhookProxy = Awaited<ReturnType<typeof startWebhookProxy>>;

export async function startWebhookProxy(target: string, port = 0) {
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
  const list = (id: string): readonly PassedWebhook[] =>
    passed.filter((webhook) => names(webhook, [id]));
  return {
    ...proxy,
    list,
    collect: async (id: string, count: number): Promise<readonly PassedWebhook[]> => {
      const end = Date.now() + COLLECT_MS;
      while (list(id).length < count && Date.now() < end) await sleep(POLL_MS);
      return list(id);
    },
    /** @returns function that counts the lost ones */
    lose: (id: string) => {
      lost.set(id, 0);
      return () => lost.get(id) ?? 0;
    },
    post: async (webhook: Received): Promise<number> => (await passOn(connector, webhook)).status,
  };
}
